"""Radix IDs equal their naive twin; a solution is the same whichever IDs its sets hold."""

from __future__ import annotations

import itertools
import json

import naive
import numpy as np
import pytest
from conftest import faces, solution_bytes

from elias_fano import DamagedSet, PartitionedEliasFano
from elias_fano.bits import empty_bitmap
from elias_fano.ranked import rank_bitmap
from solver2048 import SolveOptions, ids, open_solution, solve
from solver2048.board import pack_boards
from solver2048.errors import SolutionDamaged, UsageError
from solver2048.ids import RadixIds, make_ids
from solver2048.layer_index import board_slots, build_layer_index, slot_boards
from solver2048.layer_sets import LayerSets
from solver2048.shape import SHAPES
from solver2048.store import Store
from solver2048.verify import verify


def packed(boards, shape):
    """Codes of flat tuples of exponents."""
    tiles = np.array([faces(board) for board in boards], dtype=np.int64)
    return pack_boards(tiles.reshape(-1, shape.num_rows, shape.num_columns), shape)


def random_board(age, num_cells, rng):
    """A flat board of an age: the age's own bits, halved at random, on random cells."""
    exponents = [e for e in range(1, 15) if age >> e & 1]
    while len(exponents) < num_cells and rng.random() < 0.85:
        i = int(rng.integers(len(exponents)))
        if exponents[i] > 1:
            exponents[i] -= 1
            exponents.append(exponents[i])
    cells = exponents + [0] * (num_cells - len(exponents))
    return tuple(cells[i] for i in rng.permutation(num_cells))


def check_boards(shape, age, boards):
    """IDs of flat boards of one age: as the twin has them, the same for flips, invertible."""
    rows, columns = shape.num_rows, shape.num_columns
    radix = RadixIds(shape)
    found = radix.of_boards(age, packed(boards, shape))
    assert found.tolist() == [naive.radix_id(board, rows, columns) for board in boards]
    assert int(found.max()) < radix.universe(age)
    images = [naive.images(board, rows, columns)[:4] for board in boards]
    for turned in zip(*images, strict=True):
        assert np.array_equal(radix.of_boards(age, packed(turned, shape)), found)
    back = radix.boards(age, found)
    same = np.stack([packed(turned, shape) for turned in zip(*images, strict=True)])
    assert (same == back).any(axis=0).all()
    return found


@pytest.mark.parametrize("name", SHAPES)
def test_radix_ids_equal_the_naive_ones_at_every_age(name, rng):
    shape = SHAPES[name]
    per_age = max(2, 1000 // shape.top_age)
    for age in range(4, shape.top_age + 1, 2):
        check_boards(shape, age, [random_board(age, shape.num_cells, rng) for _ in range(per_age)])


def test_radix_ids_of_all_states_of_2x3():
    shape = SHAPES["2x3"]
    for age, layer in naive.NaiveSolution(2, 3).states.items():
        classes = {min(naive.images(board, 2, 3)) for board in layer}
        found = check_boards(shape, age, sorted(classes))
        assert len(np.unique(found)) == len(classes)


@pytest.mark.parametrize("age", [4, 6, 14, 16, 30, 34, 60])
def test_numbers_that_are_the_id_of_no_board(age):
    """Every number below the universe of 2x2, and some beyond."""
    shape = SHAPES["2x2"]
    radix = RadixIds(shape)
    universe = radix.universe(age)
    exponents = range(age.bit_length())
    boards = [b for b in itertools.product(exponents, repeat=4) if naive.age(b) == age]
    expected = {naive.radix_id(board, 2, 2) for board in boards}
    for number in [*range(universe), universe, 2 * universe, 2**63, 2**64 - 1]:
        query = np.array([number], dtype=np.uint64)
        if number in expected:
            assert radix.of_boards(age, radix.boards(age, query)).tolist() == [number]
        else:
            with pytest.raises(DamagedSet, match=f"{number} is the radix ID of no board"):
                radix.boards(age, query)


LAYERS = [("2x2", 20), ("2x4", 300), ("3x3", 256), ("4x3", 96), ("4x3", 16_380)]


@pytest.mark.parametrize("kind", ["index", "radix"])
@pytest.mark.parametrize(("name", "age"), LAYERS)
def test_layers_come_back(name, age, kind, rng, monkeypatch):
    """Sets of random members, converted in chunks of every size."""
    shape = SHAPES[name]
    index = build_layer_index(shape, age)
    num_slots = int(index.num_slots)
    some = np.unique(rng.integers(0, num_slots, 20_000).astype(np.uint64))
    slots = np.unique(board_slots(shape, index, slot_boards(shape, index, some)))
    bitmap = empty_bitmap(num_slots)
    np.bitwise_or.at(bitmap, slots >> np.uint64(6), np.uint64(1) << (slots & np.uint64(63)))
    kept = make_ids(kind, shape)
    for words, members in ((1, 1), (7, 1000), (1 << 14, 1 << 18)):
        if num_slots // 64 // words > 20_000:
            continue
        monkeypatch.setattr(ids, "CHUNK_WORDS", words)
        monkeypatch.setattr(ids, "CHUNK_MEMBERS", members)
        stored = PartitionedEliasFano(kept.encode(index, bitmap))
        assert stored.universe == kept.universe(age)
        expected = np.sort(kept.of_boards(age, slot_boards(shape, index, slots)))
        assert np.array_equal(stored.decode(), expected)
        assert np.array_equal(kept.bitmap(age, stored), bitmap)
        positions = np.full(len(slots), len(slots), dtype=np.int64)
        for part, places in kept.index_order(age, stored, rank_bitmap(bitmap)):
            positions[part] = np.arange(len(slots))[places]
        codes = slot_boards(shape, index, slots[positions])
        assert np.array_equal(kept.of_boards(age, codes), stored.decode())


@pytest.mark.parametrize("name", ["2x2", "2x3", "2x4", "3x3"])
def test_the_same_solution_with_either_ids(name, solved):
    paths = [solved(name), solved(name, ids="radix")]
    stores = [Store(path) for path in paths]
    by_index, by_radix = [LayerSets(store) for store in stores]
    assert by_index.counts() == by_radix.counts()
    results = [store.read_record("values/score/result.json") for store in stores]
    for result in results:
        assert result.pop("identity")  # it covers the IDs
    assert results[0] == results[1]
    assert json.loads((paths[1] / "solution.json").read_text())["ids"] == "radix"
    for age in (4, 60, by_index.max_age // 2):
        for part in ("states", "afterstates"):
            bitmaps = [sets.ids.bitmap(age, sets.open(age, part)) for sets in (by_index, by_radix)]
            assert np.array_equal(*bitmaps)


@pytest.mark.parametrize("name", ["2x2", "2x3", "2x4"])
def test_a_solution_of_radix_ids_verifies(name, solved):
    findings = verify(Store(solved(name, ids="radix")))
    assert not findings.errors
    assert any("values computed again" in check for check in findings.checks)


def test_every_answer_is_the_same_with_either_ids(solved):
    layers = naive.NaiveSolution(2, 3).states.values()
    boards = np.array([faces(state) for layer in layers for state in layer]).reshape(-1, 2, 3)
    probes = []
    for kind in ("index", "radix"):
        with open_solution(solved("2x3", values="float64", ids=kind)) as solution:
            probes.append(solution.probe(boards))
    for name, expected in vars(probes[0]).items():
        assert np.array_equal(getattr(probes[1], name), expected, equal_nan=True), name


def test_number_of_threads_does_not_show(tmp_path):
    for threads in (1, 3):
        options = SolveOptions(ids="radix", threads=threads)
        solve("2x4", tmp_path / str(threads), options)
    assert solution_bytes(tmp_path / "1") == solution_bytes(tmp_path / "3")


def test_unknown_ids(tmp_path):
    with pytest.raises(UsageError, match="'names' are neither index nor radix"):
        solve("2x2", tmp_path, SolveOptions(ids="names"))
    assert not (tmp_path / "solution.json").exists()


def test_a_directory_of_unknown_ids_is_damaged(tmp_path):
    Store(tmp_path).create({"shape": "2x2", "rules": "2048", "spawn4": 0.1, "ids": "names"})
    with pytest.raises(SolutionDamaged, match="'names' are neither index nor radix"):
        LayerSets(Store(tmp_path))
