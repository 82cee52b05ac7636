"""Policy tables: the stored action is optimal, on every state, in every orientation."""

from __future__ import annotations

import numpy as np
import pytest
from naive import NaiveSolution

from elias_fano.ranked import rank_bitmap
from solver2048 import ACTIONS, SolveOptions, open_solution
from solver2048.backward import Problem
from solver2048.board import pack_boards, unpack_boards
from solver2048.errors import UsageError
from solver2048.forward import AfterstateLayer, enumerate_layer
from solver2048.kernels.moves import moves_into
from solver2048.layer import Band
from solver2048.layer_index import board_slots, member_boards
from solver2048.objective import Objective, merge_potentials
from solver2048.pack import pack_policy
from solver2048.policy import NO_ACTION, PolicyTable
from solver2048.policy_bands import PolicyBandBuilder
from solver2048.policy_reach import reached_layers
from solver2048.policy_value import evaluate_packed, evaluate_policy
from solver2048.shape import parse_shape
from solver2048.store import Store
from solver2048.tables import build_tables
from solver2048.verify import verify
from solver2048.workers import Workers


def naive_boards(naive, boards):
    tiles = np.array(boards, dtype=np.int64).reshape(len(boards), naive.rows, naive.columns)
    return np.where(tiles, 1 << tiles, 0)


@pytest.mark.parametrize("shape", ["2x2", "2x3"])
def test_every_action_is_one_of_the_best_by_the_naive_twin(packed, shape):
    rows, columns = map(int, shape.split("x"))
    naive = NaiveSolution(rows, columns)
    states = [state for layer in naive.states.values() for state in layer]
    with open_solution(packed(shape)) as policy:
        numbers = policy.policy(naive_boards(naive, states))
    for state, number in zip(states, numbers, strict=True):
        values = naive.action_values(state)
        if not values:
            assert number == -1
            continue
        assert values[ACTIONS[number]] >= max(values.values()) - 1e-9


@pytest.mark.parametrize(("shape", "is_packed"), [("2x3", False), ("2x3", True), ("2x4", True)])
def test_the_table_is_worth_what_the_solution_says(solved, packed, shape, is_packed):
    """As any function of boards, and as one that is known to follow the flips."""
    with open_solution(packed(shape)) as policy, open_solution(solved(shape)) as solution:
        if is_packed:
            problem = Problem(policy.shape, policy.objective, policy.spawn4)
            with Workers() as workers:
                found = evaluate_packed(problem, policy.table.actions, workers)
        else:
            found = evaluate_policy(shape, policy.policy)
        assert policy.start_values == solution.start_values
        assert found["random_start"] == pytest.approx(solution.start_values["random"], rel=1e-12)
        for board, value in (solution.stored.result or {})["start_boards"].items():
            assert found["start_boards"][board] == pytest.approx(value, rel=1e-9)


def test_less_than_two_bits_a_state(packed):
    table = PolicyTable(Store(packed("2x4")), parse_shape("2x4"), Objective())
    members = sum(layer["states"] for layer in table.layers())
    assert 8 * table.num_bytes() / members < 1.5


@pytest.mark.parametrize("shape", [(2, 2), (2, 3)])
def test_evaluation_of_any_function_equals_a_naive_one(shape):
    """Of one that does another thing on the image of a board, too."""
    naive = NaiveSolution(*shape)

    def greedy(board):
        """The highest reward; of several another one on every board."""
        moves = naive.moves[board]
        return max(
            moves, key=lambda a: (moves[a][1], hash((*board, ACTIONS.index(a)))), default=None
        )

    worth = {}
    for age in sorted(naive.states, reverse=True):
        for state in naive.states[age]:
            worth[state] = 0.0
            if (action := greedy(state)) is not None:
                moved, reward = naive.moves[state][action]
                worth[state] = reward
                for exponent, share in ((1, 0.9), (2, 0.1)):
                    after = [worth[s] for s in naive.spawns(moved, exponent)]
                    worth[state] += share * sum(after) / len(after)

    def policy(boards):
        exponents = np.bitwise_count(np.maximum(boards - 1, 0)).reshape(len(boards), -1)
        actions = [greedy(tuple(board)) for board in exponents.astype(int).tolist()]
        return np.array([-1 if action is None else ACTIONS.index(action) for action in actions])

    found = evaluate_policy("{}x{}".format(*shape), policy)["start_boards"]
    assert len(found) == {(2, 2): 24, (2, 3): 60}[shape]
    for text, value in found.items():
        board = tuple({".": 0, "2": 1, "4": 2}[cell] for cell in text.replace("/", "").split())
        assert value == pytest.approx(worth[board], rel=1e-12)


def test_a_policy_that_fails_is_worth_nothing():
    found = evaluate_policy("2x2", lambda boards: np.zeros(len(boards), dtype=int))
    assert np.isnan(found["random_start"])


@pytest.mark.parametrize("wrong", [
    lambda boards: None, lambda boards: ["up"] * len(boards), lambda boards: np.zeros(3, int),
    lambda boards: np.zeros(len(boards)),
])  # fmt: skip
def test_a_policy_that_gives_no_actions_is_refused(wrong):
    with pytest.raises(UsageError, match="as many integers are needed"):
        evaluate_policy("2x2", wrong)


def test_objectives_of_tiles(solved, tmp_path):
    path = solved("2x3", objective="tile:64")
    pack_policy(path, tmp_path / "p", SolveOptions(objective="tile:64", threads=1))
    with (
        open_solution(tmp_path / "p", "tile:64") as policy,
        open_solution(path, "tile:64") as solution,
    ):
        found = evaluate_policy("2x3", policy.policy, objective="tile:64")
        assert found["random_start"] == pytest.approx(solution.start_values["random"], rel=1e-12)


@pytest.mark.parametrize("shape", ["4x3", "3x3", "2x2"])
def test_actions_follow_the_orientation_of_the_board(shape, tmp_path):
    """Any actions that follow the symmetries are given back of all images; 4x3 lies transposed."""
    board_shape = parse_shape(shape)
    band = Band(4, 20)
    builder = PolicyBandBuilder(board_shape, band, dict.fromkeys(band.ages, 1000))
    window, boards = {}, {}
    with Workers(1) as workers:
        for age in band.ages:
            layer = enumerate_layer(board_shape, age, window, workers)
            window[age] = AfterstateLayer(layer.index, layer.afterstates)
            ranks, codes = members(board_shape, layer)
            draws = drawn(board_shape, layer.index, codes)
            is_best = (draws == draws.max(axis=1, keepdims=True)) & (draws > 0)
            masks = (is_best << np.arange(4)).sum(axis=1).astype(np.uint8)
            builder.add(layer.index, ranks, masks, workers)
            boards[age] = unpack_boards(codes, board_shape)
        arrays, record = builder.encode(workers)
    store = Store(tmp_path)
    store.create({"shape": shape, "rules": "2048", "spawn4": 0.1, "ids": "index", "keep": "policy"})
    store.create_kind("policy/score", {"objective": "score", "reach": "all"})
    table = PolicyTable(store, board_shape, Objective())
    table._band_of = dict.fromkeys(band.ages, band)
    store.write_band("policy/score", band, arrays, record)
    for age, tiles in boards.items():
        turned = [tiles, tiles.transpose(0, 2, 1)] if board_shape.is_square else [tiles]
        for image in (np.flip(t, axes) for t in turned for axes in ((), 1, 2, (1, 2))):
            codes = pack_boards(np.ascontiguousarray(image), board_shape)
            draws = drawn(board_shape, table.index(age), codes)
            found = table.actions(age, codes)
            assert ((found == NO_ACTION) == (draws.max(axis=1) == 0)).all()
            here = np.flatnonzero(found < 4)
            assert (draws[here, found[here]] == draws[here].max(axis=1)).all()


def drawn(shape, index, codes):
    """A number for every action: of its afterstate modulo all symmetries, 0 if it is illegal."""
    moved = np.empty((len(codes), 4), dtype=np.uint64)
    moves_into(build_tables(shape), merge_potentials(shape), codes, moved, np.empty(moved.shape))
    slots = board_slots(shape, index, moved.reshape(-1))
    if shape.is_square:
        tiles = unpack_boards(moved.reshape(-1), shape).transpose(0, 2, 1)
        others = pack_boards(np.ascontiguousarray(tiles), shape)
        slots = np.minimum(slots, board_slots(shape, index, others))
    numbers = (slots * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(40)) + np.uint64(1)
    return np.where(moved != codes[:, None], numbers.reshape(moved.shape), 0)


def members(shape, layer):
    ranks = rank_bitmap(layer.states)
    codes = member_boards(shape, layer.index, layer.states)
    return ranks, codes


# --- optimal play's own states ----------------------------------------------------------------


def test_reach_optimal_holds_what_optimal_play_meets_and_no_more(packed, tmp_path):
    out = tmp_path / "reached"
    assert pack_policy(packed("2x3"), out, SolveOptions(threads=1), reach="optimal")
    shape = parse_shape("2x3")
    naive = NaiveSolution(2, 3)
    with open_solution(packed("2x3")) as policy:
        met, waiting = set(), [s for age in (4, 6, 8) for s in naive.states[age] if starts(s)]
        while waiting:
            states = list({s for s in waiting if s not in met})
            if not states:
                break
            met.update(states)
            numbers = policy.policy(naive_boards(naive, states))
            after = {
                naive.moves[state][ACTIONS[number]][0]
                for state, number in zip(states, numbers, strict=True) if number >= 0
            }  # fmt: skip
            waiting = [s for a in after for e in (1, 2) for s in naive.spawns(a, e)]
        table = PolicyTable(Store(packed("2x3")), shape, Objective())
    codes = pack_boards(naive_boards(naive, list(met)), shape)
    ages = np.array([sum(2**c for c in s if c) for s in met])
    slots = set()
    for age in set(ages.tolist()):
        found = board_slots(shape, table.index(age), codes[ages == age])
        slots |= {(age, slot) for slot in found.tolist()}
    with Workers(1) as workers:
        assert sum(len(layer.actions) for layer in reached_layers(table, workers, {})) == len(slots)
    with open_solution(out) as small:
        assert sum(layer["states"] for layer in small.table.layers()) == len(slots)
        value = evaluate_policy("2x3", lambda boards: answers(small, boards))["random_start"]
        assert value == pytest.approx(small.start_values["random"], rel=1e-12)
    assert not verify(Store(out)).problems


def starts(state):
    return sum(cell > 0 for cell in state) == 2 and max(state) <= 2


def answers(policy, boards):
    """Actions, any where the table shows that it has none."""
    ages = boards.sum(axis=(1, 2))
    out = np.zeros(len(boards), dtype=np.int64)
    for age in np.unique(ages).tolist():
        here = ages == age
        out[here] = policy.table.actions(age, pack_boards(boards[here], policy.shape))
    return np.where(out < 4, out, -1)
