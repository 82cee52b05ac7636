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
)
from .coding import (
    BEGIN,
    END,
    HIGH,
    LANES,
    LENGTH,
    LOW,
    OFFSET,
    PLACE,
    WIDTH,
    low_mask,
    low_words,
    read_low,
    run_of_ones,
    search_lows,
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
def form(partitions, p):
    """(kind, offset, width, high, stop) of a partition: its payload's parts, in words.

    high : where its bitmap of members or of high parts begins
    """
    place = partitions.places[p]
    kind = place & KIND_MASK
    offset = place >> OFFSET_SHIFT
    width = place >> WIDTH_SHIFT & WIDTH_MASK
    high = offset
    if kind == ELIAS_FANO:
        high += low_words(num_members(partitions, p), width)
    return kind, offset, width, high, partitions.places[p + ONE] >> OFFSET_SHIFT


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
    is_member = rank < members and bool(payload[at] >> (value & WORD_MASK) & ONE)
    return min(rank, members), is_member


@kernel
def ranks_into(partitions, values, lanes, sums, ranks, found):
    """For every value the number of members below it, and whether it is a member.

    lanes, sums : see `coding.lookup_scratch`
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
            kind, offset, width, high, _ = form(partitions, p)
            # The search of low parts reads one in every lane, wherever it has none to search.
            lanes[lane, OFFSET] = offset if kind == ELIAS_FANO else ZERO
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
def members_into(partitions, positions, where, values):
    """The member at every position.

    where : uint64[n], the partition of each position; empty if it is that of the whole set
    """
    payload = partitions.payload
    for q in range(np.uint64(len(positions))):
        p = where[q] if len(where) else positions[q] // partitions.size
        i = positions[q] - first_position(partitions, p)
        first = first_member(partitions, p)
        kind, offset, width, high, stop = form(partitions, p)
        if kind == RUN:
            values[q] = first + i
            continue
        word = high
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
