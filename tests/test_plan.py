"""What a solve is forecast to take, and that it refuses what cannot fit."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from conftest import run, solution_bytes

from solver2048 import SolveOptions, bands, outlook, solve
from solver2048.age_counts import count_ages
from solver2048.amounts import default_memory_bytes, memory_bytes, parse_bytes
from solver2048.bands import slots_per_age
from solver2048.calibration import calibrate
from solver2048.errors import NoSpace, UsageError
from solver2048.footprint import compute_footprint
from solver2048.forecast import Limits
from solver2048.layer_index import build_layer_index
from solver2048.layer_sets import LayerSets
from solver2048.options import DEFAULT_IDS, DEFAULT_VALUES
from solver2048.plan import make_plan
from solver2048.plan_format import format_plan
from solver2048.published import published_figures
from solver2048.rates import default_rates
from solver2048.shape import SHAPES
from solver2048.store import Store

PLENTY = Limits(memory=1e13, disk=1e14)


def planned(counts, limits=PLENTY, rates=None, keep=None):
    return make_plan(counts, rates or default_rates(2), limits, objective="score",
                     values=DEFAULT_VALUES, ids=DEFAULT_IDS, keep=keep)  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
def test_slots_are_exact_without_enumerating(name):
    shape = SHAPES[name]
    slots = slots_per_age(shape)
    ages = np.unique(np.linspace(2, shape.top_age // 2, 12).astype(int)) * 2
    for age in ages.tolist():
        assert slots[age // 2] == build_layer_index(shape, age).num_slots
    counts = count_ages(shape)
    assert counts.slots.tolist() == slots[2:].tolist()
    assert counts.ages[[0, -1]].tolist() == [4, shape.top_age]


@pytest.mark.parametrize("name", SHAPES)
def test_estimates_add_up_to_the_published_totals(name):
    counts = count_ages(SHAPES[name])
    images = 2 if SHAPES[name].is_square else 1
    assert counts.states.sum() == pytest.approx(images * published_figures(SHAPES[name])["states"])
    assert not counts.is_exact.any()
    assert "estimated" in counts.source


@pytest.mark.parametrize("name", ["2x4", "3x3"])
def test_estimates_are_near_the_truth(name, solved):
    sets = LayerSets(Store(solved(name)))
    exact = count_ages(sets.shape, enumerated=sets.counts())
    estimate = count_ages(sets.shape)
    assert exact.is_exact.all()
    assert exact.states.sum() == sum(c.state_members for c in sets.counts())
    for part in np.array_split(np.arange(len(exact.slots)), 8):
        ratio = estimate.states[part].sum() / exact.states[part].sum()
        assert 0.65 < ratio < 1.5, part[0]
    np.testing.assert_array_equal(exact.afterstates == 0, estimate.afterstates == 0)


def test_the_largest_layers_of_4x3_are_estimated_within_the_margin(shared_file):
    path = shared_file("reference/states_per_age_4x3.txt")
    lines = [line.split() for line in path.read_text().splitlines() if line.strip()]
    expected = {int(age): int(count) for age, count in lines if age.isdecimal()}
    exact = count_ages(SHAPES["4x3"], expected=expected)
    estimate = count_ages(SHAPES["4x3"])
    assert exact.is_exact.all()
    peaks = [compute_footprint(c, "index", "float32").backward.max() for c in (exact, estimate)]
    assert 0.95 < peaks[1] / peaks[0] < 1.25
    sizes = [compute_footprint(c, "index", "float32").sets.sum() for c in (exact, estimate)]
    assert sizes[1] == pytest.approx(sizes[0], rel=0.02)


def test_counts_expected_are_taken():
    counts = count_ages(SHAPES["2x3"], 10, expected={4: 100, 8: 300, 400: 1})
    assert counts.states[[0, 2]].tolist() == [100, 300]
    assert counts.is_exact.tolist() == [True, False, True, False]
    assert counts.source.startswith("2 ages expected; 2 ages estimated")


@pytest.mark.parametrize("name", ["2x4", "3x3"])
def test_sizes_on_disk(name, solved):
    sets = LayerSets(Store(solved(name)))
    counts = count_ages(sets.shape, enumerated=sets.counts())
    forecast = planned(counts).modes[0]
    size = sum(
        p.stat().st_size for kind in ("sets", "values/score") for band in sets.bands
        for p in (sets.store.path / kind / band.name).rglob("*") if p.is_file()
    )  # fmt: skip
    assert 0.8 < forecast.disk_bytes / size < 1.4
    assert forecast.disk_peak_bytes > forecast.disk_bytes
    assert forecast.written_bytes >= forecast.disk_bytes


def test_memory_of_large_layers():
    """The parts that grow with a layer, against the formulas written down."""
    counts = count_ages(SHAPES["4x3"])
    counts = dataclasses.replace(counts, is_exact=np.ones_like(counts.is_exact))
    footprint = compute_footprint(counts, "index", "float32")
    place = int(np.argmax(counts.states))
    band = next(i for i, b in enumerate(footprint.bands) if counts.ages[place] in b.ages)
    states = counts.states[place : place + 3].sum()
    ranks = 2 * (counts.slots[place : place + 3].sum() + counts.slots[place]) / 8
    values = 8 * (states + counts.afterstates[place])
    assert footprint.backward_apart[band] > ranks + values
    assert footprint.backward_apart[band] < 1.35 * (ranks + values)
    assert np.all(footprint.backward_apart <= footprint.backward)
    assert np.all(footprint.forward_apart <= footprint.forward)
    radix = compute_footprint(counts, "radix", "float32")
    assert radix.forward.max() > footprint.forward.max() + 8 * counts.states.max()


def test_a_plan_in_all_modes():
    counts = count_ages(SHAPES["4x3"])
    keep_all, start, policy = planned(counts, Limits(memory=20e9, disk=60e9)).modes
    assert not keep_all.fits
    assert "of disk, of which 60.0 GB are there" in keep_all.missing[0]
    assert start.fits
    assert 0.5 < start.redone_share < 1
    assert start.forward_seconds > 1.4 * keep_all.forward_seconds
    assert start.disk_peak_bytes <= 60e9
    assert start.cpu_seconds + keep_all.cpu_seconds > 3e4
    assert start.disk_bytes < keep_all.disk_bytes / 1000
    assert not policy.fits
    roomy, roomy_policy = planned(counts, PLENTY).modes[1:]
    assert roomy.redone_share == roomy_policy.redone_share == 0
    assert roomy.disk_peak_bytes < 0.5e12
    assert 0.2e12 < roomy_policy.disk_bytes < 0.4e12
    assert roomy_policy.disk_peak_bytes < 0.8e12
    assert roomy_policy.backward_seconds > 1.5 * start.backward_seconds
    assert not planned(counts, Limits(memory=1e9, disk=60e9)).fits
    assert not planned(counts, Limits(memory=20e9, disk=1e9)).fits
    rows = planned(counts).rows
    assert [row.first for row in rows[1:]] == [row.last + 2 for row in rows[:-1]]
    assert sum(row.slots for row in rows) == counts.slots.sum()


def test_a_plan_of_one_mode_goes_by_ages_as_that_does():
    counts = count_ages(SHAPES["4x3"])
    everything = planned(counts)
    assert everything.rows == planned(counts, keep="solution").rows
    for mode in everything.modes:
        alone = planned(counts, keep=mode.keep)
        assert alone.modes == (mode,)
        assert f"By ages, --keep {mode.keep}, " in format_plan(alone)
        kept = sum(row.kept_bytes for row in alone.rows)
        at_rest = mode.disk_bytes - sum(row.sets_bytes for row in alone.rows) * (
            mode.keep == "solution"
        )
        assert kept == pytest.approx(at_rest, rel=0.01, abs=2e6)


def test_a_plan_to_an_age_is_the_forward_pass_alone():
    made = planned(count_ages(SHAPES["4x3"], 300))
    (mode,) = made.modes
    assert (mode.keep, mode.backward_seconds) == ("solution", 0)
    assert made.rows[-1].last == 300
    assert mode.disk_bytes < 1e9
    (mode,) = planned(count_ages(SHAPES["4x3"], 300), keep="start").modes
    assert (mode.keep, mode.backward_seconds) == ("start", 0)


def test_calibration_measures_something(tmp_path):
    rates = calibrate(SHAPES["2x4"], 1, DEFAULT_IDS, DEFAULT_VALUES, tmp_path)
    assert not list(tmp_path.iterdir())
    for cost in (rates.forward.kernels, rates.backward.kernels):
        assert 0 < cost.slot < 1e-6
        assert 0 < cost.state < 1e-5
    counts = count_ages(SHAPES["2x4"])
    seconds = [rates.seconds(r, counts).sum() for r in (rates.forward, rates.backward)]
    assert all(0.01 < s < 60 for s in seconds)


def test_the_command(tmp_path, monkeypatch, solved):
    monkeypatch.chdir(tmp_path)
    result = run("plan", "2x4")
    assert result.exit_code == 0, result.output
    for text in ("--keep solution", "fits", "forward", "at peak", "written", "estimated", "rates"):
        assert text in result.stdout
    record = json.loads(run("plan", "2x4", "--json", "--out", solved("2x4")).stdout)
    assert record["fits"]
    assert record["counts_source"] == "509 ages enumerated"
    assert {mode["keep"] for mode in record["modes"]} == {"solution", "start", "policy"}
    assert record["rows"][0]["slots"] > 0
    assert not list(tmp_path.iterdir())
    tight = run("plan", "2x3", "--memory", "1M", "--keep", "start")
    assert tight.exit_code == 9
    assert "does not fit: it needs" in tight.stdout
    assert run("plan", "2x3", "--disk", "1k", "--json").exit_code == 9
    (tmp_path / "counts").write_text("4 6\n6 14\n")
    result = run("plan", "2x3", "--expect-counts", "counts", "--max-age", 6)
    assert "2 ages expected" in result.stdout


BAD_CALLS = [
    (("plan", "5x5"), 2, "supported are"),
    (("plan", "2x2", "--memory", "lots"), 2, "no amount of bytes"),
    (("plan", "2x2", "--values", "fixed:31"), 2, "the finest here"),
    (("plan", "2x3", "--keep", "policy", "--max-age", "60"), 2, "a policy needs all ages"),
    (("plan", "2x2", "--threads", "0"), 2, "at least 1"),
    (("plan", "2x2", "--expect-counts", "nowhere"), 2, "could not be read"),
    (("solve", "2x2", "--memory", "1 parsec"), 2, "no amount of bytes"),
]


@pytest.mark.parametrize(("arguments", "code", "message"), BAD_CALLS, ids=lambda a: str(a)[:60])
def test_bad_calls(arguments, code, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (code, "")
    assert message in result.stderr
    assert not list(tmp_path.iterdir())


def test_a_solve_that_cannot_fit_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "s"
    result = run("solve", "2x3", "--out", path, "--memory", "100MiB", "--quiet")
    assert result.exit_code == 9
    assert f"2x3 in {path} needs about" in result.stderr
    assert "104.9 MB may be used" in result.stderr
    assert "--force" in result.stderr
    assert result.stderr.count("\n") == 1
    assert [p.name for p in path.iterdir()] == ["lock"]
    monkeypatch.setattr(outlook, "free_bytes", lambda path: 10_000)
    with pytest.raises(NoSpace, match="of disk, of which"):
        solve("2x3", path)
    result = run("solve", "2x3", "--out", path, "--memory", "100MiB", "--force", "--quiet")
    assert result.exit_code == 0
    # What is there needs nothing more.
    assert run("solve", "2x3", "--out", path, "--quiet").exit_code == 0


@pytest.mark.usefixtures("small_parts")
def test_without_overlap_the_bytes_are_the_same(tmp_path, monkeypatch):
    assert len(bands.bands_of(SHAPES["2x3"])) > 3
    for name, limit in (("usual", None), ("apart", 1)):
        solve("2x3", tmp_path / name, SolveOptions(memory_bytes=limit, force=True))
    assert solution_bytes(tmp_path / "usual") == solution_bytes(tmp_path / "apart")


def test_amounts():
    assert 0 < default_memory_bytes() < memory_bytes()
    for text in ("", "GiB", "-1", "1e9", "12 parsecs", "1..2G"):
        with pytest.raises(UsageError):
            parse_bytes(text)
