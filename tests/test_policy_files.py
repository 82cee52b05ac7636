"""Policy tables as files: made, damaged, lost, stopped, made again."""

from __future__ import annotations

import errno
import functools
import json
import os
import shutil

import pytest
from conftest import run, solution_bytes

from solver2048 import SolveOptions, open_solution, pack, policy_reach, records, solve
from solver2048.checkpoints import Checkpoint
from solver2048.errors import SolutionDamaged
from solver2048.game_view import view
from solver2048.pack import pack_policy
from solver2048.progress_log import last_line
from solver2048.store import Store
from solver2048.verify import verify


def shown(game):
    return "\n".join("".join(text for text, _ in line) for line in view(game))


def test_solve_keep_policy_makes_the_same_table(packed, tmp_path):
    solve("2x3", tmp_path / "kept", SolveOptions(keep="policy", threads=2))
    assert solution_bytes(tmp_path / "kept") == solution_bytes(packed("2x3"))
    assert not solve("2x3", tmp_path / "kept", SolveOptions())


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
        if "policy/score/00004" in name:
            assert not json.loads(run("status", path, "--json").stdout)["is_finished"]
        pack_policy(packed("2x2"), path, SolveOptions(threads=1), reach=reach)
    assert solution_bytes(path) == whole
    assert run("repair", path, "--quiet").exit_code == 0


def test_a_table_that_does_not_fit_is_not_begun(solved, packed, tmp_path):
    for memory in ("0", "100MiB"):
        tight = ("--policy", "--out", tmp_path / "p", "--memory", memory, "--quiet")
        result = run("pack", solved("2x3"), *tight)
        assert result.exit_code == 9
        assert "of memory" in result.stderr
    assert not (tmp_path / "p/solution.json").exists()
    assert run("pack", solved("2x3"), *tight, "--force").exit_code == 0
    assert solution_bytes(tmp_path / "p") == solution_bytes(packed("2x3"))


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
