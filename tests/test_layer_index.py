"""The perfect index: a bijection onto canonical boards, the same for a board and its flips."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from solver2048.bands import BAND_SLOTS, bands_of, slots_per_age
from solver2048.board import pack_boards, unpack_boards
from solver2048.layer_index import board_slots, build_layer_index, slot_boards
from solver2048.shape import SHAPES


def flips(tiles: np.ndarray) -> list[np.ndarray]:
    return [tiles, tiles[:, :, ::-1], tiles[:, ::-1], tiles[:, ::-1, ::-1]]


def all_boards(shape, age: int) -> np.ndarray:
    """Every board whatever of an age, reachable or not: int64[n, rows, columns]."""
    tiles = [0] + [2**e for e in range(1, shape.max_exponent + 1) if 2**e <= age]
    partial = {0: [()]}
    for _ in range(shape.num_cells):
        longer: dict[int, list[tuple[int, ...]]] = {}
        for total, boards in partial.items():
            for tile in tiles:
                if total + tile <= age:
                    longer.setdefault(total + tile, []).extend((*b, tile) for b in boards)
        partial = longer
    boards = np.array(partial.get(age, []), dtype=np.int64)
    return boards.reshape(-1, shape.num_rows, shape.num_columns)


SMALL_LAYERS = [
    *(("2x2", age) for age in range(4, 61, 2)),
    *(("2x3", age) for age in range(4, 253, 6)),
    *(("2x4", age) for age in (4, 10, 36, 64, 100)),
    *(("3x3", age) for age in (4, 8, 16, 30, 66)),
    *(("4x3", age) for age in (4, 6, 10, 16, 22)),
]


@pytest.mark.parametrize(("name", "age"), SMALL_LAYERS)
def test_index_is_a_bijection_onto_classes_of_flips(name, age):
    shape = SHAPES[name]
    index = build_layer_index(shape, age)
    tiles = all_boards(shape, age)
    assert len(tiles)
    slots = [board_slots(shape, index, pack_boards(image, shape)) for image in flips(tiles)]
    for image_slots in slots[1:]:
        assert np.array_equal(image_slots, slots[0])
    assert slots[0].max() < index.num_slots
    # As many slots as classes, and the board of a slot is one of its class with the same slot.
    codes = np.stack([pack_boards(image, shape) for image in flips(tiles)])
    used = np.unique(slots[0])
    assert len(used) == len(np.unique(codes.min(axis=0)))
    canonical = slot_boards(shape, index, used)
    assert np.array_equal(board_slots(shape, index, canonical), used)
    assert np.isin(canonical, codes).all()
    # The slots left unused lead to boards whose canonical form lies before.
    unused = np.setdiff1d(np.arange(index.num_slots, dtype=np.uint64), used)
    if len(unused):
        boards = slot_boards(shape, index, unused)
        assert (board_slots(shape, index, boards) < unused).all()
        assert (unpack_boards(boards, shape).sum(axis=(1, 2)) == age).all()


# One age in every range of the largest tile, the fullest layers, and the top.
LARGE_AGES = [30, 62, 126, 254, 510, 938, 1022, 2046, 4094, 5000, 8190, 9568, 10920, 14000, 16380]


@pytest.mark.parametrize("age", LARGE_AGES)
def test_random_slots_of_4x3_invert_and_flip(age, rng):
    shape = SHAPES["4x3"]
    index = build_layer_index(shape, age)
    slots = rng.integers(0, int(index.num_slots), 20_000).astype(np.uint64)
    codes = slot_boards(shape, index, slots)
    tiles = unpack_boards(codes, shape)
    assert (tiles.sum(axis=(1, 2)) == age).all()
    canonical = board_slots(shape, index, codes)
    assert (canonical <= slots).all()
    assert (canonical == slots).mean() > 0.5 or index.num_slots < 10_000
    for image in flips(tiles):
        assert np.array_equal(board_slots(shape, index, pack_boards(image, shape)), canonical)
    representatives = unpack_boards(slot_boards(shape, index, canonical), shape)
    same = np.zeros(len(tiles), dtype=bool)
    for image in flips(tiles):
        same |= (representatives == image).all(axis=(1, 2))
    assert same.all()


def test_slots_per_age_are_those_of_the_index():
    for name, step in (("2x2", 2), ("2x3", 6), ("2x4", 26), ("3x3", 60), ("4x3", 1500)):
        shape = SHAPES[name]
        slots = slots_per_age(shape)
        for age in range(4, shape.top_age + 1, step):
            assert slots[age // 2] == build_layer_index(shape, age).num_slots
    # Figures of the design: the fullest layer, and all of 4x3.
    assert slots_per_age(SHAPES["4x3"]).argmax() * 2 == 10_920
    assert round(slots_per_age(SHAPES["4x3"]).sum() / 1e12, 2) == 9.26


@pytest.mark.parametrize("name", SHAPES)
def test_bands_cover_every_age_once(name):
    shape = SHAPES[name]
    bands = bands_of(shape)
    ages = list(itertools.chain.from_iterable(band.ages for band in bands))
    assert ages == list(range(4, shape.top_age + 1, 2))
    slots = slots_per_age(shape)
    for band in bands[:-1]:
        sizes = [int(slots[age // 2]) for age in band.ages]
        assert sum(sizes) >= BAND_SLOTS > sum(sizes[:-1])
