"""Solves that keep no sets, in little disk space: start values or a policy."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from conftest import run, scaled, solution_bytes
from solve_server import SolveServer

from solver2048 import (
    SolveOptions,
    bands,
    checkpoints,
    descent,
    open_solution,
    progress_log,
    scratch,
    solve,
    span_pass,
)  # fmt: skip
from solver2048 import forward_pass as forward_module
from solver2048.age_counts import count_ages
from solver2048.amounts import parse_bytes
from solver2048.errors import NoSolution, NoSpace, NotSolved, UsageError
from solver2048.footprint import compute_footprint
from solver2048.forecast import least_budget
from solver2048.layer_sets import LayerSets
from solver2048.repair import repair
from solver2048.shape import SHAPES
from solver2048.store import Store
from solver2048.verify import verify

SHAPE, BAND_SLOTS, DISK = "2x4", 100_000, 1_100_000
"""Eight spans: the sets take three times as much disk space, and most of it is the checkpoint."""

KILL_SHAPE, KILL_BAND_SLOTS, KILL_DISK = "2x3", 1500, 70_000

BOTH_KEEPS = pytest.mark.parametrize("keep", ["start", "policy"])


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch):
    """No power fails here."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture
def spans(monkeypatch):
    """(first age, last age) of whatever is enumerated in one go."""
    found = []
    run = forward_module._Enumeration.run

    def recorded(self, enumerated):
        found.append((enumerated[0].first, enumerated[-1].last))
        run(self, enumerated)

    monkeypatch.setattr(forward_module._Enumeration, "run", recorded)
    return found


def start_of(path: Path, objective: str = "score") -> dict:
    """Start values in full, and counts; bands must be cut as they were for the solve."""
    result = json.loads((path / f"values/{objective}/result.json").read_text())
    names = ("start_classes", "start_boards", "random_start", "max_value")
    counts = LayerSets(Store(path)).counts()
    assert len(counts) > 100
    return {"counts": counts, **{name: result[name] for name in names}}


class PeakSize:
    """The most that sets and scratch take, looked at before and after all that adds or removes.

    One such call at a time, as files counted first could be removed before others are added.
    """

    def __init__(self, path: Path, monkeypatch) -> None:
        self._path = path
        self._lock = threading.RLock()
        self.bytes = 0
        for place, name in (
            (Store, "write_band"), (Store, "discard"), (checkpoints, "replace_directory")
        ):  # fmt: skip
            monkeypatch.setattr(place, name, self._watched(getattr(place, name)))

    def _watched(self, call):
        def called(*arguments):
            with self._lock:
                self._look()
                result = call(*arguments)
                self._look()
            return result

        return called

    def _look(self) -> None:
        size = 0
        for part in ("sets", "scratch"):
            for directory, _, files in os.walk(self._path / part):
                for file in files:
                    try:
                        size += os.stat(os.path.join(directory, file)).st_size
                    except FileNotFoundError:
                        continue
        self.bytes = max(self.bytes, size)


# --- spans ------------------------------------------------------------------------------------


def test_eight_spans_give_the_same_start_values(solved, tmp_path, small_bands, spans, monkeypatch):
    expected = start_of(solved(SHAPE, values="float64"))
    spans.clear()
    small_bands(BAND_SLOTS)
    path = tmp_path / "s"
    peak = PeakSize(path, monkeypatch)
    solve(SHAPE, path, SolveOptions(keep="start", disk=DISK))
    assert len(spans) >= 8
    assert DISK / 2 < peak.bytes <= DISK
    assert start_of(path) == expected
    assert {p.name for p in path.iterdir()} >= {"solution.json", "counts", "values"}
    assert not (path / "sets").exists()
    # Nothing is enumerated a third time, nor what lay on top when the top was reached.
    again = [age for first, last in spans[1:] for age in range(first, last + 1, 2)]
    assert len(again) == len(set(again))
    assert max(again) < 1020 * 0.9
    assert verify(Store(path)).problems == []
    print(f"\n{len(spans)} spans, peak {peak.bytes:,} of {DISK:,} bytes")


@pytest.mark.parametrize("ids", ["index", "radix"])
def test_another_objective_and_both_ids(ids, solved, tmp_path, small_bands, spans):
    solved("2x3", objective="tile:32", values="float64", ids=ids)
    whole = solved("2x3", values="float64", ids=ids)
    expected = start_of(whole), start_of(whole, "tile-32")
    spans.clear()
    small_bands(KILL_BAND_SLOTS)
    path = tmp_path / "s"
    options = SolveOptions(keep="start", disk=KILL_DISK, ids=ids)
    if ids == "radix":  # larger sets
        options = SolveOptions(keep="start", disk=2 * KILL_DISK, ids=ids)
    assert solve("2x3", path, options)
    assert not solve("2x3", path)
    assert len(spans) > 1
    assert solve("2x3", path, SolveOptions(objective="tile:32"))
    assert (start_of(path), start_of(path, "tile-32")) == expected


@BOTH_KEEPS
def test_one_objective_after_the_other(keep, tmp_path, small_bands, monkeypatch):
    """A finished one stays so while another is begun, whose sets are left; no third begins."""
    small_bands(KILL_BAND_SLOTS)
    path = tmp_path / "s"
    options, other = (
        SolveOptions(keep=keep, disk=KILL_DISK, objective=name) for name in ("score", "tile:32")
    )
    solve("2x3", path, options)

    def stopped(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(span_pass, "backward_pass", stopped)
        with pytest.raises(KeyboardInterrupt):
            solve("2x3", path, other)
    begun = {p: p.stat().st_size for p in (path / "sets").rglob("*")}
    assert begun
    assert not solve("2x3", path, options)
    with pytest.raises(
        NoSolution, match="not finished with the objective tile:32; finish it first"
    ):
        solve("2x3", path, SolveOptions(objective="tile:64"))
    assert {p: p.stat().st_size for p in (path / "sets").rglob("*")} == begun
    assert solve("2x3", path, other)
    solve("2x3", tmp_path / "whole", other)
    place = ("policy" if keep == "policy" else "values") + "/tile-32"
    assert solution_bytes(path / place) == solution_bytes(tmp_path / "whole" / place)


def test_a_budget_too_small_says_what_is_needed(tmp_path, small_bands):
    with pytest.raises(NoSpace, match=r"budget of 5\.4 GB is too small: .* about 14\.6 GB"):
        solve("4x3", tmp_path / "s", SolveOptions(keep="start", disk=parse_bytes("5GiB")))
    assert not (tmp_path / "s/solution.json").exists()
    with pytest.raises(NoSpace, match="larger --disk goes on"):  # all ages in one band
        solve("2x3", tmp_path / "one", SolveOptions(keep="start", disk=50_000))
    small_bands(KILL_BAND_SLOTS)
    with pytest.raises(NoSpace, match="larger --disk goes on"):
        solve("2x3", tmp_path / "s", SolveOptions(keep="start", disk=50_000))
    solve("2x3", tmp_path / "s", SolveOptions(keep="start", disk=KILL_DISK))
    assert (tmp_path / "s/values/score/result.json").exists()


def test_the_least_budget_is_what_seeds_and_spans_take(monkeypatch, small_bands):
    """By the rules of `Scratch` itself, for 4x3 in some hundred bands of the size expected."""

    class NothingStored:
        def stored_manifest(self, *_):
            return None

    monkeypatch.setattr(scratch, "read_kept", lambda *_: None)
    monkeypatch.setattr(scratch, "drop_band", lambda *_: None)
    small_bands(3e10)
    shape = SHAPES["4x3"]
    counts = count_ages(shape)
    footprint = compute_footprint(counts, "index", "float32", "start")
    assert 100 < len(footprint.bands) < 1000

    def enumerate_within(budget):
        held = scratch.Scratch(NothingStored(), shape, budget)
        for band, size in zip(footprint.bands, footprint.sets, strict=True):
            layers = [SimpleNamespace(age=age, state_members=counts.states[counts.place(age)])
                      for age in band.ages]  # fmt: skip
            held.make_room(
                band, layers, size - scratch.BAND_BYTES - scratch.AGE_BYTES * len(layers)
            )
            held._stored[band] = size

    enumerate_within(1.02 * least_budget(footprint))
    with pytest.raises(NoSpace, match="larger --disk goes on"):
        enumerate_within(0.94 * least_budget(footprint))


# --- the two modes ----------------------------------------------------------------------------


def test_the_other_mode_is_refused(tmp_path):
    for keep, other in itertools.permutations(("start", "solution", "policy"), 2):
        shutil.rmtree(tmp_path / keep, ignore_errors=True)
        solve("2x2", tmp_path / keep, SolveOptions(keep=keep))
        before = solution_bytes(tmp_path / keep)
        with pytest.raises(NoSolution, match=f"keep {keep}; you asked for {other}"):
            solve("2x2", tmp_path / keep, SolveOptions(keep=other))
        assert not solve("2x2", tmp_path / keep)
        assert solution_bytes(tmp_path / keep) == before
    with pytest.raises(UsageError, match="stores no other values"):
        solve("2x2", tmp_path / "s", SolveOptions(keep="start", values="float64"))
    with pytest.raises(NotSolved, match="keeps only start values"):
        open_solution(tmp_path / "start")


def test_commands_on_start_values_alone(tmp_path):
    path = tmp_path / "s"
    result = run("solve", "2x3", "--keep", "start", "--disk", "1 GB", "--out", path)
    assert result.exit_code == 0
    assert result.stdout.count("480.25827178") == 2
    assert "480.25827178" in run("status", path).stdout
    assert run("counts", path).stdout.splitlines()[-1] == "252,28,112,0,0,28"
    assert run("query", path, "2 2 . / . . .").exit_code == 5
    assert run("verify", path).exit_code == 0
    assert run("solve", "2x3", "--out", path, "--keep", "solution").exit_code == 6
    assert run("solve", "2x3", "--out", path, "--disk", "much").exit_code == 2
    assert run("solve", "2x3", "--out", path, "--check", "2").exit_code == 2


@BOTH_KEEPS
def test_damage_is_found_and_made_again(keep, tmp_path):
    path = tmp_path / "s"
    solve("2x3", path, SolveOptions(keep=keep))
    whole = solution_bytes(path)
    for name in whole:
        if name == "solution.json":
            continue
        (path / name).write_bytes(whole[name][:-9])
        subject = "/".join(name.split("/")[:3])  # a record, or the band that a file is of
        assert {problem.subject for problem in verify(Store(path)).problems} == {subject}
        assert repair(path).errors == []
        assert solution_bytes(path) == whole
    (path / "counts/stray").write_text("")
    assert [problem.subject for problem in verify(Store(path)).problems] == ["counts/stray"]


# --- interruptions ----------------------------------------------------------------------------


@BOTH_KEEPS
@scaled(40)
def test_kills(trials, keep, tmp_path, rng):
    """Killed at random moments, a solve goes on to the same bytes, in scratch below the budget."""
    server = SolveServer(KILL_SHAPE, KILL_BAND_SLOTS, keep, KILL_DISK)
    try:
        whole = tmp_path / "whole"
        started = time.monotonic()
        assert server.solve(whole, 1e9, 0) == 0
        seconds = time.monotonic() - started
        expected = solution_bytes(whole)
        kills = finished = 0
        while kills < trials:
            path = tmp_path / str(finished)
            # Not after 0 s: that would be no kill.
            while code := server.solve(path, rng.choice([0, 1e9]), rng.uniform(0.01, seconds)):
                assert code == -signal.SIGKILL
                kills += 1
            assert solution_bytes(path) == expected
            shutil.rmtree(path)
            finished += 1
        print(f"\n{kills} kills, {finished} solves finished")
    finally:
        server.close()


@BOTH_KEEPS
@pytest.mark.parametrize(
    ("place", "steps"), [("write_band", 3), ("discard", 3), ("write_record", 15)]
)
def test_stopped_between_any_two_steps(place, steps, keep, tmp_path, small_bands, monkeypatch):
    """An error before every n-th step of a kind, and the next run goes on."""
    small_bands(KILL_BAND_SLOTS)
    options = SolveOptions(keep=keep, disk=KILL_DISK, checkpoint_seconds=0.0)
    solve("2x3", tmp_path / "whole", options)
    call = getattr(Store, place)
    left = 0

    def called(self, *arguments):
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt
        return call(self, *arguments)

    monkeypatch.setattr(Store, place, called)
    for number in range(100):
        left = steps * (1 + number % 3)
        try:
            solve("2x3", tmp_path / "parts", options)
            break
        except KeyboardInterrupt:
            continue
    assert 3 < number < 99
    assert solution_bytes(tmp_path / "parts") == solution_bytes(tmp_path / "whole")


@BOTH_KEEPS
def test_a_lost_checkpoint_costs_time_alone(keep, tmp_path, small_bands, monkeypatch):
    small_bands(KILL_BAND_SLOTS)
    options = SolveOptions(keep=keep, disk=KILL_DISK)
    solve("2x3", tmp_path / "whole", options)
    value_layer = descent.value_layer

    def stop_at_50(problem, age, *arguments):
        if age == 50:
            raise KeyboardInterrupt
        return value_layer(problem, age, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(descent, "value_layer", stop_at_50)
        with pytest.raises(KeyboardInterrupt):
            solve("2x3", tmp_path / "s", options)
    shutil.rmtree(tmp_path / "s/scratch/score")
    solve("2x3", tmp_path / "s", options)
    assert solution_bytes(tmp_path / "s") == solution_bytes(tmp_path / "whole")


@BOTH_KEEPS
def test_progress_of_all_passes(keep, tmp_path, small_bands, spans, monkeypatch):
    monkeypatch.setattr(progress_log, "LINE_SECONDS", 0.0)
    small_bands(KILL_BAND_SLOTS)
    solve("2x3", tmp_path / "s", SolveOptions(keep=keep, disk=KILL_DISK))
    text = (tmp_path / "s" / progress_log.NAME).read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    passes = [line["pass"] for line in lines if line["event"] == "progress"]
    turns = [a for a, b in itertools.pairwise([*passes, None]) if a != b]
    assert len(spans) > 2
    assert turns == ["forward", *["backward", "forward again"] * (len(spans) - 1), "backward"]
    fractions = [line["fraction"] for line in lines if "fraction" in line]
    assert fractions[-1] == pytest.approx(1)
    assert lines[-1]["left_seconds"] == pytest.approx(dict.fromkeys(lines[-1]["left_seconds"], 0))
    assert lines[-1]["checkpoint"]["age"] > 4
    assert (lines[-1]["disk_bytes"] > 10_000) == (keep == "policy")


@BOTH_KEEPS
@pytest.mark.parametrize(("options", "message"), [
    ({"memory_bytes": 1 << 20}, "of memory"),
    ({"disk": 1 << 60}, "of disk.*choose a smaller --disk"),
])  # fmt: skip
def test_a_solve_that_cannot_fit_is_refused(options, message, keep, tmp_path):
    with pytest.raises(NoSpace, match=message):
        solve("4x3", tmp_path / "s", SolveOptions(keep=keep, **options))
    assert not (tmp_path / "s/solution.json").exists()


@pytest.mark.parametrize(("keep", "name"), [
    ("start", "counts/BAND.json"), ("start", "values/score/result.json"),
    ("policy", "counts/BAND.json"), ("policy", "policy/score/BAND"),
])  # fmt: skip
def test_a_record_that_is_lost_is_named(keep, name, tmp_path):
    path = tmp_path / "s"
    solve("2x3", path, SolveOptions(keep=keep))
    whole = solution_bytes(path)
    name = name.replace("BAND", bands.bands_of(SHAPES["2x3"])[0].name)
    shutil.move(path / name, tmp_path / "lost")
    (problem,) = verify(Store(path)).problems
    assert problem.subject == name
    (path / name).mkdir()
    assert verify(Store(path)).problems
    (path / name).rmdir()
    solve("2x3", path)
    assert solution_bytes(path) == whole
