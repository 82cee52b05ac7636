"""Whole solves against the naive solver, published figures and each other."""

from __future__ import annotations

import csv
import itertools
import json

import naive
import numpy as np
import pytest
from conftest import faces, solution_bytes

from solver2048 import bands, open_solution, workers
from solver2048 import forward_pass as forward_module
from solver2048.counts_file import read_counts
from solver2048.errors import NotSolved, PublishedMismatch
from solver2048.layer_sets import LayerSets
from solver2048.objective import Objective
from solver2048.report import check_published, read_report
from solver2048.shape import ACTIONS, SHAPES, parse_shape
from solver2048.solver import SolveOptions, solve
from solver2048.store import Store

SMALL = ["2x2", "2x3"]


@pytest.fixture(scope="module")
def naive_solution():
    solutions: dict[tuple, naive.NaiveSolution] = {}

    def find(name, **options):
        key = (name, *sorted(options.items()))
        if key not in solutions:
            shape = SHAPES[name]
            solutions[key] = naive.NaiveSolution(shape.num_rows, shape.num_columns, **options)
        return solutions[key]

    return find


def stored_counts(path):
    return [c.published() for c in LayerSets(Store(path)).counts()]


@pytest.mark.parametrize("name", SMALL)
def test_counts_equal_the_naive_ones(name, solved, naive_solution):
    assert stored_counts(solved(name)) == naive_solution(name).counts()


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize(
    ("objective", "spawn4", "tile"),
    [("score", 0.1, 0), ("score", 0.35, 0), ("tile:16", 0.1, 4), ("tile:8", 0.6, 3)],
)
def test_every_value_equals_the_naive_one(name, objective, spawn4, tile, solved, naive_solution):
    expected = naive_solution(name, spawn4=spawn4, tile=tile)
    path = solved(name, objective=objective, values="float64", spawn4=spawn4)
    states = [s for layer in expected.states.values() for s in layer]
    boards = np.array([faces(s) for s in states]).reshape(-1, expected.rows, expected.columns)
    with open_solution(path, objective) as solution:
        probe = solution.probe(boards)
    scale = 1 if tile else 100
    values = np.array([expected.value[s] for s in states])
    assert np.abs(probe.values - values).max() < 1e-12 * scale
    for state, got in zip(states, probe.action_values, strict=True):
        actions = expected.action_values(state)
        for action, value in zip(ACTIONS, got, strict=True):
            if action in actions:
                assert abs(value - actions[action]) < 1e-12 * scale
            else:
                assert np.isnan(value)


@pytest.mark.parametrize("values", ["float32", "float64", "fixed:5", "fixed:12"])
def test_stored_values_are_within_their_bound(values, solved, naive_solution):
    expected = naive_solution("2x3")
    states = [s for layer in expected.states.values() for s in layer]
    boards = np.array([faces(s) for s in states]).reshape(-1, 2, 3)
    with open_solution(solved("2x3", values=values)) as solution:
        probe = solution.probe(boards)
        bound = solution.rounding_bound
        assert solution.meta["rounding_bound"] == bound
    difference = np.abs(probe.values - [expected.value[s] for s in states]).max()
    assert difference <= bound + 1e-10
    assert (
        bound == {"float32": 2**-16, "float64": 0.0, "fixed:5": 2**-6, "fixed:12": 2**-13}[values]
    )
    if bound:
        assert difference > bound / 4  # a bound that says something


@pytest.mark.parametrize("name", ["2x2", "2x3", "3x3"])
def test_counts_equal_the_reference_rows(name, solved, shared_file):
    with open(shared_file(f"reference/{name}.csv"), encoding="utf-8", newline="") as file:
        rows = [{k: int(v) for k, v in row.items()} for row in csv.DictReader(file)]
    assert stored_counts(solved(name)) == rows


@pytest.mark.parametrize("name", ["2x2", "2x3"])
def test_values_equal_the_reference_samples(name, solved, shared_file):
    lines = shared_file(f"reference/values_{name}.txt").read_text(encoding="utf-8").splitlines()
    shape = SHAPES[name]
    with open_solution(solved(name, values="float64")) as solution:
        for line in lines:
            fields = line.split()
            cells = [int(field) for field in fields[1 : fields.index("v")]]
            board = np.array(faces(cells)).reshape(shape.num_rows, shape.num_columns)
            answer = solution.query(board.tolist())
            assert f"{answer.value:.9f}" == fields[fields.index("v") + 1]
            quoted = fields[fields.index("q") + 1 :]
            for action, text in zip(("left", "right", "up", "down"), quoted, strict=True):
                value = answer.actions[action]
                assert ("-" if value is None else f"{value.value:.9f}") == text


@pytest.mark.parametrize("name", ["2x2", "2x3", "2x4", "3x3"])
def test_published_figures(name, solved):
    report = read_report(solved(name), Objective())
    check_published(report)
    compared = report["published"]
    assert {"states", "afterstates", "terminal", "ages", "top_age", "random_start"} <= set(compared)
    assert all(figure["agrees"] for figure in compared.values())
    if name == "3x3":
        assert f"{report['start_classes']['4,4']:.2f}" == "5461.94"
        assert report["peak_memory_bytes"] > 0


@pytest.mark.parametrize(
    ("tile", "probability"), [(256, 0.995709643199), (512, 0.736774177023), (1024, 0.011337880083)]
)
def test_published_probabilities_of_tiles(tile, probability, solved):
    path = solved("3x3", objective=f"tile:{tile}")
    report = read_report(path, Objective(tile.bit_length() - 1))
    assert f"{report['random_start']:.12f}" == f"{probability:.12f}"
    assert report["published"]["random_start"]["agrees"]


def test_transposed_3x3_boards_have_the_same_value_to_rounding(solved, rng):
    with open_solution(solved("3x3")) as solution:
        sets = solution.sets
        for age in (20, 300, 700, 1200):
            members = np.flatnonzero(
                np.unpackbits(
                    sets.open(age, "states").to_bitmap().view(np.uint8), bitorder="little"
                )
            )
            slots = rng.choice(members, 500).astype(np.uint64)
            from solver2048.board import unpack_boards
            from solver2048.layer_index import build_layer_index, slot_boards

            boards = unpack_boards(
                slot_boards(sets.shape, build_layer_index(sets.shape, age), slots), sets.shape
            )
            values = solution.probe(boards).values
            for image in (
                boards.transpose(0, 2, 1), boards[:, ::-1], boards[:, :, ::-1],
                boards.transpose(0, 2, 1)[:, ::-1],
            ):  # fmt: skip
                difference = np.abs(solution.probe(image).values - values).max()
                assert difference <= 2 * solution.rounding_bound + solution.arithmetic_allowance


def test_4x3_counts_to_age_300(tmp_path, shared_file):
    expected = read_counts(str(shared_file("reference/states_per_age_4x3.txt")))
    solve(SHAPES["4x3"], tmp_path / "s", SolveOptions(max_age=300, expected_counts=expected))
    counts = LayerSets(Store(tmp_path / "s")).counts()
    assert [c.age for c in counts] == list(range(4, 301, 2))
    assert [c.states for c in counts] == [expected[c.age] for c in counts]


def test_an_unexpected_count_stops_the_solve_and_loses_nothing(tmp_path):
    with pytest.raises(PublishedMismatch, match=r"age 20: .* expected 7"):
        solve(SHAPES["2x3"], tmp_path / "s", SolveOptions(expected_counts={20: 7}))
    solve(SHAPES["2x3"], tmp_path / "s")
    check_published(read_report(tmp_path / "s", Objective()))


def test_transposed_names_solve_the_same_game(tmp_path):
    solve(parse_shape("3x2"), tmp_path / "a")
    solve(parse_shape("2x3"), tmp_path / "b")
    assert solution_bytes(tmp_path / "a") == solution_bytes(tmp_path / "b")


def test_number_of_threads_and_ranges_do_not_show(tmp_path, monkeypatch):
    paths = []
    for threads, slots in ((1, 1 << 16), (2, 64), (4, 1000), (3, 1)):
        monkeypatch.setattr(workers, "MIN_RANGE_SLOTS", slots)
        paths.append(tmp_path / f"{threads}-{slots}")
        options = SolveOptions(threads=threads, values="float64")
        solve(SHAPES["2x4"] if slots != 1 else SHAPES["2x3"], paths[-1], options)
    first = solution_bytes(paths[0])
    assert len(first) > 5
    assert solution_bytes(paths[1]) == solution_bytes(paths[2]) == first
    solve(SHAPES["2x3"], tmp_path / "plain", SolveOptions(threads=1, values="float64"))
    assert solution_bytes(paths[3]) == solution_bytes(tmp_path / "plain")


@pytest.mark.parametrize("ids", ["index", "radix"])
def test_going_on_from_a_max_age_gives_the_same_bytes(ids, tmp_path, small_bands):
    small_bands(2000)
    shape = SHAPES["2x3"]
    assert len(bands.bands_of(shape)) > 20
    solve(shape, tmp_path / "whole", SolveOptions(ids=ids))
    whole = solution_bytes(tmp_path / "whole")
    for age in (4, 5, 30, 64, 65, 130, 250):
        # Asked for once, the IDs are those of the directory.
        options = SolveOptions(max_age=age, ids=ids if age == 4 else None)
        solve(shape, tmp_path / "parts", options)
        counts = LayerSets(Store(tmp_path / "parts")).counts()
        assert counts[-1].age == age - age % 2
        with pytest.raises(NotSolved):
            open_solution(tmp_path / "parts")
    solve(shape, tmp_path / "parts")
    assert solution_bytes(tmp_path / "parts") == whole


@pytest.mark.parametrize("ids", ["index", "radix"])
def test_a_solve_stopped_anywhere_goes_on_to_the_same_bytes(
    ids, tmp_path, small_bands, monkeypatch
):
    """An error after every n-th band written, in both passes, with and without checkpoints."""
    small_bands(2000)
    shape = SHAPES["2x3"]
    solve(shape, tmp_path / "whole", SolveOptions(ids=ids))
    whole = solution_bytes(tmp_path / "whole")
    written = []
    commit = Store.write_band
    left = 0

    def write_or_stop(self, kind, band, arrays, record):
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt
        written.append((kind, band.name))
        commit(self, kind, band, arrays, record)

    monkeypatch.setattr(Store, "write_band", write_or_stop)
    for seconds in (0.0, 1e9):
        path = tmp_path / f"parts-{seconds}"
        written.clear()
        for number in itertools.count(1):
            left = 3 + number % 4
            try:
                solve(shape, path, SolveOptions(ids=ids, checkpoint_seconds=seconds))
                break
            except KeyboardInterrupt:
                assert number < 100
        assert number > 5
        assert solution_bytes(path) == whole
        # No published band was written again.
        assert len(written) == len(set(written))


def test_a_solve_stopped_before_its_result(tmp_path, small_bands, monkeypatch):
    """All bands are there, and checkpoints; only the result is missing."""
    small_bands(2000)
    write = Store.write_record

    def write_or_stop(self, name, record):
        if name.endswith("result.json"):
            raise KeyboardInterrupt
        write(self, name, record)

    monkeypatch.setattr(Store, "write_record", write_or_stop)
    with pytest.raises(KeyboardInterrupt):
        solve("2x3", tmp_path / "parts", SolveOptions(checkpoint_seconds=0.0))
    monkeypatch.undo()
    monkeypatch.setattr(bands, "BAND_SLOTS", 2000)
    assert solve("2x3", tmp_path / "parts")
    solve("2x3", tmp_path / "whole")
    assert solution_bytes(tmp_path / "parts") == solution_bytes(tmp_path / "whole")


def test_a_finished_solve_changes_nothing(solved, tmp_path):
    path = solved("2x2")
    before = {p: p.stat().st_mtime_ns for p in path.rglob("*") if p.parent != path}
    solve(SHAPES["2x2"], path)
    assert {p: p.stat().st_mtime_ns for p in path.rglob("*") if p.parent != path} == before


def test_another_objective_reuses_the_sets(tmp_path, monkeypatch):
    solve(SHAPES["2x3"], tmp_path / "s")
    again = lambda *_: pytest.fail("enumerated again")  # noqa: E731
    monkeypatch.setattr(forward_module, "enumerate_layer", again)
    solve(SHAPES["2x3"], tmp_path / "s", SolveOptions(objective="tile:32"))
    both = sorted(p.name for p in (tmp_path / "s" / "values").iterdir())
    assert both == ["score", "tile-32"]


def test_start_values_are_kept_in_full(solved, naive_solution):
    expected = naive_solution("2x3")
    with open_solution(solved("2x3")) as solution:
        starts = solution.start_values
    for name, age in (("2,2", 4), ("2,4", 6), ("4,4", 8)):
        boards = [s for s in expected.states[age] if sum(1 for cell in s if cell) == 2]
        mean = sum(expected.value[s] for s in boards) / len(boards)
        assert abs(starts[name] - mean) < 1e-11
    record = json.loads((solved("2x3") / "values/score/result.json").read_text())
    assert len(record["start_boards"]) == 15 * 4
