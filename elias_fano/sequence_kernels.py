"""Kernels of `sequence.EliasFano`; the format is defined there."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .bits import ONE, SIX, ZERO, popcount, prefetch, select_in_word
from .coding import (
    BEGIN,
    END,
    LANES,
    LENGTH,
    LOW,
    OFFSET,
    PLACE,
    WIDTH,
    decode_stretch,
    low_mask,
    merge_ranks,
    push_low,
    push_one,
    read_low,
    run_of_ones,
    search_lows,
    skip_zeros,
)
from .jit import inlined, kernel

BLOCK_SHIFT = np.uint64(6)
BLOCK_BITS_SHIFT = np.uint64(12)
HINT_SHIFT = np.uint64(12)
LINE_WORDS = np.uint64(8)


class Stretch(NamedTuple):
    """A sequence as kernels take it.

    samples : uint64[blocks + 1], ones of the bitmap before each block of 64 words, then all
    zero_hints, one_hints : see `find_block`
    width, count : bits of a low part, and members
    high : where in the payload the bitmap begins
    payload : uint64[...], low parts and bitmap
    """

    samples: NDArray[np.uint64]
    zero_hints: NDArray[np.uint32]
    one_hints: NDArray[np.uint32]
    width: np.uint64
    count: np.uint64
    high: np.uint64
    payload: NDArray[np.uint64]


@kernel
def append_lows_into(members, filled, width, lows):
    """Append the low parts of members to the `filled` bits of the first word, the rest zero."""
    mask = low_mask(width)
    word, bits = ZERO, lows[0]
    for i in range(np.uint64(len(members))):
        word, filled, bits = push_low(lows, word, filled, bits, members[i] & mask, width)
    lows[word] = bits


@kernel
def append_ones_into(members, done, start, width, first_bit, page):
    """Set the ones of members from number `done` on, as far as they lie in a page of the bitmap.

    start : position of the first of the members; first_bit : of the page's first bit
    Returns the number of members done.
    """
    num_bits = np.uint64(len(page)) << SIX
    word, bits = ZERO, page[0]
    for i in range(done, np.uint64(len(members))):
        bit = (members[i] >> width) + start + i - first_bit
        if bit >= num_bits:
            page[word] |= bits
            return i
        word, bits = push_one(page, ZERO, word, bits, bit)
    page[word] |= bits
    return np.uint64(len(members))


@inlined
def find_block(stretch, wanted, of_zeros):
    """The last block with at most `wanted` zeros (or ones) before it.

    The hints, uint32[...], name for every 4,096th zero (or one) a block not after its own.
    """
    hints = stretch.zero_hints if of_zeros else stretch.one_hints
    hint = wanted >> HINT_SHIFT
    low = np.uint64(hints[hint])
    length = np.uint64(hints[hint + ONE]) - low + ONE
    while length > ONE:
        half = length >> ONE
        before = stretch.samples[low + half]
        if of_zeros:
            before = ((low + half) << BLOCK_BITS_SHIFT) - before
        low += half * np.uint64(before <= wanted)
        length -= half
    return low


@inlined
def skip_ones(stretch, position):
    """(word that holds the one of a member, ones before the word)."""
    block = find_block(stretch, position, False)
    before = stretch.samples[block]
    word = stretch.high + (block << BLOCK_SHIFT)
    while word < np.uint64(len(stretch.payload)):
        count = popcount(stretch.payload[word])
        if before + count > position:
            break
        before += count
        word += ONE
    return word, before


@kernel
def ranks_into(stretch, values, lanes, sums, ranks, found):
    """For every value the number of members below it, and whether it is a member.

    lanes, sums : see `coding.lookup_scratch`
    """
    payload, width, high = stretch.payload, stretch.width, stretch.high
    stop = np.uint64(len(payload))
    num_zeros = ((stop - high) << SIX) - stretch.count
    num_values = np.uint64(len(values))
    for start in range(ZERO, num_values, LANES):
        num_lanes = min(LANES, num_values - start)
        # Each loop asks for what the next one reads: the misses of all lanes overlap.
        for lane in range(num_lanes):
            wanted = min(values[start + lane] >> width, num_zeros)
            # The members with this high part follow the zero before it, or begin the sequence.
            block = find_block(stretch, wanted - ONE, True) if wanted else ZERO
            lanes[lane, PLACE] = block
            line = high + (block << BLOCK_SHIFT)
            for _ in range(np.uint64(4)):
                prefetch(payload, line)
                line += LINE_WORDS
        longest = ZERO
        for lane in range(num_lanes):
            wanted = values[start + lane] >> width
            block = lanes[lane, PLACE]
            before = (block << BLOCK_BITS_SHIFT) - stretch.samples[block]
            begin = stretch.count
            length = ZERO
            if wanted <= num_zeros:
                at = skip_zeros(
                    payload, high + (block << BLOCK_SHIFT), stop, wanted - before, sums
                ) + (block << BLOCK_BITS_SHIFT)
                begin = min(at - wanted, stretch.count)
                length = min(run_of_ones(payload, high, stop, at), stretch.count - begin)
            lanes[lane, BEGIN] = begin
            lanes[lane, LENGTH] = length
            lanes[lane, END] = begin + length
            lanes[lane, OFFSET] = ZERO
            lanes[lane, WIDTH] = width
            lanes[lane, LOW] = values[start + lane] & low_mask(width)
            longest = max(longest, length)
            prefetch(payload, (begin + (length >> ONE)) * width >> SIX)
        search_lows(payload, lanes, num_lanes, longest)
        for lane in range(num_lanes):
            rank = lanes[lane, BEGIN]
            is_member = False
            if rank < lanes[lane, END]:
                low = read_low(payload, ZERO, rank * width, low_mask(width))
                is_member = low == lanes[lane, LOW]
            ranks[start + lane] = rank
            found[start + lane] = is_member


@kernel
def ranks_of_rising_into(stretch, values, members, ranks, found):
    """`ranks_into` for rising values, in one walk over the sequence, decoded piece by piece.

    members : uint64[...], scratch, the size of a piece
    """
    word = stretch.high
    before = ZERO  # ones before the word
    position = ZERO
    i = ZERO
    while i < np.uint64(len(values)) and position < stretch.count:
        # Whole words, so that the next piece begins at one.
        stop_member = position
        stop = word
        while stop < np.uint64(len(stretch.payload)):
            count = popcount(stretch.payload[stop])
            if stop_member - position + count > np.uint64(len(members)):
                break
            stop_member += count
            stop += ONE
        # A damaged bitmap may hold more ones than there are members.
        stop_member = min(stop_member, stretch.count)
        met = decode_stretch(
            stretch.payload, ZERO, stretch.high, word, before, stop, ZERO, stretch.width, position,
            stop_member, members, ZERO,
        )  # fmt: skip
        if met > position:
            i = merge_ranks(members, met - position, position, values, i, ranks, found)
        word, before = stop, met
        position = met
        if stop >= np.uint64(len(stretch.payload)):
            break
    while i < np.uint64(len(values)):
        ranks[i] = stretch.count
        found[i] = False
        i += ONE


@kernel
def members_into(stretch, positions, values):
    """The member at every position, all in range."""
    payload, width = stretch.payload, stretch.width
    for q in range(np.uint64(len(positions))):
        i = positions[q]
        word, before = skip_ones(stretch, i)
        at = ZERO
        if word < np.uint64(len(payload)):
            at = (word - stretch.high) << SIX | select_in_word(payload[word], i - before)
        low = read_low(payload, ZERO, i * width, low_mask(width))
        values[q] = (at - i) << width | low


@kernel
def decode_into(stretch, start, out):
    """Fill `out` with the members from position `start` on; returns the number written."""
    stop_member = start + np.uint64(len(out))
    word, before = skip_ones(stretch, start)
    met = decode_stretch(
        stretch.payload, ZERO, stretch.high, word, before, np.uint64(len(stretch.payload)), ZERO,
        stretch.width, start, stop_member, out, ZERO,
    )  # fmt: skip
    return met - min(start, met)
