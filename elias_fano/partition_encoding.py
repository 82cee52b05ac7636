"""Kernels that encode partitioned Elias–Fano sets; the format is defined in `partitioned`."""

from __future__ import annotations

import numpy as np

from .bits import (
    ALL_ONES,
    ONE,
    SIX,
    WORD_MASK,
    ZERO,
    low_bits,
    popcount,
    select_in_word,
    trailing_zeros,
)
from .coding import low_mask, low_words, push_low, push_one, set_bit
from .jit import kernel

RUN, BITMAP, ELIAS_FANO = np.uint64(0), np.uint64(1), np.uint64(2)
KIND_MASK = np.uint64(3)
WIDTH_SHIFT = np.uint64(2)
WIDTH_MASK = np.uint64(63)
OFFSET_SHIFT = np.uint64(8)


@kernel
def partition_bounds_into(bitmap, start, size, firsts, lasts):
    """First and last member of every partition of `size` >= 64 members; returns their number.

    start : value of the first bit of the bitmap
    """
    partition = ZERO
    filled = ZERO  # members of the current partition so far
    last = ZERO
    for word in range(np.uint64(len(bitmap))):
        bits = bitmap[word]
        base = start + (word << SIX)
        while bits:
            if filled == ZERO:
                firsts[partition] = base + trailing_zeros(bits)
            count = popcount(bits)
            if filled + count < size:
                filled += count
                last = base + select_in_word(bits, count - ONE)
                break
            at = select_in_word(bits, size - filled - ONE)
            lasts[partition] = base + at
            bits &= ~low_bits(at + ONE)
            partition += ONE
            filled = ZERO
    if filled:
        lasts[partition] = last
        partition += ONE
    return partition


@kernel
def encode_bitmap_into(bitmap, start, firsts, lasts, places, size, count, payload):
    """Write every partition of a bitmap's members to its place in a zeroed payload.

    start : value of the first bit of the bitmap, a multiple of 64
    firsts, lasts : uint64[partitions], first and last member of each; count : all members
    """
    for partition in range(np.uint64(len(firsts))):
        first = firsts[partition]
        kind = places[partition] & KIND_MASK
        offset = places[partition] >> OFFSET_SHIFT
        if kind == RUN:
            continue
        # Positions in the bitmap, in words.
        first_word = (first - start) >> SIX
        last_word = (lasts[partition] - start) >> SIX
        from_first = ALL_ONES << (first & WORD_MASK)
        to_last = low_bits((lasts[partition] & WORD_MASK) + ONE)
        if kind == BITMAP:
            for word in range(first_word, last_word + ONE):
                payload[offset + word - first_word] = bitmap[word]
            payload[offset] &= from_first
            payload[offset + last_word - first_word] &= to_last
            continue
        width = places[partition] >> WIDTH_SHIFT & WIDTH_MASK
        high = offset + low_words(min(size, count - partition * size), width)
        mask = low_mask(width)
        i, at, filled, lows, high_word, ones = ZERO, offset, ZERO, ZERO, ZERO, ZERO
        for word in range(first_word, last_word + ONE):
            bits = bitmap[word]
            if word == first_word:
                bits &= from_first
            if word == last_word:
                bits &= to_last
            base = start + (word << SIX) - first
            while bits:
                value = base + trailing_zeros(bits)
                bits &= bits - ONE
                at, filled, lows = push_low(payload, at, filled, lows, value & mask, width)
                high_word, ones = push_one(payload, high, high_word, ones, (value >> width) + i)
                i += ONE
        if filled:
            payload[at] = lows
        payload[high + high_word] = ones


@kernel
def encode_members_into(members, places, size, payload):
    """Write every partition of sorted members to its place in a zeroed payload."""
    count = np.uint64(len(members))
    for partition in range(np.uint64(len(places))):
        start = partition * size
        stop = min(start + size, count)
        first = members[start]
        kind = places[partition] & KIND_MASK
        offset = places[partition] >> OFFSET_SHIFT
        width = places[partition] >> WIDTH_SHIFT & WIDTH_MASK
        if kind == BITMAP:
            for i in range(start, stop):
                set_bit(payload, offset, members[i] - (first & ~WORD_MASK))
        elif kind == ELIAS_FANO:
            high = offset + low_words(stop - start, width)
            mask = low_mask(width)
            at, filled, lows, high_word, ones = offset, ZERO, ZERO, ZERO, ZERO
            for i in range(stop - start):
                value = members[start + i] - first
                at, filled, lows = push_low(payload, at, filled, lows, value & mask, width)
                high_word, ones = push_one(payload, high, high_word, ones, (value >> width) + i)
            if filled:
                payload[at] = lows
            payload[high + high_word] = ones
