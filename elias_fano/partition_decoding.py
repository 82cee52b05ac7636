"""Kernels that decode partitioned Elias–Fano sets: to members, to a bitmap, along rising values.

A damaged payload yields wrong or fewer members, but no access out of bounds, as in
`partition_kernels`.
"""

from __future__ import annotations

import numpy as np

from .bits import ONE, SIX, WORD_MASK, ZERO, popcount, trailing_zeros
from .coding import (
    decode_stretch,
    drop_ones,
    low_mask,
    merge_ranks,
    push_one,
    read_low,
    set_bit,
)
from .jit import inlined, kernel
from .partition_encoding import BITMAP, RUN
from .partition_kernels import first_member, first_position, form, num_members


@inlined
def decode_ones(payload, offset, stop, base, start, stop_member, out, written):
    """Write the positions of the ones ``[start, stop_member)`` of a bitmap, plus `base`.

    Returns how many ones were met, at most `stop_member`.
    """
    i = ZERO
    word = offset
    while word < stop and i + popcount(payload[word]) <= start:
        i += popcount(payload[word])
        word += ONE
    shift = written - start
    while word < stop and i < stop_member:
        bits = payload[word]
        at = base + ((word - offset) << SIX)
        word += ONE
        if i < start:
            bits = drop_ones(bits, start - i)
            i = start
        if i + popcount(bits) > stop_member:
            bits ^= drop_ones(bits, stop_member - i)
        while bits:
            out[shift + i] = at + trailing_zeros(bits)
            bits &= bits - ONE
            i += ONE
    return i


@inlined
def decode_partition(partitions, p, start, stop_member, out, written):
    """Write the members ``[start, stop_member)`` of a partition, from `written` on.

    Returns how many members were met, less than `stop_member` if the partition is damaged.
    """
    payload = partitions.payload
    first = first_member(partitions, p)
    kind, offset, width, high, stop = form(partitions, p)
    if kind == RUN:
        for i in range(stop_member - start):
            out[written + i] = first + start + i
        return stop_member
    if kind == BITMAP:
        base = first & ~WORD_MASK
        return decode_ones(payload, offset, stop, base, start, stop_member, out, written)
    return decode_stretch(
        payload, offset, high, high, ZERO, stop, first, width, start, stop_member, out, written
    )


@kernel
def decode_into(partitions, p, skip, out):
    """Fill `out` with the members from the one at `skip` of partition `p` on.

    Returns the number written, less than wanted if a partition holds fewer than it should.
    """
    written = ZERO
    wanted = np.uint64(len(out))
    while written < wanted:
        stop_member = min(num_members(partitions, p), skip + wanted - written)
        met = decode_partition(partitions, p, skip, stop_member, out, written)
        written += met - min(skip, met)
        if met < stop_member:
            break
        p += ONE
        skip = ZERO
    return written


@kernel
def decode_bitmap_into(partitions, start, last, bitmap):
    """Set the bits of the members in ``[start, last]`` in a zeroed bitmap.

    start : value of the bitmap's first bit, a multiple of 64; bits after `last` in the last word
    may be set too
    Returns the number of members met in all partitions, those out of the range included.
    """
    payload = partitions.payload
    total = ZERO
    num_words = ((last - start) >> SIX) + ONE
    for p in range(np.uint64(len(partitions.places) - 1)):
        first = first_member(partitions, p)
        kind, offset, width, high, stop = form(partitions, p)
        members = num_members(partitions, p)
        if kind == RUN:
            total += members
            begin, end = max(first, start), min(first + (members - ONE), last)
            if begin <= end:
                for i in range(end - begin + ONE):
                    set_bit(bitmap, ZERO, begin - start + i)
        elif kind == BITMAP:
            for word in range(offset, stop):
                total += popcount(payload[word])
                at = (first >> SIX) + (word - offset)
                # One comparison for both ends: what lies before the start wraps around.
                at -= start >> SIX
                if at < num_words:
                    bitmap[at] |= payload[word]
        else:
            mask = low_mask(width)
            i, at, ones = ZERO, ZERO, ZERO
            for word in range(high, stop):
                bits = payload[word]
                while bits and i < members:
                    part = ((word - high) << SIX | trailing_zeros(bits)) - i
                    bits &= bits - ONE
                    low = read_low(payload, offset, i * width, mask)
                    value = first + (part << width | low) - start
                    if value <= last - start:
                        at, ones = push_one(bitmap, ZERO, at, ones, value)
                    i += ONE
            bitmap[at] |= ones
            total += i
    return total


@kernel
def ranks_of_rising_into(partitions, values, members, ranks, found):
    """`ranks_into` for rising values, in one walk over the partitions, each decoded once.

    members : uint64[size], scratch
    """
    num_partitions = np.uint64(len(partitions.places) - 1)
    p = ZERO
    i = ZERO
    while i < np.uint64(len(values)):
        # The next partition may begin with the value: it then decides.
        while p + ONE < num_partitions and first_member(partitions, p + ONE) <= values[i]:
            p += ONE
        met = decode_partition(partitions, p, ZERO, num_members(partitions, p), members, ZERO)
        position = first_position(partitions, p)
        if met:
            i = merge_ranks(members, met, position, values, i, ranks, found)
        # What lies between this partition and the next.
        while i < np.uint64(len(values)) and (
            p + ONE == num_partitions or values[i] < first_member(partitions, p + ONE)
        ):
            ranks[i] = position + met
            found[i] = False
            i += ONE
