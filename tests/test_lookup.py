"""Boards asked in arrays, by threads and layer by layer, against the naive twin."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import naive
import numpy as np
import pytest

from solver2048 import lookup, open_solution
from solver2048.bands import slots_per_age
from solver2048.decoded_layer import decode_layer
from solver2048.errors import NotSolved, SolutionDamaged, UnreachableBoard
from solver2048.kernels.answers import MOVE_MISSING
from solver2048.layer_parts import PART_WORDS
from solver2048.questions import pack_tiles
from solver2048.shape import ACTIONS
from solver2048.value_format import parse_value_format


@pytest.fixture(scope="module")
def twin():
    return naive.NaiveSolution(2, 3)


def twin_boards(twin):
    """All states, and their tiles: int64[n, 2, 3]."""
    states = [state for age in sorted(twin.states) for state in sorted(twin.states[age])]
    exponents = np.array(states)
    return states, np.where(exponents > 0, 1 << exponents, 0).reshape(-1, 2, 3)


@pytest.fixture(params=["small layers decoded", "none decoded", "dense layers decoded"])
def policy(request, monkeypatch):
    """When layers are decoded must not be seen in any answer."""
    if request.param != "small layers decoded":
        monkeypatch.setattr(lookup, "SMALL_SLOTS", 0)
    if request.param == "none decoded":
        monkeypatch.setattr(lookup, "SLOTS_PER_BOARD", 0)


def test_every_state_has_the_twins_values(twin, solved, policy):
    states, tiles = twin_boards(twin)
    with open_solution(solved("2x3", values="float64")) as solution:
        probe = solution.probe(tiles)
    assert probe.is_known.all()
    assert np.array_equal(probe.ages, tiles.sum(axis=(1, 2)))
    values, rewards = np.full((len(states), 4), np.nan), np.zeros((len(states), 4))
    for i, state in enumerate(states):
        for action, value in twin.action_values(state).items():
            values[i, ACTIONS.index(action)] = value
            rewards[i, ACTIONS.index(action)] = twin.moves[state][action][1]
    assert np.allclose(probe.values, [twin.value[state] for state in states], 0, 1e-9)
    assert np.allclose(probe.action_values, values, 0, 1e-9, equal_nan=True)
    assert np.array_equal(probe.rewards, rewards)
    top = np.fmax.reduce(values, axis=1, initial=-np.inf)
    assert np.array_equal(probe.best, values > top[:, None] - 1e-9)


OPTIONS = [
    {},
    {"values": "float64"},
    {"values": "fixed:8"},
    {"objective": "tile:32"},
    {"ids": "radix"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_decoded_or_not_answers_are_the_same_bits(options, twin, solved, monkeypatch, rng):
    _, tiles = twin_boards(twin)
    tiles = rng.permutation(tiles)
    path, objective = solved("2x3", **options), options.get("objective", "score")
    probes = []
    for slots_per_board, threads in ((1 << 9, 1), (1 << 9, 3), (0, 1)):
        with open_solution(path, objective) as solution:
            monkeypatch.setattr(lookup, "SMALL_SLOTS", 0)
            monkeypatch.setattr(lookup, "SLOTS_PER_BOARD", slots_per_board)
            monkeypatch.setattr(lookup, "PIECE_BOARDS", 1 << 6)
            probes.append(solution.probe(tiles, threads=threads))
    for probe in probes[1:]:
        for name, array in vars(probe).items():
            assert np.array_equal(array, vars(probes[0])[name], equal_nan=array.dtype.kind == "f")


def test_layers_are_decoded_once_asked_again(solved, monkeypatch):
    decoded = []

    def decode(sets, stored, age):
        decoded.append(age)
        return decode_layer(sets, stored, age)

    monkeypatch.setattr(lookup, "decode_layer", decode)
    with open_solution(solved("2x3")) as solution:
        board = [[2, 0, 4], [0, 0, 2]]
        values = [solution.value(board)]
        assert decoded == []
        values += [solution.value(board) for _ in range(3)]
        assert decoded == [8]
        values += solution.probe([board, board]).values.tolist()
        assert decoded == [8]
        assert len(set(values)) == 1
        monkeypatch.setattr(lookup, "SMALL_SLOTS", 0)
        monkeypatch.setattr(lookup, "SLOTS_PER_BOARD", slots_per_age(solution.shape)[5] / 9.5)
        for _ in range(9):
            solution.value([[2, 0, 4], [0, 0, 4]])
        assert decoded == [8]
        solution.value([[2, 0, 4], [0, 0, 4]])
        assert decoded == [8, 10]


@pytest.mark.parametrize("name", ["float32", "float64", "fixed:8"])
def test_bounds_as_kernels_take_them(name):
    values = np.concatenate(
        [[0.0, 1e-45, 1.0, 1.5, 2.0], np.random.default_rng(1).random(100) * 5e3]
    )
    form = parse_value_format(name, 10_000)
    values = form.decode(form.encode(values))
    power = np.where(values > 0, np.exp2(np.frexp(values)[1] - 1.0), 0)
    bounds = np.maximum(power * form.relative_bound, form.least_bound)
    assert np.array_equal(bounds, form.rounding_bound(values))
    assert np.array_equal(form.encode(values) * form.scale, values)


def test_partial(solved, policy):
    boards = np.array([
        [[2, 0, 4], [0, 0, 2]],
        [[2, 0, 3], [0, 0, 2]],
        [[8, 0, 0], [0, 0, 0]],
        [[2, 0, 0], [0, 0, 0]],
        [[2, 0, -4], [0, 0, 2]],
        [[128, 128, 128], [128, 128, 128]],
        [[2, 2, 0], [0, 0, 0]],
    ])  # fmt: skip
    with open_solution(solved("2x3")) as solution:
        probe = solution.probe(boards, partial=True)
        known = [0, 6]
        assert np.flatnonzero(probe.is_known).tolist() == known
        whole = solution.probe(boards[known])
        with pytest.raises(UnreachableBoard, match=r"board 8 \. \. / \. \. \. can never occur in"):
            solution.probe(boards[[0, 2]])
    for name, array in vars(whole).items():
        assert np.array_equal(array, vars(probe)[name][known], equal_nan=array.dtype.kind == "f")
    unknown = ~probe.is_known
    assert np.isnan(probe.values[unknown]).all()
    assert np.isnan(probe.action_values[unknown]).all()
    assert not probe.best[unknown].any()


def test_integers_of_any_kind(solved):
    board = np.array([[[2, 0, 4], [0, 0, 2]]])
    with open_solution(solved("2x3")) as solution:
        expected = solution.probe(board).values[0]
        for kind in ("u1", "i2", "u4", ">i8", "u8"):
            assert solution.probe(board.astype(kind)).values[0] == expected
        assert solution.probe(np.asfortranarray(np.tile(board, (3, 1, 1)))).values[2] == expected


def test_many_threads_ask_one_solution(twin, solved, policy):
    _, tiles = twin_boards(twin)
    rows = tiles[:: len(tiles) // 100].tolist()
    path = solved("2x3")
    with open_solution(path) as solution:
        expected = [solution.value(row) for row in rows]
    with open_solution(path) as solution, ThreadPoolExecutor(8) as pool:

        def ask(i: int) -> bool:
            if i % 5 == 0:
                return bool((solution.probe(rows).values == expected).all())
            return solution.query(rows[i % len(rows)]).value == expected[i % len(rows)]

        assert all(pool.map(ask, range(300)))


def test_layers(twin, solved, monkeypatch):
    monkeypatch.setattr("solver2048.layer_parts.PART_WORDS", 8)
    assert PART_WORDS > 8
    met = {"states": 0, "afterstates": 0}
    with open_solution(solved("2x3", values="float64")) as solution:
        assert solution.ages == sorted(twin.states)
        for age in solution.ages:
            boards = []
            for part in solution.layer(age):
                assert 0 < len(part.boards) <= 8 * 64
                probe = solution.probe(part.boards)
                for name in ("values", "action_values", "rewards", "afterstate_values", "best"):
                    array = getattr(part, name)
                    same = np.array_equal(
                        array, getattr(probe, name), equal_nan=array.dtype != bool
                    )
                    assert same, name
                boards += part.boards.reshape(-1, 6).tolist()
            assert classes(twin, boards) == twin.classes(twin.states[age])
            met["states"] += len(boards)
            boards, values = [], []
            for after in solution.afterstates(age):
                boards += after.boards.reshape(-1, 6).tolist()
                values += after.values.tolist()
            assert classes(twin, boards) == len(boards) == twin.classes(twin.afterstates[age])
            for board, value in zip(boards, values, strict=True):
                key = tuple(tile.bit_length() - 1 if tile else 0 for tile in board)
                assert value == pytest.approx(twin.afterstate_value[key], abs=1e-9)
            met["afterstates"] += len(boards)
        with pytest.raises(NotSolved):
            next(solution.layer(2))
    assert met == {"states": 21_752, "afterstates": 14_883}


def classes(twin, boards):
    return twin.classes({tuple(t.bit_length() - 1 if t else 0 for t in board) for board in boards})


def test_meta(solved):
    with open_solution(solved("2x3")) as solution:
        meta = solution.meta
        assert (meta["first_age"], meta["last_age"], meta["is_finished"]) == (4, 252, True)
        assert (meta["states"], meta["afterstates"]) == (21_752, 14_883)
        assert meta["shape"] == "2x3"
        assert sum(solution.counts(age).states for age in solution.ages) == meta["states"]


def test_a_set_that_lacks_a_move_is_damage(solved, policy):
    with open_solution(solved("2x3")) as solution:
        layer = solution._lookup.whole_layer(8)
        layer.afterstates[::2] = 0
        boards = np.array([[[2, 0, 4], [0, 0, 2]]])
        packed = pack_tiles(boards, solution.shape, solution._lookup.max_age)
        with pytest.raises(SolutionDamaged, match="age 8: the set of afterstates lacks a move"):
            solution._lookup.answer_states(8, layer, packed.codes)
    assert MOVE_MISSING


@pytest.mark.parametrize("age", [-4, 0, 5, 254, 10**7, 10**19])
def test_layers_of_ages_that_are_none(age, solved):
    with open_solution(solved("2x3")) as solution:
        for layer in (solution.layer, solution.afterstates):
            with pytest.raises(NotSolved):
                layer(age)
