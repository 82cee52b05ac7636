"""Policy tables as files and in commands: made, damaged, lost, made again, asked."""

from __future__ import annotations

import csv
import errno
import functools
import io
import json
import os
import re
import shutil

import numpy as np
import pytest
from click.testing import CliRunner
from conftest import solution_bytes

from solver2048 import ACTIONS, SolveOptions, open_solution, pack, policy_reach, records, solve
from solver2048.checkpoints import Checkpoint
from solver2048.cli import main
from solver2048.errors import NotSolved, SolutionDamaged, UnreachableBoard, UsageError
from solver2048.game_view import view
from solver2048.pack import pack_policy
from solver2048.played_game import PlayedGame
from solver2048.policy import PolicyTable
from solver2048.progress_log import last_line
from solver2048.store import Store
from solver2048.verify import verify


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def shown(game):
    return "\n".join("".join(text for text, _ in line) for line in view(game))


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


def test_a_wrong_action_is_found_by_verify(solved, packed, monkeypatch):
    right = PolicyTable.actions
    monkeypatch.setattr(
        PolicyTable, "actions", lambda self, age, boards: np.minimum(right(self, age, boards), 2)
    )
    for against in (None, str(solved("2x3"))):
        worth, *action = verify(Store(packed("2x3")), against=against).problems
        assert "worth" in str(worth.error)
        assert ["is none of the best" in str(p.error) for p in action] == [True] * bool(against)


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


def test_what_cannot_be_packed_leaves_nothing(packed, tmp_path):
    out = tmp_path / "out"
    assert run("pack", tmp_path / "nowhere", "--policy", "--out", out).exit_code == 6
    assert not out.exists()
    pack_policy(packed("2x2"), tmp_path / "reached", SolveOptions(threads=1), reach="optimal")
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
    assert pack_policy(solved("2x2"), tmp_path, SolveOptions(threads=1), reach="optimal")
    monkeypatch.setattr(pack, "backward_pass", None)
    assert not pack_policy(solved("2x2"), tmp_path, SolveOptions(threads=1), reach="optimal")


@pytest.mark.parametrize("name", [
    "policy/score/*/codes/c/0", "policy/score/*/chunks", "policy/score/*/manifest.json",
    "solution.json",
])  # fmt: skip
def test_a_damaged_table_on_the_way_is_made_again(solved, tmp_path, monkeypatch, name):
    def stopped(*_):
        raise KeyboardInterrupt

    make = functools.partial(pack_policy, solved("2x2"), tmp_path / "p", SolveOptions(threads=1),
                             reach="optimal")  # fmt: skip
    with monkeypatch.context() as patch:
        patch.setattr(Store, "finish_kind", stopped)
        with pytest.raises(KeyboardInterrupt):
            make()
    (file,) = (tmp_path / "p/scratch/complete").glob(name)
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(SolutionDamaged, match="the same command makes it again"):
        make()
    assert make()
    pack_policy(solved("2x2"), tmp_path / "whole", SolveOptions(threads=1), reach="optimal")
    assert solution_bytes(tmp_path / "p") == solution_bytes(tmp_path / "whole")


def test_damage_of_the_source_costs_nothing_made(solved, tmp_path):
    shutil.copytree(solved("2x2"), tmp_path / "s")
    (file,) = (tmp_path / "s").glob("sets/*/states/c/0")
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(SolutionDamaged) as found:
        pack_policy(tmp_path / "s", tmp_path / "p", SolveOptions(threads=1), reach="optimal")
    assert "removed" not in str(found.value)
    assert (tmp_path / "p/scratch/complete/solution.json").exists()


def test_a_pack_stopped_at_its_end_leaves_no_checkpoint(packed, tmp_path, monkeypatch):
    def stopped(*_):
        raise KeyboardInterrupt

    options = SolveOptions(threads=1, checkpoint_seconds=0.0)
    make = functools.partial(pack_policy, packed("2x2"), tmp_path, options, reach="optimal")
    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "drop", stopped)
        with pytest.raises(KeyboardInterrupt):
            make()
    assert (tmp_path / "scratch/score").exists()
    make()
    assert not (tmp_path / "scratch/score").exists()


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
        pack_policy(packed("2x2"), path, SolveOptions(threads=1), reach=reach)
    whole = solution_bytes(path)
    (path / name).unlink()
    result = run("repair", path, "--quiet")
    assert result.exit_code == 0 or reach == "optimal", result.output
    if result.exit_code:
        assert result.exit_code == 5
        assert "pack" in result.output
        pack_policy(packed("2x2"), path, SolveOptions(threads=1), reach=reach)
    assert solution_bytes(path) == whole
    assert run("repair", path, "--quiet").exit_code == 0


def test_actions_are_looked_up_in_a_solution(solved, packed, tmp_path):
    """`verify --against`: of complete tables, of what play meets, and of tiles."""
    source = solved("2x3")
    pack_policy(packed("2x3"), tmp_path / "met", SolveOptions(threads=1), reach="optimal")
    for path in (packed("2x3"), tmp_path / "met"):
        result = run("verify", path, "--against", source, "--sample", "5000", "--quiet")
        assert result.exit_code == 0, result.output
        found = re.search(
            r"policy/score: (\d+) actions looked up in .*, all of them", result.stdout
        )
        assert 3000 < int(found[1]) < 15_000
    tile = SolveOptions(objective="tile:64", threads=1)
    pack_policy(solved("2x3", objective="tile:64"), tmp_path / "tile", tile)
    result = run("verify", tmp_path / "tile", "--against", solved("2x3", objective="tile:64"))
    assert "policy/tile-64: 1988 actions" in result.stdout


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


def test_a_table_that_does_not_fit_is_not_begun(solved, packed, tmp_path):
    for memory in ("0", "100MiB"):
        tight = ("--policy", "--out", tmp_path / "p", "--memory", memory, "--quiet")
        result = run("pack", solved("2x3"), *tight)
        assert result.exit_code == 9
        assert "of memory" in result.stderr
    assert not (tmp_path / "p/solution.json").exists()
    assert run("pack", solved("2x3"), *tight, "--force").exit_code == 0
    assert solution_bytes(tmp_path / "p") == solution_bytes(packed("2x3"))


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
    assert "bits for each of 21,752 states\n  (all of them), " in run("status", path).stdout


# From here on bands are small: the fixture is the module's.
@pytest.mark.usefixtures("small_parts")
def test_a_pack_that_was_stopped_goes_on_to_the_same_bytes(tmp_path):
    solve("2x3", tmp_path / "solution", SolveOptions(threads=1))
    pack_policy(tmp_path / "solution", tmp_path / "whole", SolveOptions(threads=1))
    whole = solution_bytes(tmp_path / "whole")
    shutil.copytree(tmp_path / "whole", tmp_path / "part")
    policy = tmp_path / "part" / "policy" / "score"
    bands = sorted(path for path in policy.iterdir() if path.is_dir())
    assert len(bands) > 2
    for path in (bands[0], bands[1]):
        shutil.rmtree(path)
    (policy / "catalogue.zip").unlink()
    (policy / "result.json").unlink()
    assert pack_policy(tmp_path / "solution", tmp_path / "part", SolveOptions(threads=2))
    assert solution_bytes(tmp_path / "part") == whole
    assert not pack_policy(tmp_path / "solution", tmp_path / "part")


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("is_one_lost", [False, True])
def test_what_play_meets_goes_on_where_it_was_stopped(tmp_path, monkeypatch, is_one_lost):
    """At a checkpoint, which a band below that is lost meanwhile makes worthless."""
    options = SolveOptions(threads=1, checkpoint_seconds=0.0)
    solve("2x3", tmp_path / "solution", options)
    met, ages, limit = functools.partial(pack_policy, reach="optimal"), [], 60

    def watched(shape, index, *rest):
        if len(ages) == limit:
            raise KeyboardInterrupt
        ages.append(int(index.age))
        return mark_states(shape, index, *rest)

    met(tmp_path / "solution", tmp_path / "whole", options)
    mark_states = policy_reach.mark_states
    monkeypatch.setattr(policy_reach, "mark_states", watched)
    with pytest.raises(KeyboardInterrupt):
        met(tmp_path / "solution", tmp_path / "part", options)
    log = last_line(tmp_path / "part")
    assert log["outcome"] == "KeyboardInterrupt"
    assert 4 < log["checkpoint"]["age"] < ages[-1]
    if is_one_lost:
        shutil.rmtree(next((tmp_path / "part/policy/score").glob("00004-*")))
    ages[:], limit = [], 10**6
    assert met(tmp_path / "solution", tmp_path / "part", SolveOptions(threads=2))
    assert ages[0] == (4 if is_one_lost else log["checkpoint"]["age"] + 2)
    assert solution_bytes(tmp_path / "part") == solution_bytes(tmp_path / "whole")
    assert not any((tmp_path / "part/scratch").glob("score*"))


def test_boards_that_are_not_solved_yet_end_nothing(tmp_path):
    """Of a table, and of a solution, that has not come down to all ages."""
    solve("2x3", tmp_path / "solution", SolveOptions(threads=1))
    pack_policy(tmp_path / "solution", tmp_path / "table", SolveOptions(threads=1))
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
