"""Kernels of partitioned Elias–Fano sets; the format is defined in `partitioned`."""

from __future__ import annotations

import numpy as np

from .bits import (
    ALL_ONES,
    ONE,
    SIX,
    WORD_BITS,
    WORD_MASK,
    ZERO,
    low_bits,
    popcount,
    trailing_zeros,
)
from .jit import inlined, kernel

RUN, BITMAP, ELIAS_FANO = np.uint64(0), np.uint64(1), np.uint64(2)
KIND_MASK = np.uint64(3)
WIDTH_SHIFT = np.uint64(2)
WIDTH_MASK = np.uint64(63)
OFFSET_SHIFT = np.uint64(8)


@kernel
def partition_bounds_into(bitmap, size, firsts, lasts):
    """First and last member of every partition of `size` >= 64 members; returns their number."""
    partition = ZERO
    filled = ZERO  # members of the current partition so far
    last_word = ZERO
    for word in range(np.uint64(len(bitmap))):
        bits = bitmap[word]
        while bits:
            if filled == ZERO:
                firsts[partition] = word << SIX | trailing_zeros(bits)
            count = popcount(bits)
            if filled + count < size:
                filled += count
                last_word = word
                break
            for _ in range(size - filled - ONE):
                bits &= bits - ONE
            lasts[partition] = word << SIX | trailing_zeros(bits)
            bits &= bits - ONE
            partition += ONE
            filled = ZERO
    if filled:
        bits = bitmap[last_word]
        while bits & (bits - ONE):
            bits &= bits - ONE
        lasts[partition] = last_word << SIX | trailing_zeros(bits)
        partition += ONE
    return partition


@inlined
def _low_words(count, width):
    """Words that `count` low parts of `width` bits take."""
    return (count * width + WORD_MASK) >> SIX


@kernel
def encode_into(bitmap, firsts, lasts, places, size, count, payload):
    """Write every partition of the bitmap to its place in a zeroed payload."""
    for partition in range(np.uint64(len(firsts))):
        first = firsts[partition]
        last = lasts[partition]
        kind = places[partition] & KIND_MASK
        offset = places[partition] >> OFFSET_SHIFT
        first_word = first >> SIX
        if kind == RUN:
            continue
        if kind == BITMAP:
            for word in range(first_word, (last >> SIX) + ONE):
                payload[offset + word - first_word] = bitmap[word]
            payload[offset] &= ALL_ONES << (first & WORD_MASK)
            payload[offset + (last >> SIX) - first_word] &= low_bits((last & WORD_MASK) + ONE)
            continue
        width = places[partition] >> WIDTH_SHIFT & WIDTH_MASK
        high = offset + _low_words(min(size, count - partition * size), width)
        i = ZERO
        for word in range(first_word, (last >> SIX) + ONE):
            bits = bitmap[word]
            if word == first_word:
                bits &= ALL_ONES << (first & WORD_MASK)
            if word == last >> SIX:
                bits &= low_bits((last & WORD_MASK) + ONE)
            while bits:
                value = (word << SIX | trailing_zeros(bits)) - first
                bits &= bits - ONE
                low = value & low_bits(width)
                at = i * width
                payload[offset + (at >> SIX)] |= low << (at & WORD_MASK)
                if (at & WORD_MASK) + width > WORD_BITS:
                    payload[offset + (at >> SIX) + ONE] |= low >> (WORD_BITS - (at & WORD_MASK))
                at = (value >> width) + i
                payload[high + (at >> SIX)] |= ONE << (at & WORD_MASK)
                i += ONE


@inlined
def _low_part(payload, offset, i, width):
    """The low bits of member `i` of an Elias–Fano partition."""
    if width == ZERO:
        return ZERO
    at = i * width
    low = payload[offset + (at >> SIX)] >> (at & WORD_MASK)
    if (at & WORD_MASK) + width > WORD_BITS:
        low |= payload[offset + (at >> SIX) + ONE] << (WORD_BITS - (at & WORD_MASK))
    return low & low_bits(width)


@kernel
def decode_into(firsts, places, stops, size, count, payload, bitmap):
    """Set the bit of every member in a zeroed bitmap; returns the number of members met.

    A damaged payload yields another number, or other members, but no access out of bounds.
    """
    num_bits = np.uint64(len(bitmap) - 1) << SIX
    total = ZERO
    for partition in range(np.uint64(len(firsts))):
        first = firsts[partition]
        kind = places[partition] & KIND_MASK
        offset = places[partition] >> OFFSET_SHIFT
        stop = stops[partition]
        members = min(size, count - partition * size)
        if kind == RUN:
            for value in range(first, min(first + members, num_bits)):
                bitmap[value >> SIX] |= ONE << (value & WORD_MASK)
                total += ONE
        elif kind == BITMAP:
            word = first >> SIX
            for i in range(min(stop - offset, (num_bits >> SIX) - word)):
                bitmap[word + i] |= payload[offset + i]
                total += popcount(payload[offset + i])
        else:
            width = places[partition] >> WIDTH_SHIFT & WIDTH_MASK
            high = offset + _low_words(members, width)
            i = ZERO
            for word in range(stop - high):
                bits = payload[high + word]
                while bits and i < members:
                    at = word << SIX | trailing_zeros(bits)
                    bits &= bits - ONE
                    value = first + ((at - i) << width | _low_part(payload, offset, i, width))
                    if value < num_bits:
                        bitmap[value >> SIX] |= ONE << (value & WORD_MASK)
                        total += ONE
                    i += ONE
    return total


@inlined
def _position_in_elias_fano(payload, offset, stop, members, width, value):
    """Position of `value`, relative to the partition's first member, or -1."""
    high = offset + _low_words(members, width)
    wanted = value >> width
    i = ZERO
    for word in range(stop - high):
        bits = payload[high + word]
        # The high part of a member is the number of zeros before its one.
        if ((word + ONE) << SIX) - (i + popcount(bits)) < wanted:
            i += popcount(bits)
            continue
        while bits and i < members:
            at = word << SIX | trailing_zeros(bits)
            bits &= bits - ONE
            if at - i > wanted:
                return np.int64(-1)
            if at - i == wanted and _low_part(payload, offset, i, width) == value & low_bits(width):
                return np.int64(i)
            i += ONE
    return np.int64(-1)


@inlined
def _position_in_bitmap(payload, offset, stop, first, value):
    """Position of `value` in a bitmap partition, or -1."""
    at = offset + (value >> SIX) - (first >> SIX)
    bit = ONE << (value & WORD_MASK)
    if at >= stop or not payload[at] & bit:
        return np.int64(-1)
    position = popcount(payload[at] & (bit - ONE))
    for word in range(offset, at):
        position += popcount(payload[word])
    return np.int64(position)


@kernel
def positions_into(firsts, places, stops, shifts, size, count, payload, values, positions):
    """Position of every value in the set, -1 where it is no member.

    shifts : for each partition, how far its payload lies before its place (payloads read in part)
    """
    for q in range(np.uint64(len(values))):
        value = values[q]
        positions[q] = -1
        low = ZERO
        high = np.uint64(len(firsts))
        while high - low > ONE:
            middle = (low + high) >> ONE
            if firsts[middle] <= value:
                low = middle
            else:
                high = middle
        if high == ZERO or value < firsts[low]:
            continue
        first = firsts[low]
        members = min(size, count - low * size)
        kind = places[low] & KIND_MASK
        offset = (places[low] >> OFFSET_SHIFT) - shifts[low]
        stop = stops[low] - shifts[low]
        position = np.int64(-1)
        if kind == RUN:
            if value - first < members:
                position = np.int64(value - first)
        elif kind == BITMAP:
            position = _position_in_bitmap(payload, offset, stop, first, value)
        else:
            width = places[low] >> WIDTH_SHIFT & WIDTH_MASK
            position = _position_in_elias_fano(payload, offset, stop, members, width, value - first)
        if position >= 0:
            positions[q] = np.int64(low * size) + position
