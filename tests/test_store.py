"""Damage to a stored solution is found, named, and never turned into a number."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from conftest import solution_bytes

from solver2048 import SolveOptions, bands, open_solution, solve
from solver2048.errors import NoSolution, NoSpace, SolutionDamaged, SolverError
from solver2048.layer import Band
from solver2048.store import ArrayToWrite, Store
from solver2048.verify import verify


@pytest.fixture
def copy(solved, tmp_path):
    shutil.copytree(solved("2x3"), tmp_path / "copy")
    for other in (tmp_path / "copy/values").glob("tile-*"):
        shutil.rmtree(other)
    return tmp_path / "copy"


def stored_files(path):
    return sorted(p for kind in ("sets", "values") for p in (path / kind).rglob("*") if p.is_file())


def test_verify_finds_nothing_in_a_sound_solution(copy):
    findings = verify(Store(copy))
    assert not findings.errors
    assert len(findings.checks) == 3


def test_flipped_bits_are_found(copy, rng):
    files = [p for p in stored_files(copy) if "/c/" in p.as_posix()]
    assert len(files) == 3
    states = ["2 . 4 / . . 2", "2 4 8 / 2 . .", "64 32 16 / 8 4 2"]
    for _ in range(60):
        path = files[rng.integers(len(files))]
        sound = path.read_bytes()
        damaged = bytearray(sound)
        damaged[rng.integers(len(sound))] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        findings = verify(Store(copy), sample=0)
        assert findings.errors
        assert any(path.relative_to(copy).as_posix() in str(e) for e in findings.errors)
        # Every chunk has a checksum: a query errs, if it touches the chunk, and never lies.
        for state in states:
            with open_solution(copy) as solution:
                try:
                    value = solution.value(state)
                except SolutionDamaged:
                    continue
            path.write_bytes(sound)
            with open_solution(copy) as solution:
                assert value == solution.value(state)
            path.write_bytes(damaged)
        path.write_bytes(sound)


def ask_all(path):
    with open_solution(path) as solution:
        for state in ("2 . 4 / . . 2", "64 32 16 / 8 4 2"):
            solution.value(state)


@pytest.mark.parametrize("harm", ["truncate", "delete"])
def test_lost_bytes_are_found(harm, copy, tmp_path):
    for path in stored_files(copy):
        sound = path.read_bytes()
        if harm == "delete":
            path.unlink()
        else:
            path.write_bytes(sound[: len(sound) // 2])
        try:
            findings = verify(Store(copy), sample=0)
            # Without its result a solve is one that has not come to its end yet.
            assert findings.errors or (path.name, harm) == ("result.json", "delete"), path
        except SolverError:
            pass
        # A query errs too, unless it needs nothing of the file.
        if path.name != "zarr.json" and (path.name, harm) != ("result.json", "delete"):
            with pytest.raises(SolverError):
                ask_all(copy)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(sound)
    assert not verify(Store(copy), sample=0).errors


@pytest.mark.parametrize("kind", ["sets", "values/score"])
def test_a_lost_band_is_computed_again(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(bands, "BAND_SLOTS", 5000)
    bands.bands_of.cache_clear()
    try:
        solve("2x3", tmp_path / "s")
        whole = solution_bytes(tmp_path / "s")
        lost = sorted((tmp_path / "s" / kind).glob("0*"))[3]
        shutil.rmtree(lost)
        assert verify(Store(tmp_path / "s"), sample=0).errors
        with pytest.raises(SolutionDamaged, match="the band is missing"):
            ask_all(tmp_path / "s")
        assert solve("2x3", tmp_path / "s")
        assert solution_bytes(tmp_path / "s") == whole
        assert not solve("2x3", tmp_path / "s")
    finally:
        bands.bands_of.cache_clear()


def test_values_of_other_sets_are_refused(solved, copy, tmp_path):
    """Valid files in the wrong solution."""
    solve("2x3", tmp_path / "other", SolveOptions(spawn4=0.3))
    shutil.rmtree(copy / "values/score")
    shutil.copytree(tmp_path / "other/values/score", copy / "values/score")
    # The sets of both are the same; the spawn probability is not.
    assert verify(Store(copy), sample=0).errors
    with pytest.raises(SolutionDamaged, match=r"is of p\(4\) = 0.3"):
        open_solution(copy)


def test_bands_of_another_format_are_refused(copy):
    for name in ("objective.json", "result.json"):
        (copy / "values/score" / name).unlink()
    with pytest.raises(NoSolution, match="has values float32; you asked for fixed:5"):
        solve("2x3", copy, SolveOptions(values="fixed:5"))
    # Nothing was relabelled: the right format goes on from what is there.
    assert solve("2x3", copy)
    ask_all(copy)


def test_other_directories_are_no_solutions(tmp_path):
    (tmp_path / "solution.json").write_text('{"format": "something else"}')
    with pytest.raises(NoSolution, match="something else than"):
        Store(tmp_path).identity()
    newer = {"format": "solver2048 solution", "version": 99}
    Store(tmp_path).write_record("solution.json", newer)
    with pytest.raises(NoSolution, match="format 99; this program reads up to 1"):
        Store(tmp_path).identity()
    (tmp_path / "solution.json").write_text('{"format": "solver2048 solution"')
    with pytest.raises(SolutionDamaged):
        Store(tmp_path).identity()


def test_a_changed_record_is_damaged(copy, rng):
    """Any byte of any JSON file of ours: even where it still parses."""
    records = [p for p in stored_files(copy) if p.name != "zarr.json" and p.suffix == ".json"]
    records.append(copy / "solution.json")
    assert len(records) == 5
    for _ in range(40):
        for path in records:
            sound = path.read_bytes()
            damaged = bytearray(sound)
            damaged[rng.integers(len(sound))] ^= 1 << int(rng.integers(7))
            path.write_bytes(damaged)
            with pytest.raises((SolutionDamaged, NoSolution)):
                ask_all(copy)
            path.write_bytes(sound)
    ask_all(copy)


def test_a_full_disk_stops_cleanly(tmp_path, monkeypatch):
    store = Store(tmp_path)
    arrays = {"afterstates": ArrayToWrite("values", np.ones(1000, np.float32), np.nan)}
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1000))
    with pytest.raises(NoSpace, match="ages 4 to 10 may need"):
        store.write_band("sets", Band(4, 10), arrays, {})
    assert not (tmp_path / "sets/00004-00010").exists()


def test_arrays_come_back(tmp_path, rng):
    store = Store(tmp_path)
    band = Band(4, 10)
    for length in (0, 1, 65_536, 65_537, 300_000):
        items = rng.random(length).astype(np.float32)
        words = rng.integers(0, 2**63, length).astype(np.uint64)
        store.write_band(
            "sets",
            band,
            {"v": ArrayToWrite("values", items, np.nan), "w": ArrayToWrite("words", words)},
            {"note": length},
        )
        reopened = Store(tmp_path)
        assert reopened.manifest("sets", band)["note"] == length
        values = reopened.open_array("sets", band, "v", np.nan)
        assert np.array_equal(values.read(), items)
        assert np.array_equal(reopened.open_array("sets", band, "w").read(), words)
        positions = rng.integers(0, max(length, 1), min(length, 1000))
        assert np.array_equal(values.take(positions), items[positions])
        assert np.array_equal(values[length // 3 : length // 2], items[length // 3 : length // 2])
        store.check_band("sets", band)
