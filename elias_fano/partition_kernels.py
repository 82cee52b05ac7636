"""Kernels that read partitioned Elias–Fano sets; the format is defined in `partitioned`.

A damaged payload yields wrong or fewer members, but no access out of bounds: what the directory
says is checked before, and every loop ends where its partition does.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .bits import (
    EIGHT,
    ONE,
    SIX,
    WORD_MASK,
    ZERO,
    popcount,
    prefetch,
    select_in_word,
    trailing_zeros,
)
from .coding import (
    BEGIN,
    END,
    HIGH,
    LENGTH,
    LOW,
    OFFSET,
    PLACE,
    WIDTH,
    decode_stretch,
    drop_ones,
    low_mask,
    low_words,
    merge_ranks,
    read_low,
    run_of_ones,
    search_lows,
    set_bit,
    skip_zeros,
)
from .jit import inlined, kernel
from .partition_encoding import (
    BITMAP,
    ELIAS_FANO,
    KIND_MASK,
    OFFSET_SHIFT,
    RUN,
    WIDTH_MASK,
    WIDTH_SHIFT,
)
from .search_tree import SearchTree, descend

# Queries looked up side by side, so that their cache misses overlap; measured best of 4 ... 32.
LANES = np.uint64(16)


class Partitions(NamedTuple):
    """Some or all partitions of a set, as kernels take them.

    tree : search tree over the first members; its last level holds them
    places : uint64[partitions + 1], ``payload offset << 8 | width << 2 | kind``, then the end
    numbers : uint64[partitions], which of the set's partitions these are; empty if all
    size, count : members of a partition, and of the set
    payload : uint64[...]
    """

    tree: SearchTree
    places: NDArray[np.uint64]
    numbers: NDArray[np.uint64]
    size: np.uint64
    count: np.uint64
    payload: NDArray[np.uint64]


@inlined
def first_member(partitions, p):
    """The first member of a partition."""
    levels = partitions.tree.levels
    return partitions.tree.keys[levels[len(levels) - 2] + p]


@inlined
def first_position(partitions, p):
    """Position in the set of a partition's first member."""
    if len(partitions.numbers):
        p = partitions.numbers[p]
    return p * partitions.size


@inlined
def num_members(partitions, p):
    """Number of a partition's members."""
    return min(partitions.size, partitions.count - first_position(partitions, p))


@inlined
def _rank_in_bitmap(payload, offset, stop, members, first, value):
    """(members below `value`, is it one) in a bitmap partition."""
    at = offset + (value >> SIX) - (first >> SIX)
    if at >= stop:
        return members, False
    below = (ONE << (value & WORD_MASK)) - ONE
    rank = popcount(payload[at] & below)
    for word in range(offset, at):
        rank += popcount(payload[word])
    return min(rank, members), bool(payload[at] >> (value & WORD_MASK) & ONE)


@kernel
def ranks_into(partitions, values, lanes, sums, ranks, found):
    """For every value the number of members below it, and whether it is a member.

    lanes : uint64[LANES, FIELDS], sums : uint64[9] with a zero first; scratch of the calling thread
    ranks : uint64[n]; found : bool[n]
    """
    tree, places, payload = partitions.tree, partitions.places, partitions.payload
    num_partitions = np.uint64(len(places) - 1)
    num_values = np.uint64(len(values))
    for start in range(ZERO, num_values, LANES):
        num_lanes = min(LANES, num_values - start)
        # Each loop asks for what the next one reads: the misses of all lanes overlap.
        for lane in range(num_lanes):
            lanes[lane, PLACE] = ZERO
        for level in range(np.uint64(len(tree.levels) - 1)):
            for lane in range(num_lanes):
                node = descend(tree, level, lanes[lane, PLACE], values[start + lane])
                lanes[lane, PLACE] = node
        for lane in range(num_lanes):
            p = min(lanes[lane, PLACE], num_partitions - ONE)
            lanes[lane, PLACE] = p
            prefetch(places, p)
        for lane in range(num_lanes):
            p = lanes[lane, PLACE]
            offset = places[p] >> OFFSET_SHIFT
            width = places[p] >> WIDTH_SHIFT & WIDTH_MASK
            high = offset + low_words(num_members(partitions, p), width)
            # The search of low parts reads one in every lane, wherever it has none to search.
            lanes[lane, OFFSET] = offset if places[p] & KIND_MASK == ELIAS_FANO else ZERO
            lanes[lane, WIDTH] = width
            lanes[lane, HIGH] = high
            prefetch(payload, high)
            prefetch(payload, high + EIGHT)
        longest = ZERO
        for lane in range(num_lanes):
            p = lanes[lane, PLACE]
            value = values[start + lane]
            lanes[lane, BEGIN] = ZERO
            lanes[lane, END] = ZERO
            if places[p] & KIND_MASK == ELIAS_FANO and value >= first_member(partitions, p):
                value -= first_member(partitions, p)
                width = lanes[lane, WIDTH]
                members = num_members(partitions, p)
                high = lanes[lane, HIGH]
                stop = places[p + ONE] >> OFFSET_SHIFT
                at = skip_zeros(payload, high, stop, value >> width, sums)
                begin = min(at - (value >> width), members)
                length = min(run_of_ones(payload, high, stop, at), members - begin)
                lanes[lane, BEGIN] = begin
                lanes[lane, END] = begin + length
                lanes[lane, LOW] = value & low_mask(width)
                longest = max(longest, length)
                middle = (begin + (length >> ONE)) * width >> SIX
                prefetch(payload, lanes[lane, OFFSET] + middle)
            lanes[lane, LENGTH] = lanes[lane, END] - lanes[lane, BEGIN]
        search_lows(payload, lanes, num_lanes, longest)
        for lane in range(num_lanes):
            p = lanes[lane, PLACE]
            value = values[start + lane]
            first = first_member(partitions, p)
            kind = places[p] & KIND_MASK
            rank = ZERO
            is_member = False
            if kind == ELIAS_FANO:
                rank = lanes[lane, BEGIN]
                if rank < lanes[lane, END]:
                    width = lanes[lane, WIDTH]
                    low = read_low(payload, lanes[lane, OFFSET], rank * width, low_mask(width))
                    is_member = low == lanes[lane, LOW]
            elif value >= first:
                members = num_members(partitions, p)
                if kind == RUN:
                    rank = min(value - first, members)
                    is_member = value - first < members
                else:
                    offset, stop = places[p] >> OFFSET_SHIFT, places[p + ONE] >> OFFSET_SHIFT
                    rank, is_member = _rank_in_bitmap(payload, offset, stop, members, first, value)
            ranks[start + lane] = first_position(partitions, p) + rank
            found[start + lane] = is_member


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


@kernel
def members_into(partitions, positions, where, values):
    """The member at every position.

    where : uint64[n], the partition of each position; empty if it is that of the whole set
    """
    places, payload = partitions.places, partitions.payload
    for q in range(np.uint64(len(positions))):
        p = where[q] if len(where) else positions[q] // partitions.size
        i = positions[q] - first_position(partitions, p)
        first = first_member(partitions, p)
        kind = places[p] & KIND_MASK
        offset = places[p] >> OFFSET_SHIFT
        stop = places[p + ONE] >> OFFSET_SHIFT
        if kind == RUN:
            values[q] = first + i
            continue
        width = places[p] >> WIDTH_SHIFT & WIDTH_MASK
        word = offset
        if kind == ELIAS_FANO:
            word += low_words(num_members(partitions, p), width)
        high = word
        rank = i
        at = ZERO
        while word < stop:
            count = popcount(payload[word])
            if count > rank:
                at = (word - high) << SIX | select_in_word(payload[word], rank)
                break
            rank -= count
            word += ONE
        if kind == BITMAP:
            values[q] = (first & ~WORD_MASK) + at
        else:
            low = read_low(payload, offset, i * width, low_mask(width))
            values[q] = first + ((at - i) << width | low)


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
    places, payload = partitions.places, partitions.payload
    first = first_member(partitions, p)
    kind = places[p] & KIND_MASK
    offset = places[p] >> OFFSET_SHIFT
    stop = places[p + ONE] >> OFFSET_SHIFT
    if kind == RUN:
        for i in range(stop_member - start):
            out[written + i] = first + start + i
        return stop_member
    if kind == BITMAP:
        base = first & ~WORD_MASK
        return decode_ones(payload, offset, stop, base, start, stop_member, out, written)
    width = places[p] >> WIDTH_SHIFT & WIDTH_MASK
    high = offset + low_words(num_members(partitions, p), width)
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
    places, payload = partitions.places, partitions.payload
    total = ZERO
    num_words = ((last - start) >> SIX) + ONE
    for p in range(np.uint64(len(places) - 1)):
        first = first_member(partitions, p)
        kind = places[p] & KIND_MASK
        offset = places[p] >> OFFSET_SHIFT
        stop = places[p + ONE] >> OFFSET_SHIFT
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
            width = places[p] >> WIDTH_SHIFT & WIDTH_MASK
            high = offset + low_words(members, width)
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
                        # The word is kept in a register, see `coding.push_low`.
                        if value >> SIX != at:
                            bitmap[at] |= ones
                            at, ones = value >> SIX, ZERO
                        ones |= ONE << (value & WORD_MASK)
                    i += ONE
            bitmap[at] |= ones
            total += i
    return total
