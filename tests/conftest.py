from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from service import running

from solver2048 import bands, zarr_arrays
from solver2048.cli import main
from solver2048.pack import pack_policy
from solver2048.shape import parse_shape
from solver2048.solver import SolveOptions, solve

# Reference figures that may lie beside a checkout; the project must do without.
SHARED = Path(__file__).parent.parent.parent / "shared"


def pytest_report_header() -> str:
    found = "are compared with" if SHARED.is_dir() else "not here, their tests are skipped:"
    return f"reference files {found} {SHARED.name}"


@pytest.fixture(scope="session")
def shared_file():
    """A reference file by name; the test is skipped where there are none."""

    def find(name: str) -> Path:
        path = SHARED / name
        if not path.is_file():
            pytest.skip(f"no reference file {name} here")
        return path

    return find


@pytest.fixture(scope="session")
def solved(tmp_path_factory: pytest.TempPathFactory):
    """Directories of solutions by shape and options, each solved once a session."""
    done: dict[tuple, Path] = {}

    def solve_once(shape: str, **options) -> Path:
        objective = options.pop("objective", "score")
        key = (shape, *sorted(options.items()))
        if key not in done:
            done[key] = tmp_path_factory.mktemp(shape) / "solution"
        solve(parse_shape(shape), done[key], SolveOptions(objective=objective, **options))
        return done[key]

    return solve_once


@pytest.fixture(scope="session")
def service(solved, tmp_path_factory: pytest.TempPathFactory):
    """A running service of 2x4, 2x3 with two objectives, and of 2x3 without its values."""
    solved("2x3", objective="tile:64")
    folder = tmp_path_factory.mktemp("served")
    kept = {"2x4": {"score"}, "2x3": {"score", "tile-64"}, "2x3-unfinished": {"score"}}
    for name, objectives in kept.items():
        shutil.copytree(solved(name[:3]), folder / name)
        for values in (folder / name / "values").iterdir():
            if values.name not in objectives:
                shutil.rmtree(values)
    unfinished = folder / "2x3-unfinished/values/score"
    (unfinished / "result.json").unlink()
    (unfinished / "catalogue.zip").unlink()
    for band in unfinished.glob("*-*"):
        shutil.rmtree(band)
    with running(folder / "log", *(folder / name for name in kept)) as found:
        yield found


def scaled(full: int):
    """A number of trials: a tenth of them, or all of them where the mark `full` is asked for."""
    return pytest.mark.parametrize(
        "trials", [full // 10, pytest.param(full, marks=pytest.mark.full)]
    )


@pytest.fixture
def small_bands(monkeypatch):
    """Cuts the ages into bands of so many slots, so that a small board has many."""

    def cut(num_slots):
        monkeypatch.setattr(bands, "BAND_SLOTS", num_slots)
        bands.bands_of.cache_clear()

    yield cut
    bands.bands_of.cache_clear()


@pytest.fixture(scope="module")
def small_parts():
    """Bands, shards and chunks so small that a small board has several of each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bands, "BAND_SLOTS", 12_000)
        patch.setitem(zarr_arrays.CHUNK_ITEMS, "words", 64)
        patch.setitem(zarr_arrays.SHARD_ITEMS, "words", 256)
        patch.setitem(zarr_arrays.CHUNK_ITEMS, "values", 512)
        patch.setitem(zarr_arrays.SHARD_ITEMS, "values", 2048)
        bands.bands_of.cache_clear()
        yield
    bands.bands_of.cache_clear()


def run(*arguments, stdin=None):
    """A command, in this process: its output and exit code; what else it raises is raised here."""
    texts = [str(argument) for argument in arguments]
    return CliRunner().invoke(main, texts, input=stdin, catch_exceptions=False)


NOT_PART = ("lock", "run.json", "progress.jsonl", "scratch", "quarantine")


def solution_bytes(path: Path) -> dict[str, bytes]:
    """Every file of a solution proper: no lock, times or scratch."""
    return {
        file.relative_to(path).as_posix(): file.read_bytes()
        for file in sorted(path.rglob("*"))
        if file.is_file() and file.relative_to(path).parts[0] not in NOT_PART
    }


def wait_for(condition, seconds=300.0):
    """Wait until a condition holds; so long only where it never will."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def faces(exponents) -> list[int]:
    return [2**e if e else 0 for e in exponents]


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(int(os.environ.get("TEST_SEED", "1")))


@pytest.fixture(scope="session")
def packed(solved, tmp_path_factory):
    """The policy table of a shape, packed from its solution once."""
    done = {}

    def table(shape):
        if shape not in done:
            done[shape] = tmp_path_factory.mktemp("policy") / shape
            assert pack_policy(solved(shape), done[shape], SolveOptions(threads=1))
        return done[shape]

    return table
