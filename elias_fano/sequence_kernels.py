"""Kernels of `sequence.EliasFano`; the format is defined there.

Arguments that many share:

lows, highs : uint64[...], packed low parts, and the bitmap of high parts
samples : uint64[blocks + 1], ones of the bitmap before each block of 64 words, then all of them
"""

from __future__ import annotations

import numpy as np

from .bits import (
    ONE,
    SIX,
    WORD_MASK,
    ZERO,
    low_bits,
    popcount,
    prefetch,
    select_in_word,
    trailing_zeros,
)
from .jit import inlined, kernel
from .partition_kernels import LANES, read_low, run_length, search_lows, set_bit, write_low

BLOCK_WORDS = np.uint64(64)
BLOCK_SHIFT = np.uint64(6)
BLOCK_BITS_SHIFT = np.uint64(12)


@kernel
def append_members_into(members, start, width, lows, highs):
    """Write members, the first of which has position `start`, into zeroed words."""
    for i in range(np.uint64(len(members))):
        write_low(lows, ZERO, start + i, width, members[i])
        set_bit(highs, ZERO, (members[i] >> width) + start + i)


@kernel
def sample_ones_into(highs, samples):
    """Fill `samples` from the bitmap."""
    count = ZERO
    for word in range(np.uint64(len(highs))):
        if word & (BLOCK_WORDS - ONE) == ZERO:
            samples[word >> BLOCK_SHIFT] = count
        count += popcount(highs[word])
    samples[len(samples) - 1] = count


@inlined
def find_block(samples, hints, wanted, of_zeros):
    """The last block with at most `wanted` zeros (or ones) before it.

    hints : uint32[...], for every 4,096th zero (or one) a block that does not lie after its own
    """
    hint = wanted >> BLOCK_BITS_SHIFT
    low = np.uint64(hints[hint])
    length = np.uint64(hints[hint + ONE]) - low + ONE
    while length > ONE:
        half = length >> ONE
        before = samples[low + half]
        if of_zeros:
            before = ((low + half) << BLOCK_BITS_SHIFT) - before
        low += half * np.uint64(before <= wanted)
        length -= half
    return low


@inlined
def select_in_block(highs, samples, block, rank, of_zeros):
    """Position in the bitmap of the zero (or one) with `rank` before it, which lies in `block`."""
    left = rank - samples[block]
    if of_zeros:
        left = rank - ((block << BLOCK_BITS_SHIFT) - samples[block])
    word = block << BLOCK_SHIFT
    while word < np.uint64(len(highs)):
        bits = ~highs[word] if of_zeros else highs[word]
        count = popcount(bits)
        if count > left:
            return word << SIX | select_in_word(bits, left)
        left -= count
        word += ONE
    return np.uint64(len(highs)) << SIX


@kernel
def ranks_into(lows, highs, samples, zero_hints, width, count, values, lanes, ranks, found):
    """For every value the number of members below it, and whether it is a member.

    zero_hints : see `find_block`; lanes : uint64[LANES, 2], scratch of the calling thread
    """
    num_values = np.uint64(len(values))
    num_zeros = (np.uint64(len(highs)) << SIX) - count
    for start in range(ZERO, num_values, LANES):
        num_lanes = min(LANES, num_values - start)
        # Each loop asks for what the next one reads: the misses of all lanes overlap.
        for lane in range(num_lanes):
            high = values[start + lane] >> width
            if high and high <= num_zeros:
                block = find_block(samples, zero_hints, high - ONE, True)
                lanes[lane, 0] = block
                for line in range(np.uint64(4)):
                    prefetch(highs, (block << BLOCK_SHIFT) + (line << np.uint64(3)))
        for lane in range(num_lanes):
            high = values[start + lane] >> width
            at = ZERO
            if high > num_zeros:
                at = np.uint64(len(highs)) << SIX
            elif high:
                # The members with this high part follow the zero before it.
                at = select_in_block(highs, samples, lanes[lane, 0], high - ONE, True) + ONE
            lanes[lane, 1] = at
            prefetch(lows, (at - high) * width >> SIX)
        for lane in range(num_lanes):
            value = values[start + lane]
            at = lanes[lane, 1]
            i = min(at - (value >> width), count)
            if value >> width > num_zeros:
                i = count
            low = value & low_bits(width)
            end = i + min(run_length(highs, ZERO, np.uint64(len(highs)), at), count - i)
            i = search_lows(lows, ZERO, i, end - i, width, low)
            is_member = i < end and read_low(lows, ZERO, i, width) == low
            ranks[start + lane] = i
            found[start + lane] = is_member


@kernel
def members_into(lows, highs, samples, one_hints, width, positions, values):
    """The member at every position, all in range."""
    for q in range(np.uint64(len(positions))):
        i = positions[q]
        block = find_block(samples, one_hints, i, False)
        at = select_in_block(highs, samples, block, i, False)
        values[q] = (at - i) << width | read_low(lows, ZERO, i, width)


@kernel
def decode_into(lows, highs, samples, one_hints, width, start, out):
    """Fill `out` with the members from position `start` on; returns the number written."""
    stop = start + np.uint64(len(out))
    block = find_block(samples, one_hints, start, False)
    first = select_in_block(highs, samples, block, start, False)
    i = start
    word = first >> SIX
    bits = ZERO
    if word < np.uint64(len(highs)):
        bits = highs[word] >> (first & WORD_MASK) << (first & WORD_MASK)
    while i < stop:
        while bits and i < stop:
            at = word << SIX | trailing_zeros(bits)
            bits &= bits - ONE
            out[i - start] = (at - i) << width | read_low(lows, ZERO, i, width)
            i += ONE
        if i < stop:
            word += ONE
            if word >= np.uint64(len(highs)):
                break
            bits = highs[word]
    return i - start
