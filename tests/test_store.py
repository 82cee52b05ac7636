"""Damage to a stored solution is found, named, and never turned into a number."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from solver2048 import SolveOptions, open_solution, solve
from solver2048.errors import NoSolution, NoSpace, SolutionDamaged
from solver2048.layer import Band
from solver2048.store import Store
from solver2048.stored_array import ArrayToWrite
from solver2048.verify import verify


@pytest.fixture
def copy(solved, tmp_path):
    shutil.copytree(solved("2x3"), tmp_path / "copy")
    for other in (tmp_path / "copy/values").glob("tile-*"):
        shutil.rmtree(other)
    return tmp_path / "copy"


def test_verify_finds_nothing_in_a_sound_solution(copy):
    findings = verify(Store(copy))
    assert not findings.errors
    assert len(findings.checks) == 6


def ask_all(path):
    with open_solution(path) as solution:
        for state in ("2 . 4 / . . 2", "64 32 16 / 8 4 2"):
            solution.value(state)


def test_values_of_other_sets_are_refused(solved, copy, tmp_path):
    """Valid files in the wrong solution."""
    solve("2x3", tmp_path / "other", SolveOptions(spawn4=0.3))
    shutil.rmtree(copy / "values/score")
    shutil.copytree(tmp_path / "other/values/score", copy / "values/score")
    # The sets of both are the same; the spawn probability is not.
    assert verify(Store(copy), sample=0).errors
    with pytest.raises(SolutionDamaged, match="is of another solution"):
        open_solution(copy)


def test_bands_of_another_format_are_refused(copy):
    for name in ("objective.json", "result.json", "catalogue.zip"):
        (copy / "values/score" / name).unlink()
    with pytest.raises(NoSolution, match="with values float32; you asked for fixed:5"):
        solve("2x3", copy, SolveOptions(values="fixed:5"))
    # Nothing was relabelled: the right format goes on from what is there.
    assert solve("2x3", copy)
    ask_all(copy)


def test_other_directories_are_no_solutions(tmp_path):
    (tmp_path / "solution.json").write_text('{"format": "something else"}')
    with pytest.raises(NoSolution, match="something else than"):
        Store(tmp_path).identity()
    with pytest.raises(SolutionDamaged, match="its identity is another's"):
        Store(tmp_path).checked_identity({"version": 1, "identity": "0"})
    newer = {"format": "solver2048 solution", "version": 99}
    Store(tmp_path).write_record("solution.json", newer)
    with pytest.raises(NoSolution, match="format 99; this program reads up to 1"):
        Store(tmp_path).identity()
    (tmp_path / "solution.json").write_text('{"format": "solver2048 solution"')
    with pytest.raises(SolutionDamaged):
        Store(tmp_path).identity()


def test_a_full_disk_stops_cleanly(tmp_path, monkeypatch):
    store = Store(tmp_path)
    store.create({"shape": "2x2"})
    arrays = {"afterstates": ArrayToWrite("values", np.ones(1000, np.float32), np.nan)}
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1000))
    with pytest.raises(NoSpace, match="ages 4 to 10 need up to"):
        store.write_band("sets", Band(4, 10), arrays, {})
    assert not (tmp_path / "sets/00004-00010").exists()


def test_arrays_come_back(tmp_path, rng):
    for length in (0, 1, 65_536, 65_537, 300_000):
        path = tmp_path / str(length)
        store = Store(path)
        store.create({"shape": "2x2"})
        band = Band(4, 10)
        items = rng.random(length).astype(np.float32)
        words = rng.integers(0, 2**63, length).astype(np.uint64)
        store.write_band(
            "sets",
            band,
            {"v": ArrayToWrite("values", items, np.nan), "w": ArrayToWrite("words", words)},
            {"note": length},
        )
        reopened = Store(path)
        assert reopened.manifest("sets", band)["note"] == length
        values = reopened.open_array("sets", band, "v", np.nan)
        assert np.array_equal(values.read(), items)
        assert np.array_equal(reopened.open_array("sets", band, "w").read(), words)
        positions = rng.integers(0, max(length, 1), min(length, 1000))
        assert np.array_equal(values.take(positions), items[positions])
        assert np.array_equal(values[length // 3 : length // 2], items[length // 3 : length // 2])
        store.check_band("sets", band)
