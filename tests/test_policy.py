"""Policy tables: the stored action is optimal, on every state, in every orientation."""

from __future__ import annotations

import csv
import errno
import io
import json
import os
import shutil

import numpy as np
import pytest
from click.testing import CliRunner
from conftest import solution_bytes
from naive import NaiveSolution, images

from elias_fano.ranked import rank_bitmap
from solver2048 import ACTIONS, SolveOptions, open_solution, pack, records, solve
from solver2048.board import pack_boards, unpack_boards
from solver2048.cli import main
from solver2048.errors import NotSolved, SolutionDamaged, UnreachableBoard, UsageError
from solver2048.forward import AfterstateLayer, enumerate_layer
from solver2048.game_view import view
from solver2048.kernels.moves import moves_into
from solver2048.layer import Band
from solver2048.layer_index import board_slots, member_boards
from solver2048.objective import Objective, merge_potentials
from solver2048.pack import pack_policy
from solver2048.played_game import PlayedGame
from solver2048.policy import NO_ACTION, PolicyTable
from solver2048.policy_bands import PolicyBandBuilder
from solver2048.policy_reach import reached_layers
from solver2048.policy_value import evaluate_policy
from solver2048.shape import TRANSPOSED_ACTIONS, parse_shape
from solver2048.store import Store
from solver2048.tables import build_tables
from solver2048.verify import verify
from solver2048.workers import Workers


@pytest.fixture(scope="module")
def packed(solved, tmp_path_factory):
    """The policy table of a shape, packed from its solution once."""
    done = {}

    def table(shape):
        if shape not in done:
            done[shape] = tmp_path_factory.mktemp("policy") / shape
            assert pack_policy(solved(shape), done[shape], threads=1)
        return done[shape]

    return table


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def shown(game):
    return "\n".join("".join(text for text, _ in line) for line in view(game))


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


@pytest.mark.parametrize("shape", ["2x3", "2x4"])
def test_the_table_is_worth_what_the_solution_says(solved, packed, shape):
    with open_solution(packed(shape)) as policy, open_solution(solved(shape)) as solution:
        found = evaluate_policy(shape, policy.policy)
        assert policy.start_values == solution.start_values
        assert found["random_start"] == pytest.approx(solution.start_values["random"], rel=1e-12)
        for board, value in (solution.stored.result or {})["start_boards"].items():
            assert found["start_boards"][board] == pytest.approx(value, rel=1e-9)


def test_less_than_two_bits_a_state(packed):
    table = PolicyTable(Store(packed("2x4")), parse_shape("2x4"), Objective())
    members = sum(layer["states"] for layer in table.layers())
    assert 8 * table.num_bytes() / members < 1.5


def test_evaluation_of_any_function_equals_a_naive_one():
    naive = NaiveSolution(2, 2)

    def greedy(board):
        """The highest reward; ties follow the symmetries of the board, as a policy here has to."""
        moves = naive.moves[board]
        return max(moves, key=lambda a: (moves[a][1], min(images(moves[a][0], 2, 2))), default=None)

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
        exponents = np.bitwise_count(np.maximum(boards - 1, 0)).reshape(-1, 4).astype(int)
        actions = [greedy(tuple(board)) for board in exponents.tolist()]
        return np.array([-1 if action is None else ACTIONS.index(action) for action in actions])

    found = evaluate_policy("2x2", policy)["start_boards"]
    assert len(found) == 24
    for text, value in found.items():
        board = tuple({".": 0, "2": 1, "4": 2}[cell] for cell in text.replace("/", "").split())
        assert value == pytest.approx(worth[board], rel=1e-12)


def test_a_policy_that_fails_is_worth_nothing():
    found = evaluate_policy("2x2", lambda boards: np.zeros(len(boards), dtype=int))
    assert np.isnan(found["random_start"])


def test_objectives_of_tiles(solved, tmp_path):
    path = solved("2x3", objective="tile:64")
    pack_policy(path, tmp_path / "p", objective="tile:64", threads=1)
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
    assert pack_policy(packed("2x3"), out, reach="optimal", threads=1)
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
        assert sum(len(layer.actions) for layer in reached_layers(table, workers)) == len(slots)
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


# --- files and commands -----------------------------------------------------------------------


def test_solve_keep_policy_makes_the_same_table(packed, tmp_path):
    solve("2x3", tmp_path / "kept", SolveOptions(keep="policy", threads=2))
    assert solution_bytes(tmp_path / "kept") == solution_bytes(packed("2x3"))
    assert not solve("2x3", tmp_path / "kept", SolveOptions())


@pytest.mark.parametrize("option", [("--max-age", "40"), ("--values", "float32")])
def test_options_that_a_table_has_no_use_for(packed, option):
    """Also where it is the directory alone that says that it is one."""
    result = run("solve", "2x3", "--out", packed("2x3"), *option)
    assert result.exit_code == 2, result.output
    assert "policy" in result.stderr


def test_sets_that_cannot_be_dropped_end_the_solve_and_lose_nothing(packed, tmp_path, monkeypatch):
    def failing(*_):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(records, "move", failing)
    result = run("solve", "2x2", "--keep", "policy", "--out", tmp_path / "kept", "--quiet")
    assert result.exit_code == 9
    assert "could not be removed: Input/output error" in result.stderr
    monkeypatch.undo()
    solve("2x2", tmp_path / "kept", SolveOptions(keep="policy", threads=1))
    assert solution_bytes(tmp_path / "kept") == solution_bytes(packed("2x2"))


def test_damage_is_named(packed, tmp_path):
    shutil.copytree(packed("2x3"), tmp_path / "p")
    (chunk,) = (tmp_path / "p" / "policy" / "score").glob("*/codes/c/0")
    data = bytearray(chunk.read_bytes())
    data[len(data) // 2] ^= 1
    chunk.write_bytes(data)
    problems = verify(Store(tmp_path / "p"), level="full").problems
    assert [p.subject for p in problems] == [f"policy/score/{chunk.parent.parent.parent.name}"]
    with open_solution(tmp_path / "p") as policy, pytest.raises(SolutionDamaged, match="chunk"):
        policy.best_action("2 2 4 / . . 2")


def test_a_wrong_action_is_found_by_verify(packed, tmp_path, monkeypatch):
    right = PolicyTable.actions
    monkeypatch.setattr(
        PolicyTable, "actions", lambda self, age, boards: np.minimum(right(self, age, boards), 2)
    )
    (problem,) = verify(Store(packed("2x3"))).problems
    assert "worth" in str(problem.error)


def test_values_are_not_in_the_table(packed):
    with open_solution(packed("2x3")) as policy:
        assert policy.best_action("2 2 4 / . . 2") == "down"
        assert policy.best_action("2 . / 2 . / 4 2") == "right"  # transposed
        assert policy.best_action("2 4 8 / 4 8 2") is None
        for ask in (policy.value, policy.actions):
            with pytest.raises(NotSolved, match="no values"):
                ask("2 2 4 / . . 2")
        with pytest.raises(UnreachableBoard):
            policy.best_action("2 . . / . . .")
        assert policy.meta["reach"] == "all"


def test_streams_of_boards(packed, tmp_path):
    """Actions of a file of boards, errors in their lines; values are nowhere."""
    lines = ["2 2 4 / . . 2", "2 . / 2 . / 4 2", "2 4 8 / 4 8 2", "2 . . / . . .", "3 . . / . . 2"]
    boards = tmp_path / "boards.txt"
    boards.write_text("\n".join(lines))
    result = run("query", packed("2x3"), "--input", boards, "--threads", "2")
    assert result.exit_code == 4
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert [row["best"] for row in rows] == ["down", "right", "", "", ""]
    assert [row["error"] != "" for row in rows] == [False, False, False, True, True]
    assert {row["value"] + row["up"] for row in rows} == {""}
    result = run("query", packed("2x3"), "--input", boards, "--json")
    records = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(r["value"], r["actions"]) for r in records[:3]] == [(None, {})] * 3
    assert [r["best"] for r in records[:3]] == [["down"], ["right"], []]
    single = json.loads(run("query", packed("2x3"), "--json", lines[0]).stdout)
    assert {**single, "line": 1} == records[0]
    with open_solution(packed("2x3")) as policy:
        tiles = np.array([[[2, 2, 4], [0, 0, 2]], [[2, 0, 0], [0, 0, 0]]])
        assert policy.probe(tiles, partial=True).is_known.tolist() == [True, False]
        with pytest.raises(UnreachableBoard):
            policy.probe(tiles)


def test_commands(solved, packed, tmp_path):
    out = str(tmp_path / "p")
    run = CliRunner().invoke(
        main, ["pack", str(solved("2x3")), "--policy", "--out", out, "--quiet", "--json"]
    )
    assert run.exit_code == 0, run.output
    assert json.loads(run.output)["policy_states"] == 21_752
    run = CliRunner().invoke(main, ["query", out, "2 2 4 / . . 2"])
    assert run.output.splitlines() == ["2 2 4 / . . 2   age 10", "  best   down"]
    run = CliRunner().invoke(main, ["pack", out, "--policy", "--out", str(tmp_path / "q")])
    assert run.exit_code == 6
    assert "policy table already" in run.output
    for place in (out, f"{out}/below"):
        run = CliRunner().invoke(
            main, ["pack", out, "--policy", "--reach", "optimal", "--out", place]
        )
        assert run.exit_code == 2
        assert "choose another directory" in run.output
    assert not (tmp_path / "p" / "below").exists()
    run = CliRunner().invoke(main, ["verify", out])
    assert run.exit_code == 0
    assert "optimal from every start board" in run.output
    with pytest.raises(UsageError):
        pack.pack_policy(out, out, reach="some")
    assert TRANSPOSED_ACTIONS[0] == 2


def test_what_cannot_be_packed_leaves_nothing(packed, tmp_path):
    out = tmp_path / "out"
    assert run("pack", tmp_path / "nowhere", "--policy", "--out", out).exit_code == 6
    assert not out.exists()
    pack_policy(packed("2x2"), tmp_path / "reached", reach="optimal", threads=1)
    result = run("pack", tmp_path / "reached", "--policy", "--reach", "optimal", "--out", out)
    assert result.exit_code == 5
    assert not (out / "solution.json").exists()


def test_the_remedy_names_what_is_damaged(solved, packed, tmp_path):
    harmed, out = tmp_path / "harmed", tmp_path / "out"
    for origin, pattern, reach in (
        (solved("2x2"), "sets/*/states/c/0", "all"),
        (packed("2x2"), "policy/*/*/codes/c/0", "optimal"),
    ):
        shutil.rmtree(harmed, ignore_errors=True)
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(origin, harmed)
        (file,) = harmed.glob(pattern)
        file.write_bytes(b"x" + file.read_bytes()[1:])
        result = run("pack", harmed, "--policy", "--reach", reach, "--out", out, "--quiet")
        assert result.exit_code == 8
        assert f"repair {harmed}`" in result.stderr
    record = out / "solution.json"
    record.write_text(record.read_text().replace("2x2", "2x3"))
    result = run("pack", packed("2x2"), "--policy", "--reach", "optimal", "--out", out)
    assert f"repair {out}`" in result.stderr


def test_a_finished_table_of_optimal_play_is_not_made_again(solved, tmp_path, monkeypatch):
    assert pack_policy(solved("2x2"), tmp_path, reach="optimal", threads=1)
    monkeypatch.setattr(pack, "backward_pass", None)
    assert not pack_policy(solved("2x2"), tmp_path, reach="optimal", threads=1)


@pytest.mark.parametrize("name", [
    "solution.json", "counts/00004-00060.json", "policy/score/result.json",
    "policy/score/objective.json", "policy/score/catalogue.zip", "policy/score/00004-00060/chunks",
    "policy/score/00004-00060/codes/c/0",
])  # fmt: skip
@pytest.mark.parametrize("reach", ["all", "optimal"])
def test_any_lost_file_is_made_again(packed, tmp_path, name, reach):
    """By `repair`, and where that has no complete policy to make it from by `pack`."""
    path = tmp_path / "p"
    if reach == "all":
        shutil.copytree(packed("2x2"), path)
    else:
        pack_policy(packed("2x2"), path, reach=reach, threads=1)
    whole = solution_bytes(path)
    (path / name).unlink()
    result = run("repair", path, "--quiet")
    assert result.exit_code == 0 or reach == "optimal", result.output
    if result.exit_code:
        assert result.exit_code == 5
        assert "pack" in result.output
        pack_policy(packed("2x2"), path, reach=reach, threads=1)
    assert solution_bytes(path) == whole
    assert run("repair", path, "--quiet").exit_code == 0


# The last: bands stay small for the rest of the module.
def test_a_table_is_played(packed, tmp_path):
    """`play` and `simulate` need actions alone; what needs values says that they are not there."""
    path = packed("2x3")
    with open_solution(path) as policy:
        assert policy.ages == list(range(4, 254, 2))
    result = run("play", path, "--auto", "--seed", "1", "--delay", "0")
    assert result.exit_code == 0, result.output
    assert "to come" not in result.stdout
    assert "nan" not in result.stdout
    with open_solution(path) as policy:
        game = PlayedGame(policy, seed=1)
        best = game.position.answer.best[0]
        others = [name for name in ACTIONS if name != best and game.play(name)]
        assert "by the policy table" in shown(game)
        game.place_drawn()
        assert f"last move: {others[0]}; best: {best}" in shown(game)
        assert "nan" not in shown(game)
    for command in (["explain", path, "2 2 . / . . 2"], ["games", path],
                    ["sample", path, "--output", tmp_path / "x.csv"]):  # fmt: skip
        result = run(*command)
        assert result.exit_code == 5, command
        assert "is a policy table" in result.stderr
    assert "bits for each of 21,752 states, all" in run("status", path).stdout


@pytest.mark.usefixtures("small_parts")
def test_a_pack_that_was_stopped_goes_on_to_the_same_bytes(tmp_path):
    solve("2x3", tmp_path / "solution", SolveOptions(threads=1))
    pack_policy(tmp_path / "solution", tmp_path / "whole", threads=1)
    whole = solution_bytes(tmp_path / "whole")
    shutil.copytree(tmp_path / "whole", tmp_path / "part")
    policy = tmp_path / "part" / "policy" / "score"
    bands = sorted(path for path in policy.iterdir() if path.is_dir())
    assert len(bands) > 2
    for path in (bands[0], bands[1]):
        shutil.rmtree(path)
    (policy / "catalogue.zip").unlink()
    (policy / "result.json").unlink()
    assert pack_policy(tmp_path / "solution", tmp_path / "part", threads=2)
    assert solution_bytes(tmp_path / "part") == whole
    assert not pack_policy(tmp_path / "solution", tmp_path / "part")


def test_boards_that_are_not_solved_yet_end_nothing(tmp_path):
    """Of a table, and of a solution, that has not come down to all ages."""
    solve("2x3", tmp_path / "solution", SolveOptions(threads=1))
    pack_policy(tmp_path / "solution", tmp_path / "table", threads=1)
    boards = np.array([[[2, 2, 0], [0, 0, 0]], [[128, 64, 32], [4, 8, 16]]])
    for kind in ("solution/values/score", "table/policy/score"):
        for path in (*(tmp_path / kind).glob("00004-*"), *(tmp_path / kind).glob("[cr]*")):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        with open_solution(tmp_path / kind.split("/")[0]) as found:
            for threads in (1, 2):
                probe = found.probe(boards, threads=threads, partial=True)
                assert probe.is_known.tolist() == [False, True]
                assert np.isnan(probe.action_values[0]).all()
                assert not probe.best[0].any()
            with pytest.raises(NotSolved):
                found.probe(boards)
