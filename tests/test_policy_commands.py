"""Policy tables asked: by commands, in Python, and checked against a solution."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil

import numpy as np
import pytest
from conftest import run

from solver2048 import ACTIONS, SolveOptions, open_solution, pack, solve
from solver2048.board import parse_board
from solver2048.errors import NotSolved, UnreachableBoard, UsageError
from solver2048.game_view import view
from solver2048.layer_sets import LayerSets
from solver2048.pack import pack_policy
from solver2048.played_game import PlayedGame
from solver2048.policy import PolicyTable
from solver2048.solution import Solution
from solver2048.store import Store
from solver2048.verify import verify


def shown(game):
    return "\n".join("".join(text for text, _ in line) for line in view(game))


@pytest.mark.parametrize("option", [("--max-age", "40"), ("--values", "float32")])
def test_options_that_a_table_has_no_use_for(packed, option):
    """Also where it is the directory alone that says that it is one."""
    result = run("solve", "2x3", "--out", packed("2x3"), *option)
    assert result.exit_code == 2, result.output
    assert "policy" in result.stderr


def test_a_wrong_action_is_found_by_verify(solved, packed, monkeypatch):
    right = PolicyTable.actions
    monkeypatch.setattr(
        PolicyTable, "actions", lambda self, age, boards: np.minimum(right(self, age, boards), 2)
    )
    for against in (None, str(solved("2x3"))):
        worth, *action = verify(Store(packed("2x3")), against=against).problems
        assert "worth" in str(worth.error)
        assert ["is none of the best" in str(p.error) for p in action] == [True] * bool(against)


def test_asking_a_board_reads_no_counts_of_all_ages(solved, packed, monkeypatch):
    """Of 4x3 those are thousands of manifests; `meta` alone has them."""
    monkeypatch.setattr(Solution, "counts", None)
    monkeypatch.setattr(LayerSets, "counts", None)
    monkeypatch.setattr(Solution, "meta", None)
    for path in (solved("2x3"), packed("2x3")):
        assert run("query", path, "2 2 . / . . .").exit_code == 0
        with open_solution(path) as solution:
            game = PlayedGame(solution, seed=1)
            assert game.has_choice
            assert game.play(game.position.answer.best[0])


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
    out = tmp_path / "p"
    result = run("pack", solved("2x3"), "--policy", "--out", out, "--quiet", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["policy_states"] == 21_752
    result = run("query", out, "2 2 4 / . . 2")
    assert result.output.splitlines() == ["2 2 4 / . . 2   age 10", "  best   down"]
    result = run("pack", out, "--policy", "--out", tmp_path / "q")
    assert result.exit_code == 6
    assert "policy table already" in result.output
    for place in (out, out / "below"):
        result = run("pack", out, "--policy", "--reach", "optimal", "--out", place)
        assert result.exit_code == 2
        assert "choose another directory" in result.output
    assert not (out / "below").exists()
    result = run("verify", out)
    assert result.exit_code == 0
    assert "optimal from every start board" in result.output
    with pytest.raises(UsageError):
        pack.pack_policy(out, out, reach="some")


def test_a_table_of_its_own_play_is_asked_about_nothing_else(packed, tmp_path):
    """It cannot tell its boards from others: no other move, no other start, and `query` says so."""
    pack_policy(packed("2x3"), tmp_path, SolveOptions(threads=1), reach="optimal")
    with open_solution(tmp_path) as policy:
        game = PlayedGame(policy, seed=1)
        while not game.is_over:
            best = game.position.answer.best
            assert "of its own moves alone" in shown(game)
            assert [name for name in ACTIONS if name not in best and game.play(name)] == []
            assert game.play(best[0])
            game.place_drawn()
        assert PlayedGame(policy, 1, parse_board("2 . . / . 4 .", policy.shape)).rows[0][0] == 2
        with pytest.raises(NotSolved, match="a table of all states"):
            PlayedGame(policy, 1, parse_board("8 4 . / . . 2", policy.shape))
    for command in ("simulate", "--start"), ("play", "--auto", "--board"):
        result = run(command[0], tmp_path, *command[1:], "8 4 . / . . 2")
        assert result.exit_code == 5
    result = run("query", tmp_path, "2 2 . / . . .")
    assert result.exit_code == 0
    assert "outside the table's own play" in result.stderr
    assert run("query", packed("2x3"), "2 2 . / . . .").stderr == ""


def test_actions_are_looked_up_in_a_solution(solved, packed, tmp_path):
    """`verify --against`: of complete tables, of what play meets, and of tiles."""
    source = solved("2x3")
    pack_policy(packed("2x3"), tmp_path / "met", SolveOptions(threads=1), reach="optimal")
    for path in (packed("2x3"), tmp_path / "met"):
        result = run("verify", path, "--against", source, "--sample", "5000", "--quiet")
        assert result.exit_code == 0, result.output
        found = re.search(
            r"policy/score: ([\d,]+) actions looked up in .*, all of them", result.stdout
        )
        assert 3000 < int(found[1].replace(",", "")) < 15_000
    tile = SolveOptions(objective="tile:64", threads=1)
    pack_policy(solved("2x3", objective="tile:64"), tmp_path / "tile", tile)
    result = run("verify", tmp_path / "tile", "--against", solved("2x3", objective="tile:64"))
    assert "policy/tile-64: 1,988 actions" in result.stdout


@pytest.mark.parametrize(("path", "against", "code", "message"), [
    ("table", "other", 6, "is no solution of 2x3"),
    ("table", "table", 6, "no values of all states"),
    ("table", "nowhere", 6, "no solution at"),
    ("solution", "solution", 2, "is no policy table"),
    ("table --level full", "solution", 2, "at level semantic alone"),
])  # fmt: skip
def test_what_a_table_is_not_checked_against(
    solved, packed, tmp_path, path, against, code, message
):
    places = {"table": packed("2x3"), "solution": solved("2x3"), "other": solved("2x2"),
              "nowhere": tmp_path}  # fmt: skip
    path, *level = path.split()
    result = run("verify", places[path], "--against", places[against], *level)
    assert result.exit_code == code
    assert message in result.stderr


@pytest.mark.parametrize("name", ["sets/*/states/c/0", "values/score/*/afterstates/c/0",
                                  "values/score/result.json", "solution.json"])  # fmt: skip
def test_damage_of_what_a_table_is_checked_against_is_not_the_tables(
    solved, packed, tmp_path, name
):
    shutil.copytree(solved("2x2"), tmp_path / "s")
    for catalogue in (tmp_path / "s").rglob("catalogue.zip"):
        catalogue.unlink()
    (file,) = (tmp_path / "s").glob(name)
    file.write_bytes(file.read_bytes()[:-9])
    result = run("verify", packed("2x2"), "--against", tmp_path / "s", "--quiet")
    assert result.exit_code == 8
    assert f"repair {tmp_path / 's'}`" in result.stderr
    assert str(packed("2x2")) not in result.output


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
    start = ("simulate", path, "--games", "50", "--start", "8 4 . / . . 2")
    assert "not in a policy table" in run(*start).stdout
    summary = json.loads(run(*start, "--json").stdout)
    assert (summary["value"], summary["standard_errors_off"]) == (None, None)
    for command in (["explain", path, "2 2 . / . . 2"], ["games", path],
                    ["sample", path, "--output", tmp_path / "x.csv"]):  # fmt: skip
        result = run(*command)
        assert result.exit_code == 5, command
        assert "is a policy table" in result.stderr
    assert "bits for each of 21,752 states\n  (all of them), " in run("status", path).stdout


# From here on bands are small: the fixture is the module's.
@pytest.mark.usefixtures("small_parts")
def test_boards_that_are_not_solved_yet_end_nothing(tmp_path):
    """Of a table, and of a solution, that has not come down to all ages."""
    solve("2x3", tmp_path / "solution", SolveOptions(threads=1))
    pack_policy(tmp_path / "solution", tmp_path / "table", SolveOptions(threads=1))
    boards = np.array([[[2, 2, 0], [0, 0, 0]], [[128, 64, 32], [4, 8, 16]]])
    for kind in ("solution/values/score", "table/policy/score"):
        for path in (*(tmp_path / kind).glob("00004-*"), *(tmp_path / kind).glob("[cr]*")):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        if kind.startswith("table"):
            found = verify(Store(tmp_path / "table"), against=str(tmp_path / "solution"))
            assert found.problems == []
            assert found.checks[-1] == "policy/score: not complete yet, not compared"
        with open_solution(tmp_path / kind.split("/")[0]) as found:
            for threads in (1, 2):
                probe = found.probe(boards, threads=threads, partial=True)
                assert probe.is_known.tolist() == [False, True]
                assert np.isnan(probe.action_values[0]).all()
                assert not probe.best[0].any()
            with pytest.raises(NotSolved):
                found.probe(boards)
