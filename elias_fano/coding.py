"""Kernels of one Elias–Fano coded stretch: packed low parts, then a bitmap of high parts.

The low parts of `m` members, `width` bits each, are packed into ``ceil(m * width / 64)`` words; the
bitmap of high parts, at least one word, follows. It holds a one for each member and, before it, as
many zeros as its high part says.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .bits import (
    ALL_ONES,
    EIGHT,
    ONE,
    SEVEN,
    SIX,
    THREE,
    WORD_BITS,
    WORD_MASK,
    ZERO,
    count_zeros_into,
    load_unaligned,
    popcount,
    select_in_word,
    trailing_zeros,
)
from .jit import inlined

MAX_WIDTH = np.uint64(57)
"""Widest low part: one unaligned load reads so many bits, wherever in a byte they begin."""


@inlined
def low_words(members, width):
    """Words of the packed low parts."""
    return (members * width + WORD_MASK) >> SIX


@inlined
def low_mask(width):
    """A word with its `width` lowest bits set, width at most MAX_WIDTH."""
    return (ONE << width) - ONE


# Encoding keeps the word it is at in registers: members share words, and to read each back from
# memory, add to it and store it would take most of the time.


@inlined
def push_low(words, word, filled, bits, low, width):
    """Append a low part to the `filled` bits of word number `word`; returns all three anew.

    A word is stored when it is full; the caller stores the last.
    """
    bits |= low << filled
    filled += width
    if filled >= WORD_BITS:
        words[word] = bits
        word += ONE
        filled -= WORD_BITS
        bits = low >> (width - filled)
    return word, filled, bits


@inlined
def push_one(words, offset, word, bits, position):
    """Set a bit, after all before, of the bitmap from word `offset` on; returns (word, bits)."""
    if position >> SIX != word:
        words[offset + word] |= bits
        word = position >> SIX
        bits = ZERO
    return word, bits | ONE << (position & WORD_MASK)


@inlined
def read_low(words, offset, bit, mask):
    """The low part at bit position `bit`; reads up to 7 bytes after the last low part."""
    return load_unaligned(words, offset, bit >> THREE) >> (bit & SEVEN) & mask


@inlined
def set_bit(words, offset, position):
    """Set a bit of the bitmap that starts at word `offset`."""
    words[offset + (position >> SIX)] |= ONE << (position & WORD_MASK)


@inlined
def skip_zeros(words, high, stop, wanted, sums):
    """Position just after `wanted` zeros in the bitmap ``[high, stop)`` of words.

    That is where the members with this high part begin. With fewer zeros in the bitmap, a
    position so far past its end that no member comes after it.
    sums : uint64[9], scratch; its first item is zero
    """
    left = wanted
    word = high
    below = EIGHT
    # Eight words at a time, as long as no vector reads past the array.
    while below == EIGHT and word < stop and word + EIGHT <= np.uint64(len(words)):
        below = count_zeros_into(words, word, left, sums)
        word += below
        left -= sums[below]
    while below == EIGHT and word < stop:
        zeros = popcount(~words[word])
        if zeros >= left:
            break
        left -= zeros
        word += ONE
    if word >= stop:
        return ((stop - high) << SIX) + wanted
    at = (word - high) << SIX
    if left:
        at += select_in_word(~words[word], left - ONE) + ONE
    return at


@inlined
def run_of_ones(words, base, stop, at):
    """Number of ones from position `at` on in the bitmap ``[base, stop)`` of words."""
    word = base + (at >> SIX)
    if word >= stop:
        return ZERO
    if word + ONE < np.uint64(len(words)):
        zeros = ~(load_unaligned(words, base, at >> THREE) >> (at & SEVEN))
        length = trailing_zeros(zeros | ONE << MAX_WIDTH)
        # Nearly always: then it ends within what was loaded.
        if length < MAX_WIDTH and ((at + length) >> SIX) < stop - base:
            return length
    zeros = ~words[word] >> (at & WORD_MASK)
    if zeros:
        return trailing_zeros(zeros)
    length = WORD_BITS - (at & WORD_MASK)
    word += ONE
    while word < stop and ~words[word] == ZERO:
        length += WORD_BITS
        word += ONE
    if word < stop:
        length += trailing_zeros(~words[word])
    return length


# Queries looked up side by side, so that their cache misses overlap; measured best of 4 ... 32.
LANES = np.uint64(16)

# What is known of a lane. PLACE and HIGH are its caller's, the rest `search_lows`'s: the members in
# question are [BEGIN, BEGIN + LENGTH), which end at END; their low parts have WIDTH bits and begin
# at word OFFSET; LOW is looked for.
BEGIN, LENGTH, END, WIDTH, OFFSET, LOW, PLACE, HIGH = (np.uint64(i) for i in range(8))


def lookup_scratch() -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """(lanes, sums) for one thread's lookups: uint64[LANES, 8], and the `sums` of `skip_zeros`."""
    return np.empty((int(LANES), 8), dtype=np.uint64), np.zeros(9, dtype=np.uint64)


@inlined
def search_lows(words, lanes, num_lanes, longest):
    """Move every lane's BEGIN to its first low part not below its LOW, or to its END.

    lanes : see `lookup_scratch`; longest : at least the largest LENGTH
    """
    # Step by step for all lanes, without a branch: a search on its own would end in a mispredicted
    # one, and each of its steps would wait for the one before.
    while longest:
        longest >>= ONE
        for lane in range(num_lanes):
            length = lanes[lane, LENGTH]
            begin = lanes[lane, BEGIN]
            width = lanes[lane, WIDTH]
            half = length >> ONE
            low = read_low(words, lanes[lane, OFFSET], (begin + half) * width, low_mask(width))
            is_below = np.uint64(low < lanes[lane, LOW]) & np.uint64(length > ZERO)
            lanes[lane, BEGIN] = begin + is_below * (half + ONE)
            lanes[lane, LENGTH] = half - (is_below & (~length & ONE))


@inlined
def decode_stretch(
    words, offset, high, word, i, stop, first, width, start, stop_member, out, written
):
    """Write the members ``[start, stop_member)`` of a stretch, plus `first`, from `written` on.

    word, i : where in the bitmap ``[high, stop)`` to begin, and the number of ones before it
    Returns how many members were met, at most `stop_member`.
    """
    while word < stop and i + popcount(words[word]) <= start:
        i += popcount(words[word])
        word += ONE
    mask = low_mask(width)
    shift = written - start
    while word < stop and i < stop_member:
        bits = words[word]
        at = ((word - high) << SIX) - i
        word += ONE
        if i < start:
            bits = drop_ones(bits, start - i)
            at -= start - i
            i = start
        if i + popcount(bits) > stop_member:
            bits ^= drop_ones(bits, stop_member - i)
        bit = i * width
        while bits:
            low = read_low(words, offset, bit, mask)
            out[shift + i] = first + ((at + trailing_zeros(bits)) << width | low)
            bits &= bits - ONE
            bit += width
            at -= ONE
            i += ONE
    return i


@inlined
def drop_ones(bits, count):
    """A word without its `count` lowest ones, of which it has more."""
    return bits & (ALL_ONES << select_in_word(bits, count))


@inlined
def merge_ranks(members, num_members, position, values, i, ranks, found):
    """Ranks of the values from number `i` on that are at most the last of some members.

    members : uint64[...], `num_members` neighbours of the set, the first at `position`; at least
    one of the set's members before them is below all the values, or none is there
    Returns the number of the first value beyond them.
    """
    last = members[num_members - ONE]
    j = ZERO
    while i < np.uint64(len(values)) and values[i] <= last:
        value = values[i]
        while members[j] < value:
            j += ONE
        ranks[i] = position + j
        found[i] = members[j] == value
        i += ONE
    return i
