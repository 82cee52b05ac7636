"""Ranked bitmaps: a bitmap with running counts, interleaved so that a lookup reads one cache line.

A *ranked bitmap* of ``n`` bits is a ``uint64[2 * (ceil(n / 64) + 1)]``: for each word of the
bitmap, the word itself and the number of bits set in all words before it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .bits import (
    ALL_ONES,
    ONE,
    SIX,
    WORD_BITS,
    WORD_MASK,
    ZERO,
    popcount,
    trailing_zeros,
)
from .jit import inlined, kernel


@kernel
def _interleave_into(bitmap, ranked):
    count = ZERO
    for word in range(np.uint64(len(bitmap))):
        ranked[word << ONE] = bitmap[word]
        ranked[(word << ONE) | ONE] = count
        count += popcount(bitmap[word])
    return count


def rank_bitmap(bitmap: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The ranked bitmap of a bitmap, spare word included."""
    ranked = np.empty(2 * len(bitmap), dtype=np.uint64)
    _interleave_into(bitmap, ranked)
    return ranked


@inlined
def rank_at(ranked, position):
    """Number of set bits before `position`."""
    pair = position >> SIX << ONE
    before = (ONE << (position & WORD_MASK)) - ONE
    return ranked[pair | ONE] + popcount(ranked[pair] & before)


@inlined
def ranked_bits_at(ranked, position, count):
    """`count` bits of a ranked bitmap from bit `position` on, 1 <= count <= 64."""
    pair = position >> SIX << ONE
    shift = position & WORD_MASK
    low = ranked[pair] >> shift
    high = (ranked[pair + (ONE << ONE)] << ONE) << (WORD_MASK - shift)
    return (low | high) & (ALL_ONES >> (WORD_BITS - count))


@kernel
def select_into(ranked, ranks, positions):
    """Fill `positions` with the position of the set bit of every rank, all below the bits set."""
    for i in range(len(ranks)):
        low = ZERO
        high = np.uint64(len(ranked)) >> ONE
        # The last word with no more set bits before it: the ones after an equal count are empty.
        while high - low > ONE:
            middle = (low + high) >> ONE
            if ranked[(middle << ONE) | ONE] <= ranks[i]:
                low = middle
            else:
                high = middle
        bits = ranked[low << ONE]
        for _ in range(ranks[i] - ranked[(low << ONE) | ONE]):
            bits &= bits - ONE
        positions[i] = low << SIX | trailing_zeros(bits)
