"""The perfect index of a layer: all boards of one age, modulo the two flips, numbered densely.

A *block* holds the boards whose rows 0 and 1 are of two given classes; the age gives the class of
row 2. Only blocks with ``sum(row 0) >= sum(row 2)`` count (the vertical flip), and in row 0 only
rows not above their own reversal (the horizontal flip)::

    index = base[block] + (half_rank(row 0) * size(class 1) + rank(row 1)) * size(class 2)
            + rank(row 2)

Ties leave a few slots unused: the canonical board is the one with the least index among a board's
images under the flips. Square boards have eight symmetries and are indexed modulo the flips all
the same. The base table is rebuilt for each age, in milliseconds, and no ID is ever stored.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .kernels.slots import (
    codes_into,
    member_codes_into,
    number_blocks_into,
    rearrange_cells,
    slots_into,
)
from .shape import Shape
from .tables import build_tables


class LayerIndex(NamedTuple):
    """The index of one age, as kernels take it.

    bases : uint32[num_classes ** 2], first index of the block of (class of row 0, class of row 1)
    num_classes : row stride of `bases`
    block_class0, block_class1 : uint16[num_blocks], blocks in rising order of their bases
    block_base : uint64[num_blocks + 1], their first indices, then `num_slots`
    """

    age: np.uint64
    num_slots: np.uint64
    num_classes: np.uint64
    bases: NDArray[np.uint32]
    block_class0: NDArray[np.uint16]
    block_class1: NDArray[np.uint16]
    block_base: NDArray[np.uint64]


def build_layer_index(shape: Shape, age: int) -> LayerIndex:
    """The index of age `age`: its bases and its blocks. Time O(classes squared)."""
    tables = build_tables(shape)
    num_classes = int(np.searchsorted(tables.class_sum, age, side="right"))
    num_middle = min(num_classes, int(tables.num_middle_classes))
    bases = np.zeros(num_classes**2, dtype=np.uint32)
    class0s = np.empty(num_classes * num_middle, dtype=np.uint16)
    class1s = np.empty(num_classes * num_middle, dtype=np.uint16)
    block_bases = np.empty(num_classes * num_middle + 1, dtype=np.uint64)
    num_blocks, num_slots = number_blocks_into(
        tables, np.uint64(age), np.uint64(num_classes), bases, class0s, class1s, block_bases
    )
    if num_slots >= 2**32:
        raise OverflowError(f"age {age} has {num_slots} slots; bases are 32-bit")
    return LayerIndex(
        age=np.uint64(age),
        num_slots=np.uint64(num_slots),
        num_classes=np.uint64(num_classes),
        bases=bases,
        block_class0=class0s[:num_blocks].copy(),
        block_class1=class1s[:num_blocks].copy(),
        block_base=block_bases[: num_blocks + 1].copy(),
    )


def board_slots(shape: Shape, index: LayerIndex, codes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Canonical indices of packed boards, all of the index's age."""
    slots = np.empty(len(codes), dtype=np.uint64)
    slots_into(build_tables(shape), index, codes, slots)
    return slots


def slot_boards(shape: Shape, index: LayerIndex, slots: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Packed boards of slots; the inverse of `board_slots` on canonical boards."""
    codes = np.empty(len(slots), dtype=np.uint64)
    codes_into(build_tables(shape), index, slots, codes)
    return codes


def transposed_boards(shape: Shape, codes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Packed square boards, transposed."""
    transposed = np.empty_like(codes)
    rearrange_cells(codes, *transposition(shape), transposed)
    return transposed


@functools.cache
def transposition(shape: Shape) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Where cells of a square board lie, and where in its transpose; none of any other."""
    if not shape.is_square:
        return np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.uint64)
    sources = np.array(shape.cell_shifts, dtype=np.uint64)
    side = shape.num_rows
    return sources, np.ascontiguousarray(sources.reshape(side, side).T).ravel()


def member_boards(
    shape: Shape, index: LayerIndex, bitmap: NDArray[np.uint64], start: int = 0,
    stop: int | None = None,
) -> NDArray[np.uint64]:  # fmt: skip
    """Packed boards of the members among words ``[start, stop)`` of a bitmap, in index order."""
    stop = len(bitmap) if stop is None else stop
    count = int(np.bitwise_count(bitmap[start:stop]).sum(dtype=np.int64))
    codes = np.empty(count, dtype=np.uint64)
    member_codes_into(build_tables(shape), index, bitmap, np.uint64(start), np.uint64(stop), codes)
    return codes
