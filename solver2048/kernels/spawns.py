"""Spawns: from the afterstates of one age to the states of a later one."""

from __future__ import annotations

import numpy as np

from elias_fano.bits import (
    EIGHT,
    FOUR,
    ONE,
    TWELVE,
    TWO,
    WORD_BITS,
    ZERO,
    bits_at,
    or_bit,
    trailing_zeros,
)
from elias_fano.jit import inlined, kernel

from ..tables import EMPTY_SHIFT
from .moves import map_segment, mark_segment, row_ordinal
from .slots import (
    ROW0_SHIFT,
    ROW1_SHIFT,
    ROW_MASK,
    block_at,
    block_base,
    canonical_code_slot,
    find_block,
    first_strip,
)

THREE = np.uint64(3)
ALL_ROWS = np.uint64(7)
FIRST_CELL_SHIFT = np.uint64(44)


@inlined
def empty_cells(tables, row):
    """Mask of the empty cells of row 0 or 2."""
    return tables.spawn_ranks[row_ordinal(tables, row)] >> EMPTY_SHIFT


@inlined
def spawned_row(row, cell, exponent):
    """The row with a tile of `exponent` in an empty cell."""
    return row | exponent << (TWELVE - FOUR * cell)


@inlined
def spawned_class(tables, class2, exponent):
    """A row's class after a spawn, class 0 if no row has that sum."""
    spawned = tables.class_of_half_sum[(tables.class_sum[class2] + (ONE << exponent)) >> ONE]
    return np.uint64(max(spawned, 0))


@inlined
def rows_one_by_one(tables, class0, class2, target_class2):
    """Mask of the rows whose spawns, in one block, cannot be treated by whole segments.

    Those that meet or make a tie or the vertical flip, and those of the largest classes, which do
    not fit a word.
    """
    if tables.class_size[class2] > WORD_BITS:
        return ALL_ROWS
    rows = ZERO
    if class0 == class2:
        rows |= TWO
    if target_class2 >= class0 or tables.class_size[target_class2] > WORD_BITS:
        rows |= FOUR
    return rows


@inlined
def empty_board_cells(tables, row0, row1, row2, rows):
    """Mask of a board's empty cells, four bits a row, in the given rows (a mask)."""
    cells = ZERO
    if rows & ONE:
        cells |= empty_cells(tables, row0)
    if rows & TWO:
        cells |= (empty_cells(tables, row1) & tables.middle_empty_mask) << FOUR
    if rows & FOUR:
        cells |= empty_cells(tables, row2) << EIGHT
    return cells


@inlined
def empty_code_cells(tables, code):
    """`empty_board_cells` of all rows of a packed board."""
    return empty_board_cells(
        tables, code >> ROW0_SHIFT, code >> ROW1_SHIFT & ROW_MASK, code & ROW_MASK, ALL_ROWS
    )


@inlined
def spawned_board(code, cell, exponent):
    """The packed board with a tile in a cell of `empty_board_cells`."""
    return code | exponent << (FIRST_CELL_SHIFT - (cell >> TWO << FOUR) - ((cell & THREE) << TWO))


@kernel
def _mark_spawns_one_by_one(tables, target, row0, row1, start2, segment, exponent, rows, states):
    """Mark the spawns into the given rows (a mask) of a segment's afterstates by their codes."""
    while segment:
        row2 = np.uint64(tables.rows[start2 + trailing_zeros(segment)])
        segment &= segment - ONE
        code = row0 << ROW0_SHIFT | row1 << ROW1_SHIFT | row2
        cells = empty_board_cells(tables, row0, row1, row2, rows)
        while cells:
            spawned = spawned_board(code, trailing_zeros(cells), exponent)
            cells &= cells - ONE
            or_bit(states, canonical_code_slot(tables, target, spawned))


@kernel
def mark_spawns(tables, index, target, exponent, afterstates, states, start, stop):
    """Mark the canonical index of every spawn of a tile on the afterstates in ``[start, stop)``.

    Strips and segments are those of `mark_moves`. A spawn into row 0 or 1 shifts a whole segment;
    one into row 2 stays in its block of the target layer.
    target : index of the age that the tile leads to
    exponent : 1 or 2, for a 2 or a 4
    afterstates : bitmap of one layer in index order
    states : bitmap of the target layer; safe to call from several threads
    Time O(slots / 64 + afterstates).
    """
    spawn_map = tables.spawn2_map if exponent == ONE else tables.spawn4_map
    block = find_block(index, start)
    while block < np.uint64(len(index.block_class0)) and index.block_base[block] < stop:
        base, class0, class1, class2, size1, size2, start1, start2 = block_at(tables, index, block)
        target_class2 = spawned_class(tables, class2, exponent)
        target_base = np.uint64(target.bases[class0 * target.num_classes + class1])
        one_by_one = rows_one_by_one(tables, class0, class2, target_class2)
        strip = size1 * size2
        half = first_strip(base, strip, start)
        while half < tables.class_half_size[class0] and base + half * strip < stop:
            ordinal0 = np.uint64(tables.half_ordinals[tables.class_half_start[class0] + half])
            row0 = np.uint64(tables.rows[ordinal0])
            info0 = tables.row_info[row0]
            empty0 = tables.spawn_ranks[ordinal0] >> EMPTY_SHIFT
            for offset in range(ZERO, size2, WORD_BITS):
                width = min(WORD_BITS, size2 - offset)
                for rank1 in range(size1):
                    segment = bits_at(
                        afterstates, base + half * strip + rank1 * size2 + offset,
                        width,
                    )  # fmt: skip
                    if segment == ZERO:
                        continue
                    row1 = np.uint64(tables.rows[start1 + rank1])
                    info1 = tables.row_info[row1]
                    if one_by_one:
                        _mark_spawns_one_by_one(
                            tables, target, row0, row1, start2 + offset, segment, exponent,
                            one_by_one, states,
                        )  # fmt: skip
                    cells = ZERO if one_by_one & ONE else empty0
                    while cells:
                        spawned = tables.row_info[
                            spawned_row(row0, trailing_zeros(cells), exponent)
                        ]
                        cells &= cells - ONE
                        upper = block_base(target, spawned, info1)
                        mark_segment(tables, upper, spawned, info1, class2, segment, states)
                    cells = (
                        tables.spawn_ranks[start1 + rank1] >> EMPTY_SHIFT & tables.middle_empty_mask
                    )
                    cells = ZERO if one_by_one & TWO else cells
                    while cells:
                        spawned = tables.row_info[
                            spawned_row(row1, trailing_zeros(cells), exponent)
                        ]
                        cells &= cells - ONE
                        upper = block_base(target, info0, spawned)
                        mark_segment(tables, upper, info0, spawned, class2, segment, states)
                    if not one_by_one & FOUR and target_class2:
                        spawned = map_segment(spawn_map, tables.class_map_start[class2], segment)
                        mark_segment(
                            tables, target_base, info0, info1, target_class2, spawned, states
                        )
            half += ONE
        block += ONE
