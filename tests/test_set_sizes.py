"""Sizes of sets: against closed forms, file sizes and each other."""

from __future__ import annotations

import itertools
import json
import math

import pytest
from click.testing import CliRunner

from solver2048 import SolveOptions, set_sizes, solve
from solver2048.band_builder import NAMES
from solver2048.cli import main
from solver2048.errors import NotSolved
from solver2048.layer_sets import LayerSets
from solver2048.set_sizes import (
    COLUMNS,
    entropy_bound,
    format_sizes,
    measure_sets,
    total_sizes,
)
from solver2048.store import Store


def measured(path, *ages):
    return measure_sets(LayerSets(Store(path)), *ages)


def elias_fano_bits(count, universe):
    """The definition, without headers and samples."""
    width = max(0, (universe // count).bit_length() - 1)
    return count * width + count + (universe >> width) + 1


def test_sizes_are_those_of_the_definitions(solved):
    path = solved("2x4")
    counts = LayerSets(Store(path)).counts()
    for name, sizes in zip(NAMES, measured(path)[0], strict=True):
        members = {c.age: getattr(c, f"{name[:-1]}_members") for c in counts}
        slots = {c.age: c.num_slots for c in counts}
        assert (sizes.members, sizes.slots) == (sum(members.values()), sum(slots.values()))
        assert sizes.bits["raw"] == 48 * sizes.members
        entropy = math.fsum(entropy_bound(slots[age], members[age]) for age in members)
        assert math.isclose(sizes.bits["entropy"], entropy, rel_tol=1e-12)
        radix = {age: age.bit_length() ** 7 for age in members}
        for column, universes in (("index_elias_fano", slots), ("radix_elias_fano", radix)):
            plain = sum(elias_fano_bits(n, universes[age]) for age, n in members.items() if n)
            # Two headers' worth a layer, and samples of 2 %.
            assert plain <= sizes.bits[column] <= 1.02 * plain + 1024 * len(counts)
        assert sizes.bits["index_partitioned"] < 1.01 * sizes.bits["index_elias_fano"]
        files = [f for f in (path / "sets").glob(f"*/{name}/**/*") if f.is_file()]
        assert sizes.bits["index_disk"] == 8 * sum(f.stat().st_size for f in files)
        assert sizes.bits["index_disk"] < sizes.bits["index_partitioned"]


@pytest.mark.parametrize("name", ["2x3", "2x4"])
def test_sizes_do_not_depend_on_the_ids_stored(name, solved):
    by_index, by_radix = measured(solved(name)), measured(solved(name, ids="radix"))
    assert by_index == by_radix
    # Nothing was left in the solution, nor taken for its own files.
    assert Store(solved(name, ids="radix")).identity()["ids"] == "radix"


@pytest.mark.parametrize(("slots", "count"), [(1, 0), (7, 7), (64, 20), (3000, 17), (9000, 4100)])
def test_entropy_bound_counts_the_sets(slots, count):
    assert entropy_bound(slots, count) == pytest.approx(
        math.log2(math.comb(slots, count)), rel=1e-9, abs=1e-9
    )


def test_rows_cover_every_band_once(tmp_path, small_bands, monkeypatch):
    small_bands(2000)
    solve("2x3", tmp_path, SolveOptions(max_age=200))
    stored = LayerSets(Store(tmp_path)).bands
    assert len(stored) > set_sizes.MAX_ROWS
    few = measured(tmp_path)
    assert len(few) <= set_sizes.MAX_ROWS
    monkeypatch.setattr(set_sizes, "MAX_ROWS", 1000)
    many = measured(tmp_path)
    assert [(row[0].first, row[0].last) for row in many[:-1]] == [
        (band.first, band.last) for band in stored[:-1]
    ]
    for rows in (few, many):
        assert (rows[0][0].first, rows[-1][0].last) == (4, 200)
        for below, above in itertools.pairwise(rows):
            assert below[0].last + 2 == above[0].first
    for i in range(2):
        one, other = total_sizes(few, i), total_sizes(many, i)
        assert (one.first, one.last, one.members) == (other.first, other.last, other.members)
        assert one.bits == pytest.approx(other.bits, rel=1e-12)
    third = stored[2]
    chosen = measured(tmp_path, third.first - 1, third.last + 1)
    assert [row[0].first for row in chosen] == [third.first]
    with pytest.raises(NotSolved, match="no stored band of ages lies between 300 and 200"):
        measured(tmp_path, 300)


def test_the_command(solved):
    def run(*arguments):
        return CliRunner().invoke(main, ["sets", *map(str, arguments)])

    path = solved("2x4")
    table = run(path).stdout
    assert table.strip() == format_sizes(measured(path)).strip()
    assert max(map(len, table.splitlines())) <= 80
    assert "4-1020" in table
    records = [json.loads(line) for line in run(path, "--json").stdout.splitlines()]
    assert [(r["name"], r["is_total"]) for r in records] == [
        ("states", False), ("afterstates", False), ("states", True), ("afterstates", True)
    ]  # fmt: skip
    for record in records:
        assert set(record["bits"]) == set(COLUMNS)
        assert f"{record['bits']['radix_elias_fano']:.2f}" in table
    missing = run(path, "--last", 50)
    assert missing.exit_code == 5
    assert "between 4 and 50; the bands are 4 to 1020" in missing.stderr
