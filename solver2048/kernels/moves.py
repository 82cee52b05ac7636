"""Moves: from the states of one age to its afterstates."""

from __future__ import annotations

import numpy as np

from elias_fano.bits import (
    EIGHT,
    FOUR,
    ONE,
    SIX,
    TWELVE,
    TWO,
    WORD_BITS,
    ZERO,
    bits_at,
    or_bit,
    or_bits,
    popcount,
    prefetch,
    trailing_zeros,
)
from elias_fano.jit import inlined, kernel

from ..tables import (
    CLASS_SHIFT,
    LEFT_CHANGES_SHIFT,
    RANK_MASK,
    RIGHT_CHANGES_SHIFT,
)
from .slots import (
    CELL_MASK,
    ROW0_SHIFT,
    ROW1_SHIFT,
    ROW_MASK,
    block_at,
    canonical_code_slot,
    find_block,
    first_strip,
    segment_slot,
)

# Vertical targets are collected, and prefetched, in batches: their cache misses then overlap.
BATCH = np.uint64(256)
TARGET_BUFFER = 256 + 2 * 64
"""Size of a batch's buffers: a segment's vertical moves may come on top of an unfinished batch."""

BYTE_MASK = np.uint64(255)
BYTE_VALUES = np.uint64(256)
COLUMN_ROW0_SHIFT = np.uint64(9)
COLUMN_ROW1_SHIFT = np.uint64(5)


@inlined
def column_offset(row0, row1, shift):
    """Index into `column_moves` of the column at bit `shift`, its lowest cell empty, moved up."""
    return (row0 >> shift & CELL_MASK) << COLUMN_ROW0_SHIFT | (
        row1 >> shift & CELL_MASK
    ) << COLUMN_ROW1_SHIFT


@inlined
def move_columns(column_moves, offset0, offset1, offset2, offset3, row2):
    """The packed board moved up, or down where the offsets are odd; see `column_offset`."""
    return (
        column_moves[offset0 | row2 >> TWELVE << ONE] << TWELVE
        | column_moves[offset1 | (row2 >> EIGHT & CELL_MASK) << ONE] << EIGHT
        | column_moves[offset2 | (row2 >> FOUR & CELL_MASK) << ONE] << FOUR
        | column_moves[offset3 | (row2 & CELL_MASK) << ONE]
    )


@inlined
def vertical_move(tables, row0, row1, row2, down):
    """The packed board moved up (`down` = 0) or down (`down` = 1)."""
    return move_columns(
        tables.column_moves,
        column_offset(row0, row1, TWELVE) | down,
        column_offset(row0, row1, EIGHT) | down,
        column_offset(row0, row1, FOUR) | down,
        column_offset(row0, row1, ZERO) | down,
        row2,
    )


@inlined
def row_ordinal(tables, row):
    info = tables.row_info[row]
    return tables.class_start[info >> CLASS_SHIFT] + (info & RANK_MASK)


@inlined
def horizontal_move(tables, row0, row1, row2, right):
    """The packed board moved left (`right` = 0) or right (`right` = 1)."""
    slid_rows = tables.right_rows if right else tables.left_rows
    return (
        np.uint64(slid_rows[row_ordinal(tables, row0)]) << ROW0_SHIFT
        | np.uint64(slid_rows[row_ordinal(tables, row1)]) << ROW1_SHIFT
        | np.uint64(slid_rows[row_ordinal(tables, row2)])
    )


@inlined
def moved_board(tables, code, action):
    """A packed board after an action; the board itself where that is illegal."""
    row0 = code >> ROW0_SHIFT
    row1 = code >> ROW1_SHIFT & ROW_MASK
    row2 = code & ROW_MASK
    direction = np.uint64(action & 1)
    if action < 2:
        return vertical_move(tables, row0, row1, row2, direction)
    return horizontal_move(tables, row0, row1, row2, direction)


@inlined
def map_segment(segment_map, start, segment):
    """The image of a segment under a segment map of `tables`; `start` is its class's."""
    image = ZERO
    while segment:
        image |= segment_map[start | segment & BYTE_MASK]
        segment >>= EIGHT
        start += BYTE_VALUES
    return image


@inlined
def mark_segment(tables, base, info0, info1, class2, segment, bitmap):
    """Mark a segment of a block, given its upper rows' `row_info`, modulo the horizontal flip.

    base : first slot of the block
    segment : by rank of row 2 in `class2`, whose sum is below that of row 0
    """
    slot, is_mirrored, is_folded = segment_slot(base, info0, info1, tables.class_size[class2])
    if is_mirrored:
        segment = map_segment(tables.mirror_map, tables.class_map_start[class2], segment)
    elif is_folded:
        segment = map_segment(tables.fold_map, tables.class_map_start[class2], segment)
    or_bits(bitmap, slot, segment)


@kernel
def _mark_slides_one_by_one(tables, index, row0, row1, start2, segment, afterstates):
    """Mark the horizontal moves of a segment's states by their codes; returns the legal ones."""
    legal = ZERO
    rest = segment
    while rest:
        rank2 = trailing_zeros(rest)
        rest &= rest - ONE
        row2 = np.uint64(tables.rows[start2 + rank2])
        code = row0 << ROW0_SHIFT | row1 << ROW1_SHIFT | row2
        for right in range(TWO):
            moved = horizontal_move(tables, row0, row1, row2, right)
            if moved != code:
                or_bit(afterstates, canonical_code_slot(tables, index, moved))
                legal |= ONE << rank2
    return legal


@inlined
def _mark_slide(
    tables, base, slid_rows, slide_map, ordinal0, ordinal1, class2, segment, afterstates
):
    """Mark one horizontal move of a segment's states all at once.

    It keeps every row sum, so the targets lie in the same block.
    """
    slid = map_segment(slide_map, tables.class_map_start[class2], segment)
    slid0 = tables.row_info[slid_rows[ordinal0]]
    slid1 = tables.row_info[slid_rows[ordinal1]]
    mark_segment(tables, base, slid0, slid1, class2, slid, afterstates)


@inlined
def _mark_slides(tables, base, ordinal0, ordinal1, class2, segment, afterstates):
    """Mark both horizontal moves of a segment's states; returns the states with a legal one."""
    changes = tables.slides[ordinal0] | tables.slides[ordinal1]
    left = right = segment
    if not changes >> LEFT_CHANGES_SHIFT & ONE:
        left &= tables.class_left_changes[class2]
    if not changes >> RIGHT_CHANGES_SHIFT & ONE:
        right &= tables.class_right_changes[class2]
    if left:
        _mark_slide(
            tables, base, tables.left_rows, tables.left_map, ordinal0, ordinal1, class2, left,
            afterstates,
        )  # fmt: skip
    if right:
        _mark_slide(
            tables, base, tables.right_rows, tables.right_map, ordinal0, ordinal1, class2, right,
            afterstates,
        )  # fmt: skip
    return left | right


@inlined
def _mark_batch(tables, index, bitmap, boards, count):
    """Mark packed boards; overwrites `boards`. In two loops, so that cache misses overlap."""
    for i in range(count):
        boards[i] = canonical_code_slot(tables, index, boards[i])
        prefetch(bitmap, boards[i] >> SIX)
    for i in range(count):
        or_bit(bitmap, boards[i])


@kernel
def mark_moves(tables, index, states, afterstates, targets, start, stop):
    """Mark the canonical index of every legal move of the states in ``[start, stop)``.

    A *strip*, the slots of a block that share row 0, belongs to the range that holds its first
    slot; a *segment* shares rows 0 and 1, and what depends on these alone is computed once.
    states : bitmap of one layer in index order
    afterstates : bitmap of the same layer; safe to call from several threads
    targets : uint64[TARGET_BUFFER], scratch of the calling thread
    Returns num_terminal. Time O(slots / 64 + states).
    """
    num_terminal = ZERO
    num_targets = ZERO
    block = find_block(index, start)
    while block < np.uint64(len(index.block_class0)) and index.block_base[block] < stop:
        base, class0, _, class2, size1, size2, start1, start2 = block_at(tables, index, block)
        # Ties have a second canonical orientation; the largest classes do not fit a word.
        one_by_one = class0 == class2 or size2 > WORD_BITS
        strip = size1 * size2
        half = first_strip(base, strip, start)
        while half < tables.class_half_size[class0] and base + half * strip < stop:
            ordinal0 = np.uint64(tables.half_ordinals[tables.class_half_start[class0] + half])
            row0 = np.uint64(tables.rows[ordinal0])
            for offset in range(ZERO, size2, WORD_BITS):
                width = min(WORD_BITS, size2 - offset)
                for rank1 in range(size1):
                    segment = bits_at(
                        states, base + half * strip + rank1 * size2 + offset,
                        width,
                    )  # fmt: skip
                    if segment == ZERO:
                        continue
                    row1 = np.uint64(tables.rows[start1 + rank1])
                    if one_by_one:
                        legal = _mark_slides_one_by_one(
                            tables, index, row0, row1, start2 + offset, segment, afterstates
                        )
                    else:
                        legal = _mark_slides(
                            tables, base, ordinal0, start1 + rank1, class2, segment, afterstates
                        )
                    offset0 = column_offset(row0, row1, TWELVE)
                    offset1 = column_offset(row0, row1, EIGHT)
                    offset2 = column_offset(row0, row1, FOUR)
                    offset3 = column_offset(row0, row1, ZERO)
                    row01 = row0 << ROW0_SHIFT | row1 << ROW1_SHIFT
                    rest = segment
                    while rest:
                        rank2 = trailing_zeros(rest)
                        rest &= rest - ONE
                        row2 = np.uint64(tables.rows[start2 + offset + rank2])
                        for down in range(TWO):
                            moved = move_columns(
                                tables.column_moves,
                                offset0 | down, offset1 | down, offset2 | down, offset3 | down,
                                row2,
                            )  # fmt: skip
                            # Always written, kept only if legal: no branch to predict.
                            is_legal = np.uint64(moved != (row01 | row2))
                            targets[num_targets] = moved
                            num_targets += is_legal
                            legal |= is_legal << rank2
                    num_terminal += popcount(segment & ~legal)
                    if num_targets >= BATCH:
                        _mark_batch(tables, index, afterstates, targets, num_targets)
                        num_targets = ZERO
            half += ONE
        block += ONE
    _mark_batch(tables, index, afterstates, targets, num_targets)
    return num_terminal


@inlined
def is_terminal(tables, code):
    """Whether a packed board has no legal move."""
    row0 = code >> ROW0_SHIFT
    row1 = code >> ROW1_SHIFT & ROW_MASK
    row2 = code & ROW_MASK
    for direction in range(TWO):
        if horizontal_move(tables, row0, row1, row2, direction) != code:
            return False
        if vertical_move(tables, row0, row1, row2, direction) != code:
            return False
    return True


@inlined
def move_all(tables, code, moved):
    """Fill `moved`, uint64[4], with a packed board after each action; itself if illegal."""
    row0 = code >> ROW0_SHIFT
    row1 = code >> ROW1_SHIFT & ROW_MASK
    row2 = code & ROW_MASK
    for direction in range(TWO):
        moved[direction] = vertical_move(tables, row0, row1, row2, direction)
        moved[TWO + direction] = horizontal_move(tables, row0, row1, row2, direction)


@kernel
def moves_into(tables, potentials, codes, moved, rewards):
    """All four moves of boards: up, down, left, right of the packed board.

    potentials : float64[num_rows], the merge potential by ordinal
    codes : uint64[n]
    moved : uint64[n, 4], the boards moved; the board itself where the move is illegal
    rewards : float64[n, 4]
    """
    for i in range(len(codes)):
        move_all(tables, codes[i], moved[i])
        before = board_potential(tables, potentials, codes[i])
        for action in range(FOUR):
            rewards[i, action] = board_potential(tables, potentials, moved[i, action]) - before


@inlined
def board_potential(tables, potentials, code):
    """The sum of a potential over the rows of a packed board."""
    return (
        potentials[row_ordinal(tables, code >> ROW0_SHIFT)]
        + potentials[row_ordinal(tables, code >> ROW1_SHIFT & ROW_MASK)]
        + potentials[row_ordinal(tables, code & ROW_MASK)]
    )
