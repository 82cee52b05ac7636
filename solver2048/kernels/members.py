"""Members of a layer, counted."""

from __future__ import annotations

import numpy as np

from elias_fano.bits import FOUR, ONE, SIX, WORD_MASK, ZERO, popcount
from elias_fano.jit import inlined, kernel

from ..tables import (
    CLASS_SHIFT,
    MIRROR_SHIFT,
    PALINDROME_SHIFT,
    RANK_BITS,
    RANK_MASK,
)
from .moves import is_terminal
from .slots import block_at


@inlined
def num_images(tables, row0, row1, row2):
    """Number of different boards among the four images of a board under the flips."""
    info0 = tables.row_info[row0]
    info1 = tables.row_info[row1]
    info2 = tables.row_info[row2]
    fixed_horizontally = (info0 & info1 & info2) >> PALINDROME_SHIFT & ONE
    fixed_vertically = np.uint64(row0 == row2)
    reversal0 = info0 >> CLASS_SHIFT << RANK_BITS | (info0 >> MIRROR_SHIFT & RANK_MASK)
    fixed_by_half_turn = info1 >> PALINDROME_SHIFT & np.uint64(
        reversal0 == (info2 >> CLASS_SHIFT << RANK_BITS | (info2 & RANK_MASK))
    )
    return FOUR // (ONE + fixed_horizontally + fixed_vertically + fixed_by_half_turn)


@kernel
def count_members(bitmap):
    """Number of bits set in a bitmap."""
    count = ZERO
    for word in bitmap:
        count += popcount(word)
    return count


@inlined
def is_member(bitmap, slot):
    return bitmap[slot >> SIX] >> (slot & WORD_MASK) & ONE


@kernel
def count_diagonal(tables, slots, codes, states, afterstates):
    """How many boards are among the states, the afterstates and the terminal states."""
    num_states = ZERO
    num_afterstates = ZERO
    num_terminal = ZERO
    for i in range(len(slots)):
        num_afterstates += is_member(afterstates, slots[i])
        if is_member(states, slots[i]):
            num_states += ONE
            num_terminal += np.uint64(is_terminal(tables, codes[i]))
    return num_states, num_afterstates, num_terminal


@kernel
def count_missing_images(tables, index, bitmap):
    """Sum of ``4 - num_images`` over the members of a layer.

    Only boards fixed by a flip or the half turn count: blocks whose rows 0 and 2 tie, and
    segments under two palindromes; all others are passed over unread.
    """
    missing = ZERO
    for block in range(len(index.block_class0)):
        position, class0, _, class2, size1, size2, start1, start2 = block_at(tables, index, block)
        for half in range(tables.class_half_size[class0]):
            ordinal0 = tables.half_ordinals[tables.class_half_start[class0] + half]
            row0 = np.uint64(tables.rows[ordinal0])
            is_palindrome = tables.row_info[row0] >> PALINDROME_SHIFT & ONE
            if class0 != class2 and not is_palindrome:
                position += size1 * size2
                continue
            for rank1 in range(size1):
                row1 = np.uint64(tables.rows[start1 + rank1])
                if class0 == class2 or tables.row_info[row1] >> PALINDROME_SHIFT & ONE:
                    for rank2 in range(size2):
                        slot = position + rank2
                        if is_member(bitmap, slot):
                            row2 = np.uint64(tables.rows[start2 + rank2])
                            missing += FOUR - num_images(tables, row0, row1, row2)
                position += size2
    return missing
