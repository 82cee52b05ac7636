"""Values, one age at a time and downward: of afterstates from the states their spawns lead to, of
states from the afterstates their moves lead to.

Values are kept as ``w = v + potential(board)``, with a potential that adds up over rows (see
`solver2048.objective`). For the score it is what merging has earned so far, up to the 4s spawned:
rewards drop out of the maximum and every move and every 2 leaves it alone. All values of a layer
are in index order, at the rank of their board among the layer's members.
"""

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
    popcount,
    prefetch,
    trailing_zeros,
)
from elias_fano.jit import inlined, kernel
from elias_fano.ranked import rank_at, ranked_bits_at

from ..tables import (
    CELL_BITS,
    EMPTY_SHIFT,
    LEFT_CHANGES_SHIFT,
    RANK_BITS,
    RANK_MASK,
    RIGHT_CHANGES_SHIFT,
    SLIDE_STRIDE,
)
from .moves import BATCH, column_offset, horizontal_move, move_columns
from .slots import (
    ROW0_SHIFT,
    ROW1_SHIFT,
    block_at,
    block_base,
    canonical_code_slot,
    find_block,
    first_strip,
    segment_slot,
)
from .spawns import (
    empty_board_cells,
    rows_one_by_one,
    spawned_board,
    spawned_class,
    spawned_row,
)


@inlined
def add_segment_values(tables, target, info0, info1, class2, segment, states, state_values, sums):
    """Add to `sums` the values of a segment's boards after its upper rows have changed."""
    size2 = tables.class_size[class2]
    base = block_base(target, info0, info1)
    slot, is_mirrored, is_folded = segment_slot(base, info0, info1, size2)
    members = ranked_bits_at(states, slot, size2)
    first = rank_at(states, slot)
    start2 = tables.class_start[class2]
    i = ZERO
    while segment:
        rank2 = trailing_zeros(segment)
        segment &= segment - ONE
        if is_mirrored:
            rank2 = np.uint64(tables.mirror_ranks[start2 + rank2])
        elif is_folded:
            rank2 = min(rank2, np.uint64(tables.mirror_ranks[start2 + rank2]))
        sums[i] += state_values[first + popcount(members & ((ONE << rank2) - ONE))]
        i += ONE


@kernel
def _add_values_one_by_one(
    tables, target, row0, row1, start2, segment, exponent, rows, states, state_values, sums
):
    """Add to `sums` the values after spawns into the given rows (a mask), board by board."""
    i = ZERO
    while segment:
        row2 = np.uint64(tables.rows[start2 + trailing_zeros(segment)])
        segment &= segment - ONE
        code = row0 << ROW0_SHIFT | row1 << ROW1_SHIFT | row2
        cells = empty_board_cells(tables, row0, row1, row2, rows)
        while cells:
            spawned = spawned_board(code, trailing_zeros(cells), exponent)
            cells &= cells - ONE
            slot = canonical_code_slot(tables, target, spawned)
            sums[i] += state_values[rank_at(states, slot)]
        i += ONE


@kernel
def add_spawn_values(
    tables,
    index,
    target,
    exponent,
    weight,
    afterstates,
    states,
    state_values,
    values,
    sums,
    start,
    stop,
):
    """Add ``weight * mean over the empty cells`` of the values after a spawn of one tile.

    target, exponent : as in `mark_spawns`
    afterstates, states : ranked bitmaps of the layer and of the target layer
    state_values : float64[number of states of the target layer]
    values : float64[number of afterstates], added to in ``[start, stop)``, a range of slots
    sums : float64[64], scratch of the calling thread
    """
    rank_shift = RANK_BITS * (exponent - ONE)
    block = find_block(index, start)
    while block < np.uint64(len(index.block_class0)) and index.block_base[block] < stop:
        base, class0, _, class2, size1, size2, start1, start2 = block_at(tables, index, block)
        target_class2 = spawned_class(tables, class2, exponent)
        target_start2 = tables.class_start[target_class2]
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
                    slot = base + half * strip + rank1 * size2 + offset
                    segment = ranked_bits_at(afterstates, slot, width)
                    if segment == ZERO:
                        continue
                    row1 = np.uint64(tables.rows[start1 + rank1])
                    info1 = tables.row_info[row1]
                    empty1 = (
                        tables.spawn_ranks[start1 + rank1] >> EMPTY_SHIFT & tables.middle_empty_mask
                    )
                    for i in range(popcount(segment)):
                        sums[i] = 0.0
                    if one_by_one:
                        _add_values_one_by_one(
                            tables, target, row0, row1, start2 + offset, segment, exponent,
                            one_by_one, states, state_values, sums,
                        )  # fmt: skip
                    cells = ZERO if one_by_one & ONE else empty0
                    while cells:
                        spawned = tables.row_info[
                            spawned_row(row0, trailing_zeros(cells), exponent)
                        ]
                        cells &= cells - ONE
                        add_segment_values(tables, target, spawned, info1, class2, segment, states,
                                           state_values, sums)  # fmt: skip
                    cells = ZERO if one_by_one & TWO else empty1
                    while cells:
                        spawned = tables.row_info[
                            spawned_row(row1, trailing_zeros(cells), exponent)
                        ]
                        cells &= cells - ONE
                        add_segment_values(tables, target, info0, spawned, class2, segment, states,
                                           state_values, sums)  # fmt: skip
                    members = first = ZERO
                    is_folded = False
                    in_row2 = not one_by_one & FOUR and target_class2 != ZERO
                    if in_row2:
                        target_size2 = tables.class_size[target_class2]
                        target_slot, _, is_folded = segment_slot(
                            block_base(target, info0, info1), info0, info1, target_size2
                        )
                        members = ranked_bits_at(states, target_slot, target_size2)
                        first = rank_at(states, target_slot)
                    num_empty01 = popcount(empty0) + popcount(empty1)
                    position = rank_at(afterstates, slot)
                    i = ZERO
                    while segment:
                        word = tables.spawn_ranks[start2 + offset + trailing_zeros(segment)]
                        segment &= segment - ONE
                        empty2 = word >> EMPTY_SHIFT
                        num_empty = num_empty01 + popcount(empty2)
                        while in_row2 and empty2:
                            cell = trailing_zeros(empty2)
                            empty2 &= empty2 - ONE
                            rank2 = word >> (CELL_BITS * cell + rank_shift) & RANK_MASK
                            if is_folded:
                                rank2 = min(
                                    rank2, np.uint64(tables.mirror_ranks[target_start2 + rank2])
                                )
                            sums[i] += state_values[
                                first + popcount(members & ((ONE << rank2) - ONE))
                            ]
                        values[position + i] += weight * (sums[i] / np.float64(num_empty))
                        i += ONE
            half += ONE
        block += ONE


@inlined
def slid_value(slides2, shift, is_mirrored, is_folded, members, first, values):
    """Value of a board after a slide, from its row 2's word of `slides` and its target segment."""
    rank = slides2 >> shift & RANK_MASK
    mirror = slides2 >> (shift + RANK_BITS) & RANK_MASK
    if is_mirrored or (is_folded and mirror < rank):
        rank = mirror
    return values[first + popcount(members & ((ONE << rank) - ONE))]


@kernel
def _best_slide_one_by_one(tables, index, row0, row1, row2, afterstates, values, best):
    """The greater of `best` and the values of a board's legal horizontal moves."""
    code = row0 << ROW0_SHIFT | row1 << ROW1_SHIFT | row2
    for right in range(TWO):
        moved = horizontal_move(tables, row0, row1, row2, right)
        if moved != code:
            slot = canonical_code_slot(tables, index, moved)
            best = max(best, values[rank_at(afterstates, slot)])
    return best


@inlined
def _raise_batch(tables, index, afterstates, values, targets, positions, count, state_values):
    """Raise each state's value to that of its move's afterstate; overwrites `targets`.

    In three loops, board to slot to position to value, so that cache misses overlap.
    """
    for i in range(count):
        targets[i] = canonical_code_slot(tables, index, targets[i])
        prefetch(afterstates, targets[i] >> SIX << ONE)
    for i in range(count):
        targets[i] = rank_at(afterstates, targets[i])
        prefetch(values, targets[i])
    for i in range(count):
        value = values[targets[i]]
        if value > state_values[positions[i]]:
            state_values[positions[i]] = value


@kernel
def best_moves(
    tables,
    index,
    floors,
    floor_cap,
    states,
    afterstates,
    values,
    state_values,
    targets,
    positions,
    start,
    stop,
):
    """Fill `state_values` with the best legal move's value, or the floor if that is greater.

    floors : float64[num_rows], by ordinal; a board's floor is the sum over its rows, at most
        `floor_cap`: the value of a terminal board, and never above that of another
    states, afterstates : ranked bitmaps of the layer
    values : float64[number of afterstates]
    state_values : float64[number of states], filled in ``[start, stop)``, a range of slots
    targets, positions : uint64[TARGET_BUFFER], scratch of the calling thread
    """
    num_targets = ZERO
    block = find_block(index, start)
    while block < np.uint64(len(index.block_class0)) and index.block_base[block] < stop:
        base, class0, _, class2, size1, size2, start1, start2 = block_at(tables, index, block)
        one_by_one = class0 == class2 or size2 > WORD_BITS
        strip = size1 * size2
        half = first_strip(base, strip, start)
        while half < tables.class_half_size[class0] and base + half * strip < stop:
            ordinal0 = np.uint64(tables.half_ordinals[tables.class_half_start[class0] + half])
            row0 = np.uint64(tables.rows[ordinal0])
            left0 = tables.row_info[tables.left_rows[ordinal0]]
            right0 = tables.row_info[tables.right_rows[ordinal0]]
            for offset in range(ZERO, size2, WORD_BITS):
                width = min(WORD_BITS, size2 - offset)
                for rank1 in range(size1):
                    slot = base + half * strip + rank1 * size2 + offset
                    segment = ranked_bits_at(states, slot, width)
                    if segment == ZERO:
                        continue
                    row1 = np.uint64(tables.rows[start1 + rank1])
                    floor01 = floors[ordinal0] + floors[start1 + rank1]
                    left_members = left_first = right_members = right_first = ZERO
                    left_mirrored = left_folded = right_mirrored = right_folded = False
                    left_changes = right_changes = ZERO
                    if not one_by_one:
                        left1 = tables.row_info[tables.left_rows[start1 + rank1]]
                        right1 = tables.row_info[tables.right_rows[start1 + rank1]]
                        left_slot, left_mirrored, left_folded = segment_slot(
                            base, left0, left1, size2
                        )
                        left_members = ranked_bits_at(afterstates, left_slot, size2)
                        left_first = rank_at(afterstates, left_slot)
                        right_slot, right_mirrored, right_folded = segment_slot(
                            base, right0, right1, size2
                        )
                        right_members = ranked_bits_at(afterstates, right_slot, size2)
                        right_first = rank_at(afterstates, right_slot)
                        changes = np.uint64(tables.slides[ordinal0] | tables.slides[start1 + rank1])
                        left_changes = changes >> LEFT_CHANGES_SHIFT & ONE
                        right_changes = changes >> RIGHT_CHANGES_SHIFT & ONE
                    offset0 = column_offset(row0, row1, TWELVE)
                    offset1 = column_offset(row0, row1, EIGHT)
                    offset2 = column_offset(row0, row1, FOUR)
                    offset3 = column_offset(row0, row1, ZERO)
                    row01 = row0 << ROW0_SHIFT | row1 << ROW1_SHIFT
                    position = rank_at(states, slot)
                    while segment:
                        ordinal2 = start2 + offset + trailing_zeros(segment)
                        segment &= segment - ONE
                        row2 = np.uint64(tables.rows[ordinal2])
                        best = min(floor01 + floors[ordinal2], floor_cap)
                        if one_by_one:
                            best = _best_slide_one_by_one(
                                tables, index, row0, row1, row2, afterstates, values, best
                            )
                        else:
                            slides2 = np.uint64(tables.slides[ordinal2])
                            if left_changes | (slides2 >> LEFT_CHANGES_SHIFT & ONE):
                                best = max(best, slid_value(
                                    slides2, ZERO, left_mirrored, left_folded, left_members,
                                    left_first, values))  # fmt: skip
                            if right_changes | (slides2 >> RIGHT_CHANGES_SHIFT & ONE):
                                best = max(best, slid_value(
                                    slides2, SLIDE_STRIDE, right_mirrored, right_folded,
                                    right_members, right_first, values))  # fmt: skip
                        state_values[position] = best
                        for down in range(TWO):
                            moved = move_columns(
                                tables.column_moves,
                                offset0 | down, offset1 | down, offset2 | down, offset3 | down,
                                row2,
                            )  # fmt: skip
                            # Always written, kept only if legal: no branch to predict.
                            targets[num_targets] = moved
                            positions[num_targets] = position
                            num_targets += np.uint64(moved != (row01 | row2))
                        position += ONE
                    if num_targets >= BATCH:
                        _raise_batch(
                            tables,
                            index,
                            afterstates,
                            values,
                            targets,
                            positions,
                            num_targets,
                            state_values,
                        )
                        num_targets = ZERO
            half += ONE
        block += ONE
    _raise_batch(tables, index, afterstates, values, targets, positions, num_targets, state_values)


@kernel
def subtract_potential(tables, index, potentials, members, values, start, stop):
    """Subtract its potential from the value of every member in ``[start, stop)``.

    potentials : float64[num_rows], by ordinal; a board's potential is the sum over its rows
    members : ranked bitmap of the layer
    """
    block = find_block(index, start)
    while block < np.uint64(len(index.block_class0)) and index.block_base[block] < stop:
        base, class0, _, _, size1, size2, start1, start2 = block_at(tables, index, block)
        strip = size1 * size2
        half = first_strip(base, strip, start)
        while half < tables.class_half_size[class0] and base + half * strip < stop:
            ordinal0 = np.uint64(tables.half_ordinals[tables.class_half_start[class0] + half])
            for offset in range(ZERO, size2, WORD_BITS):
                width = min(WORD_BITS, size2 - offset)
                for rank1 in range(size1):
                    slot = base + half * strip + rank1 * size2 + offset
                    segment = ranked_bits_at(members, slot, width)
                    position = rank_at(members, slot)
                    upper = potentials[ordinal0] + potentials[start1 + rank1]
                    while segment:
                        ordinal2 = start2 + offset + trailing_zeros(segment)
                        segment &= segment - ONE
                        values[position] -= upper + potentials[ordinal2]
                        position += ONE
            half += ONE
        block += ONE


@kernel
def positions_into(members, slots, positions):
    """Fill `positions` with the rank of every slot among the members of a ranked bitmap."""
    for i in range(len(slots)):
        positions[i] = rank_at(members, slots[i])
