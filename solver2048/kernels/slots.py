"""Slots of boards in the perfect index of a layer, and boards of slots; see `..layer_index`."""

from __future__ import annotations

import numpy as np

from elias_fano.bits import ONE, SIX, WORD_MASK, ZERO, trailing_zeros
from elias_fano.jit import inlined, kernel

from ..tables import (
    CLASS_SHIFT,
    HALF_SHIFT,
    MIRROR_OFFSET_MASK,
    MIRROR_OFFSET_SHIFT,
    MIRROR_SHIFT,
    PALINDROME_SHIFT,
    RANK_MASK,
    SIZE_SHIFT,
)

ROW_MASK = np.uint64(0xFFFF)
ROW1_SHIFT = np.uint64(16)
ROW0_SHIFT = np.uint64(32)
CELL_MASK = np.uint64(15)


@kernel
def number_blocks_into(tables, age, num_classes, bases, class0s, class1s, block_bases):
    """Give every block of an age its base; returns (number of blocks, number of slots)."""
    num_blocks = ZERO
    base = ZERO
    num_middle = min(num_classes, tables.num_middle_classes)
    for class0 in range(num_classes):
        sum0 = tables.class_sum[class0]
        for class1 in range(num_middle):
            sum01 = sum0 + tables.class_sum[class1]
            if sum01 > age:
                break
            sum2 = age - sum01
            class2 = tables.class_of_half_sum[sum2 >> ONE]
            if sum2 > sum0 or class2 < 0:
                continue
            bases[class0 * num_classes + class1] = base
            class0s[num_blocks] = class0
            class1s[num_blocks] = class1
            block_bases[num_blocks] = base
            num_blocks += ONE
            base += (
                tables.class_half_size[class0] * tables.class_size[class1]
                * tables.class_size[np.uint64(class2)]
            )  # fmt: skip
    block_bases[num_blocks] = base
    return num_blocks, base


@inlined
def _oriented_slot(base, info0, info1, info2):
    """Index of a board, modulo the horizontal flip, given its rows' `row_info`."""
    # No branch on whether row 0 is reversed: it would be a coin toss.
    shift = info0 >> MIRROR_OFFSET_SHIFT & MIRROR_OFFSET_MASK
    rank1 = info1 >> shift & RANK_MASK
    rank2 = info2 >> shift & RANK_MASK
    if info0 >> PALINDROME_SHIFT & ONE:
        mirror1 = info1 >> MIRROR_SHIFT & RANK_MASK
        mirror2 = info2 >> MIRROR_SHIFT & RANK_MASK
        if mirror1 < rank1 or (mirror1 == rank1 and mirror2 < rank2):
            rank1 = mirror1
            rank2 = mirror2
    row01 = (info0 >> HALF_SHIFT & RANK_MASK) * (info1 >> SIZE_SHIFT & RANK_MASK) + rank1
    return base + row01 * (info2 >> SIZE_SHIFT & RANK_MASK) + rank2


@inlined
def canonical_slot(tables, index, row0, row1, row2):
    """Index of a board's canonical form in the layer of its age; rows are uint64 row codes."""
    # The class is the highest field: the greater word is of the row with the greater sum.
    upper = max(tables.row_info[row0], tables.row_info[row2])
    lower = min(tables.row_info[row0], tables.row_info[row2])
    middle = tables.row_info[row1]
    block = (upper >> CLASS_SHIFT) * index.num_classes + (middle >> CLASS_SHIFT)
    base = np.uint64(index.bases[block])
    slot = _oriented_slot(base, upper, middle, lower)
    if upper >> CLASS_SHIFT == lower >> CLASS_SHIFT:
        slot = min(slot, _oriented_slot(base, lower, middle, upper))
    return slot


@inlined
def canonical_code_slot(tables, index, code):
    """`canonical_slot` of a packed board."""
    return canonical_slot(
        tables, index, code >> ROW0_SHIFT, code >> ROW1_SHIFT & ROW_MASK, code & ROW_MASK
    )


@inlined
def find_block(index, slot):
    """Number of the block that holds `slot`, which must be below the number of slots."""
    low = ZERO
    high = np.uint64(len(index.block_class0))
    while high - low > ONE:
        middle = (low + high) >> ONE
        if index.block_base[middle] <= slot:
            low = middle
        else:
            high = middle
    return low


@inlined
def block_at(tables, index, block):
    """(first slot, classes of rows 0, 1 and 2, sizes and first ordinals of the last two)."""
    class0 = np.uint64(index.block_class0[block])
    class1 = np.uint64(index.block_class1[block])
    sum2 = index.age - tables.class_sum[class0] - tables.class_sum[class1]
    class2 = np.uint64(tables.class_of_half_sum[sum2 >> ONE])
    return (
        index.block_base[block], class0, class1, class2,
        tables.class_size[class1], tables.class_size[class2],
        tables.class_start[class1], tables.class_start[class2],
    )  # fmt: skip


@inlined
def first_strip(base, strip, start):
    """Number of the first strip of a block, of `strip` slots each, that begins at or after `start`.

    A *strip* is the slots of a block that share row 0; it belongs to the range of slots that holds
    its first.
    """
    if start <= base:
        return ZERO
    return (start - base + strip - ONE) // strip


@inlined
def block_base(index, info0, info1):
    """First slot of the block of two upper rows, given their `row_info`."""
    return np.uint64(
        index.bases[(info0 >> CLASS_SHIFT) * index.num_classes + (info1 >> CLASS_SHIFT)]
    )


@inlined
def segment_slot(base, info0, info1, size2):
    """Where the *segment* of two upper rows lies: (first slot, is mirrored, is folded).

    A segment is the slots that share rows 0 and 1, by rank of row 2; its block begins at `base`.
    Modulo the horizontal flip its rows 2 may lie reversed (mirrored), or, under two palindromes,
    at the lesser of themselves and their reversal (folded).
    """
    rank1 = info1 & RANK_MASK
    mirror1 = info1 >> MIRROR_SHIFT & RANK_MASK
    is_palindrome = info0 >> PALINDROME_SHIFT & ONE
    is_mirrored = bool(mirror1 < rank1 if is_palindrome else info0 >> MIRROR_OFFSET_SHIFT & ONE)
    is_folded = bool(is_palindrome and mirror1 == rank1)
    row01 = (info0 >> HALF_SHIFT & RANK_MASK) * (info1 >> SIZE_SHIFT & RANK_MASK)
    row01 += mirror1 if is_mirrored else rank1
    return base + row01 * size2, is_mirrored, is_folded


@inlined
def slot_code(tables, index, block, slot):
    """The board of a slot of a block, packed; inverts `canonical_code_slot` on canonical boards."""
    base, class0, _, _, size1, size2, start1, start2 = block_at(tables, index, block)
    rest = slot - base
    row01 = rest // size2
    half_rank = row01 // size1
    row0 = np.uint64(tables.rows[tables.half_ordinals[tables.class_half_start[class0] + half_rank]])
    row1 = np.uint64(tables.rows[start1 + row01 % size1])
    row2 = np.uint64(tables.rows[start2 + rest % size2])
    return row0 << ROW0_SHIFT | row1 << ROW1_SHIFT | row2


@kernel
def slots_into(tables, index, codes, slots):
    """Fill `slots` with the canonical index of every code, all of the index's age."""
    for i in range(len(codes)):
        slots[i] = canonical_code_slot(tables, index, codes[i])


@inlined
def _rearranged(code, sources, targets):
    board = ZERO
    for j in range(len(sources)):
        board |= (code >> sources[j] & CELL_MASK) << targets[j]
    return board


@kernel
def rearrange_cells(codes, sources, targets, rearranged):
    """Fill `rearranged` with boards whose cells are moved; bit positions, from and to."""
    for i in range(len(codes)):
        rearranged[i] = _rearranged(codes[i], sources, targets)


@kernel
def lesser_into(tables, index, sources, targets, codes, lesser, slots, is_other):
    """Of every board and the one with its cells moved, the one with the lesser canonical index.

    sources, targets : bit positions of the cells; none where boards are taken as they are
    lesser : uint64[n], the boards taken; slots : uint64[n], their indices
    is_other : bool[n], whether it is the one with its cells moved
    """
    for i in range(len(codes)):
        lesser[i] = codes[i]
        slots[i] = canonical_code_slot(tables, index, codes[i])
        is_other[i] = False
        if len(sources) > 0:
            other = _rearranged(codes[i], sources, targets)
            slot = canonical_code_slot(tables, index, other)
            if slot < slots[i]:
                lesser[i] = other
                slots[i] = slot
                is_other[i] = True


@kernel
def codes_into(tables, index, slots, codes):
    """Fill `codes` with the board of every slot."""
    for i in range(len(slots)):
        codes[i] = slot_code(tables, index, find_block(index, slots[i]), slots[i])


@kernel
def member_codes_into(tables, index, bitmap, start, stop, codes):
    """Fill `codes` with the boards of the members among the words ``[start, stop)`` of a bitmap."""
    if start >= stop:
        return
    count = ZERO
    block = find_block(index, start << SIX)
    for word in range(start, stop):
        bits = bitmap[word]
        while bits:
            slot = word << SIX | trailing_zeros(bits)
            bits &= bits - ONE
            # Members rise, and with them the blocks.
            while index.block_base[block + ONE] <= slot:
                block += ONE
            codes[count] = slot_code(tables, index, block, slot)
            count += ONE


@kernel
def mark_slots(slots, bitmap):
    """Set the bit of every slot in a bitmap."""
    for i in range(len(slots)):
        bitmap[slots[i] >> SIX] |= ONE << (slots[i] & WORD_MASK)
