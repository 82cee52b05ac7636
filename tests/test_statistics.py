"""Statistics per age and samples of states, against boards recomputed one by one."""

from __future__ import annotations

import csv
import functools
import io
import json
import sys

import numpy as np
import pytest
from conftest import run
from naive import NaiveSolution, images

from elias_fano.ranked import rank_bitmap, select_into
from solver2048 import open_solution, parse_shape, solve
from solver2048.age_statistics import AgeStatistics, age_statistics
from solver2048.layer_sets import LayerSets
from solver2048.objective import parse_objective
from solver2048.options import SolveOptions
from solver2048.state_sample import COLUMNS, sample_states
from solver2048.store import Store

STATISTICS = (
    "value_mean", "value_min", "value_max", "gap_mean", "single_share", "largest_tile"
)  # fmt: skip


@functools.cache
def naive(name, tile=0):
    shape = parse_shape(name)
    return NaiveSolution(shape.num_rows, shape.num_columns, tile=tile)


@functools.cache
def naive_statistics(name, tile=0, allowance=1e-9):
    return naive(name, tile).statistics(allowance)


def table(path, objective="score", **options):
    sets = LayerSets(Store(path))
    return age_statistics(sets, parse_objective(objective, sets.shape), **options)


CASES = [
    ("2x2", {"values": "float64"}, 1e-9, False),
    ("2x3", {"values": "float64"}, 1e-9, False),
    ("2x3", {"keep": "start"}, 1e-9, True),
    ("2x3", {}, 1e-4, False),
    ("2x3", {"ids": "radix", "values": "fixed:10"}, 1e-2, False),
    ("2x3", {"objective": "tile:64", "values": "float64"}, 1e-12, False),
    ("2x3", {"objective": "tile:64", "keep": "start"}, 1e-12, True),
]


@pytest.mark.parametrize(("name", "options", "allowed", "is_sampled"), CASES)
def test_statistics_are_those_of_all_labelled_boards(name, options, allowed, is_sampled, solved):
    objective = options.get("objective", "score")
    tile = 6 if objective == "tile:64" else 0
    twin = naive(name, tile)
    rows = table(solved(name, **options), objective)
    assert len(rows) == len(twin.states)
    # Stored values, each off by so much, may tie where those in full do not, never the reverse.
    at_most = [layer["tied_share"] for layer in naive_statistics(name, tile, 2 * allowed)]
    for row, counts, expected, most in zip(
        rows, twin.counts(), naive_statistics(name, tile), at_most, strict=True
    ):
        assert {column: getattr(row, column) for column in counts} == counts
        members = round(row.state_density * row.slots)
        assert row.compared == members or (is_sampled and row.compared == 512)
        # Six standard deviations of a share.
        bound = 6 * 0.5 / np.sqrt(row.compared) if row.compared < members else 0.0
        assert expected["tied_share"] - bound <= row.tied_share <= most + bound
        assert abs(row.single_share - expected["single_share"]) <= bound + 1e-12
        for column in STATISTICS:
            found = getattr(row, column)
            if expected[column] is None:
                assert found is None
            elif not bound or column not in ("gap_mean", "single_share"):
                assert found == pytest.approx(expected[column], abs=2 * allowed), (row.age, column)


def test_statistics_of_2x2_by_hand(solved):
    rows = {row.age: row for row in table(solved("2x2", values="float64"))}
    # Two 2s, side by side on four boards, else diagonal on two. Sides merge left or right alike,
    # and a diagonal's moves are all alike.
    first = rows[4]
    assert (first.states, first.states_labelled, first.terminal) == (2, 6, 0)
    assert (first.gap_mean, first.single_share, first.tied_share) == (0.0, 0.0, 1.0)
    assert first.largest_tile == 2
    # 4, 8, 16 and 32, no two alike side by side: nothing moves. Of 24 ways 16 come about.
    last = rows[60]
    assert (last.states, last.terminal, last.afterstates) == (2, 2, 0)
    assert (last.value_mean, last.value_min, last.value_max) == (0.0, 0.0, 0.0)
    assert (last.gap_mean, last.single_share, last.tied_share) == (None, 0.0, 0.0)
    assert last.largest_tile == 32


def test_bits_are_those_of_the_files(solved):
    path = solved("2x3")
    rows = table(path)
    store = Store(path)
    band = LayerSets(store).bands[0]
    members = sum(round(row.state_density * row.slots) for row in rows)
    assert len({row.state_bits for row in rows}) == 1  # one band
    assert rows[0].state_bits * members == pytest.approx(
        8 * store.stored_bytes("sets", band)["states"]
    )
    afterstates = sum(round(row.afterstate_density * row.slots) for row in rows)
    assert rows[0].value_bits * afterstates == pytest.approx(
        8 * store.stored_bytes("values/score", band)["afterstates"]
    )


def test_of_a_larger_board(solved, tmp_path):
    path = solved("2x4")
    rows = table(path, threads=1)
    assert rows == table(path, threads=3)
    assert sum(row.states for row in rows) == 4_980_767
    assert sum(row.terminal for row in rows) == 892_648
    solve("2x4", tmp_path / "start", SolveOptions(keep="start"))
    kept = table(tmp_path / "start")
    assert any(k.compared < row.compared for k, row in zip(kept, rows, strict=True))
    for known, row in zip(kept, rows, strict=True):
        for column in ("age", "states", "terminal", "slots", "largest_tile", "state_bits"):
            assert getattr(known, column) == getattr(row, column)
        for column in ("value_mean", "value_min", "value_max"):
            expected = pytest.approx(getattr(row, column), rel=1e-6, abs=1e-6)
            assert getattr(known, column) == expected
        # Six standard deviations of a share of so many boards.
        bound = 6 * 0.5 / np.sqrt(known.compared)
        assert abs(known.single_share - row.single_share) < bound


def test_of_start_alone_does_not_depend_on_threads(tmp_path):
    for threads in (1, 3):
        solve("2x4", tmp_path / str(threads), SolveOptions(keep="start", threads=threads))
    assert table(tmp_path / "1") == table(tmp_path / "3")


def test_without_values_or_notes_of_them(monkeypatch, solved, tmp_path):
    solve("2x2", tmp_path / "counts", SolveOptions(max_age=20))
    rows = table(tmp_path / "counts")
    assert [row.age for row in rows] == list(range(4, 21, 2))
    assert {row.value_mean for row in rows} == {row.value_bits for row in rows} == {None}
    quick = table(solved("2x2"), is_quick=True)
    assert {row.value_mean for row in quick} == {None}
    assert all(row.value_bits for row in quick)
    # As an older program wrote it.
    monkeypatch.setattr(Store, "write_record", _without_statistics(Store.write_record))
    solve("2x2", tmp_path / "old", SolveOptions(keep="start"))
    assert {row.value_mean for row in table(tmp_path / "old")} == {None}


def _without_statistics(write):
    def write_record(self, name, record):
        for layer in record.get("layers", ()):
            layer.pop("statistics", None)
        write(self, name, record)

    return write_record


def test_counts_of_3x3(shared_file, solved):
    with open(shared_file("reference/3x3.csv"), encoding="utf-8") as file:
        reference = list(csv.DictReader(file))
    rows = table(solved("3x3"), is_quick=True)
    assert len(rows) == len(reference)
    for row, expected in zip(rows, reference, strict=True):
        assert {name: str(getattr(row, name)) for name in expected} == expected


def test_selected_bits(rng):
    bitmap = rng.integers(2**64, size=50, dtype=np.uint64)
    bitmap[rng.random(50) < 0.6] = 0
    bitmap[-1] = 0  # the spare word
    bits = np.flatnonzero(np.unpackbits(bitmap.view(np.uint8), bitorder="little"))
    found = np.empty(len(bits), dtype=np.uint64)
    select_into(rank_bitmap(bitmap), np.arange(len(bits), dtype=np.uint64), found)
    assert np.array_equal(found, bits)


# --- samples --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "objective"), [("2x2", "score"), ("2x3", "tile:64")])
def test_a_sample_of_all_is_every_class_once(name, objective, solved):
    shape, twin = parse_shape(name), naive(name, 6 if objective == "tile:64" else 0)
    with open_solution(solved(name, values="float64", objective=objective), objective) as solution:
        rows = list(sample_states(solution.sets, solution.objective, 10**4, seed=1))
    found = {}
    for row in rows:
        board = tuple(int(tile).bit_length() - 1 if tile else 0 for tile in row["board"])
        every = images(board, shape.num_rows, shape.num_columns)
        found.setdefault(row["age"], []).append(min(every))
        assert row["images"] == len(set(every))
        assert row["value"] == pytest.approx(twin.value[board], abs=1e-9)
        assert row["weight"] == 1
    for n, states in twin.states.items():
        classes = {min(images(s, shape.num_rows, shape.num_columns)) for s in states}
        assert sorted(found[n]) == sorted(classes)


@pytest.mark.parametrize("name", ["2x4", "2x3", "2x2"])
def test_sampled_rows_are_what_the_solution_says(name, solved):
    with open_solution(solved(name)) as solution:
        rows = list(sample_states(solution.sets, solution.objective, 3, seed=7))
        assert rows == list(sample_states(solution.sets, solution.objective, 3, seed=7))
        assert rows != list(sample_states(solution.sets, solution.objective, 3, seed=8))
        for row in rows:
            assert list(row) == list(COLUMNS)
            answer = solution.query(row["board"])
            assert row["value"] == answer.value
            assert row["tied"] == list(answer.best)
            assert row["legal"] == [n for n, action in answer.actions.items() if action]
            for action, known in answer.actions.items():
                assert row[f"q_{action}"] == (known.value if known else None)
            assert row["age"] == answer.age
            assert row["largest_tile"] == max(row["board"])
    for age in {row["age"] for row in rows}:
        of_age = [row for row in rows if row["age"] == age]
        assert len(of_age) == min(3, of_age[0]["states"])


def test_stats_command(solved, tmp_path):
    path = solved("2x3")
    printed = run("stats", path, "--quiet").stdout
    rows = list(csv.DictReader(io.StringIO(printed)))
    assert list(rows[0]) == list(AgeStatistics.columns())
    assert rows[0]["states"] == "6"
    lines = [json.loads(line) for line in run("stats", path, "--json").stdout.splitlines()]
    assert [str(line["age"]) for line in lines] == [row["age"] for row in rows]
    run("stats", path, "--output", tmp_path / "s.csv")
    assert (tmp_path / "s.csv").read_text() == printed
    card = run("stats", "--card").stdout
    assert (tmp_path / "s.csv.md").read_text() == card
    assert all(f"| {name} |" in card for name in AgeStatistics.columns())
    assert run("stats").exit_code == 2
    assert run("stats", tmp_path / "nowhere").exit_code == 6
    solve("2x2", tmp_path / "policy", SolveOptions(keep="policy"))
    facts = {"shape": "2x2", "rules": "2048", "spawn4": 0.1, "ids": "index"}
    Store(tmp_path / "bare").create(facts)
    assert "no sets and no counts" in run("stats", tmp_path / "bare").stderr
    assert "is a policy table" in run("stats", tmp_path / "policy").stderr
    solve("2x2", tmp_path / "tile", SolveOptions(objective="tile:8"))
    assert "there are values for tile:8" in run("stats", tmp_path / "tile").stderr
    result = run("stats", path, "--output", tmp_path / "s.xlsx")
    assert result.exit_code == 2
    assert "must end in .csv, .jsonl, .parquet" in result.stderr


def test_sample_command(solved, tmp_path, monkeypatch):
    path = solved("2x3")
    out = {suffix: tmp_path / f"s.{suffix}" for suffix in ("csv", "jsonl", "parquet")}
    for file in out.values():
        assert run("sample", path, "--per-age", 2, "--output", file).exit_code == 0
    lines = [json.loads(line) for line in out["jsonl"].read_text().splitlines()]
    parquet = pytest.importorskip("pyarrow.parquet").read_table(out["parquet"])
    assert parquet.to_pylist() == lines
    card = (tmp_path / "s.csv.md").read_text()
    assert parquet.schema.metadata[b"card"].decode() == card
    assert run("sample", path, "--per-age", 2, "--card").stdout == card
    first = next(csv.DictReader(io.StringIO(out["csv"].read_text())))
    assert json.loads(first["board"]) == lines[0]["board"]
    printed = run("sample", path, "--per-age", 2, "--quiet").stdout
    assert printed == out["jsonl"].read_text()
    assert run("sample", tmp_path, "--output", out["csv"]).exit_code == 6
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    result = run("sample", path, "--output", out["parquet"])
    assert result.exit_code == 2
    assert "solver2048[parquet]" in result.stderr
