"""Kernels of partitioned Elias–Fano sets; the format is defined in `partitioned`.

Arguments that many share:

firsts : uint64[partitions], first member of each partition
places : uint64[partitions], ``payload offset << 8 | width << 2 | kind``
stops : uint64[partitions], end of each partition's payload
shifts : uint64[partitions], how far a payload lies before its place (payloads read in part)
size, count : members of a partition, and of the set
"""

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
    prefetch,
    select_in_word,
    trailing_zeros,
)
from .jit import inlined, kernel

RUN, BITMAP, ELIAS_FANO = np.uint64(0), np.uint64(1), np.uint64(2)
KIND_MASK = np.uint64(3)
WIDTH_SHIFT = np.uint64(2)
WIDTH_MASK = np.uint64(63)
OFFSET_SHIFT = np.uint64(8)

# Queries looked up side by side, so that their cache misses overlap; measured best of 4 ... 32.
LANES = np.uint64(16)


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
def low_words(count, width):
    """Words that `count` low parts of `width` bits take."""
    return (count * width + WORD_MASK) >> SIX


@inlined
def write_low(words, offset, i, width, value):
    """Write the low part of member `i` into zeroed words."""
    low = value & low_bits(width)
    at = i * width
    shift = at & WORD_MASK
    words[offset + (at >> SIX)] |= low << shift
    if shift + width > WORD_BITS:
        words[offset + (at >> SIX) + ONE] |= low >> (WORD_BITS - shift)


@inlined
def read_low(words, offset, i, width):
    """The low part of member `i`."""
    if width == ZERO:
        return ZERO
    at = i * width
    shift = at & WORD_MASK
    low = words[offset + (at >> SIX)] >> shift
    if shift + width > WORD_BITS:
        low |= words[offset + (at >> SIX) + ONE] << (WORD_BITS - shift)
    return low & low_bits(width)


@inlined
def set_bit(words, offset, position):
    """Set a bit of the bitmap that starts at word `offset`."""
    words[offset + (position >> SIX)] |= ONE << (position & WORD_MASK)


@kernel
def encode_bitmap_into(bitmap, firsts, lasts, places, size, count, payload):
    """Write every partition of a bitmap's members to its place in a zeroed payload."""
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
        high = offset + low_words(min(size, count - partition * size), width)
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
                write_low(payload, offset, i, width, value)
                set_bit(payload, high, (value >> width) + i)
                i += ONE


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
            for i in range(stop - start):
                value = members[start + i] - first
                write_low(payload, offset, i, width, value)
                set_bit(payload, high, (value >> width) + i)


@kernel
def decode_bitmap_into(firsts, places, stops, size, count, payload, bitmap):
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
                set_bit(bitmap, ZERO, value)
                total += ONE
        elif kind == BITMAP:
            word = first >> SIX
            for i in range(min(stop - offset, (num_bits >> SIX) - word)):
                bitmap[word + i] |= payload[offset + i]
                total += popcount(payload[offset + i])
        else:
            width = places[partition] >> WIDTH_SHIFT & WIDTH_MASK
            high = offset + low_words(members, width)
            i = ZERO
            for word in range(stop - high):
                bits = payload[high + word]
                while bits and i < members:
                    at = word << SIX | trailing_zeros(bits)
                    bits &= bits - ONE
                    value = first + ((at - i) << width | read_low(payload, offset, i, width))
                    if value < num_bits:
                        set_bit(bitmap, ZERO, value)
                        total += ONE
                    i += ONE
    return total


@kernel
def decode_members_into(firsts, places, stops, shifts, size, count, payload, start, out):
    """Fill `out` with the members from position `start` on; returns the number written.

    A damaged payload yields fewer, or other members, but no access out of bounds.
    """
    written = ZERO
    wanted = np.uint64(len(out))
    partition = start // size
    skip = start % size
    while written < wanted:
        first = firsts[partition]
        kind = places[partition] & KIND_MASK
        offset = (places[partition] >> OFFSET_SHIFT) - shifts[partition]
        stop = stops[partition] - shifts[partition]
        members = min(size, count - partition * size)
        before = written
        if kind == RUN:
            for i in range(skip, min(members, skip + wanted - written)):
                out[written] = first + i
                written += ONE
        else:
            width = places[partition] >> WIDTH_SHIFT & WIDTH_MASK
            bits_start = offset if kind == BITMAP else offset + low_words(members, width)
            i = ZERO
            for word in range(stop - bits_start):
                bits = payload[bits_start + word]
                if i + popcount(bits) <= skip:
                    i += popcount(bits)
                    continue
                while bits and i < members and written < wanted:
                    at = word << SIX | trailing_zeros(bits)
                    bits &= bits - ONE
                    if i >= skip:
                        if kind == BITMAP:
                            out[written] = (first & ~WORD_MASK) + at
                        else:
                            low = read_low(payload, offset, i, width)
                            out[written] = first + ((at - i) << width | low)
                        written += ONE
                    i += ONE
                if written == wanted:
                    break
        if written < wanted and written - before != members - skip:
            return written  # damaged: the partition holds another number of members
        partition += ONE
        skip = ZERO
    return written


@inlined
def find_partition(firsts, starts, shift, value):
    """The last partition that starts at or below `value`; 0 if there is none.

    starts : uint32[buckets + 1], number of partitions that start below ``bucket << shift``
    """
    bucket = min(value >> shift, np.uint64(len(starts) - 2))
    low = np.uint64(starts[bucket])
    length = np.uint64(starts[bucket + ONE]) - low + ONE
    if low:
        low -= ONE
    else:
        length -= ONE
    while length > ONE:
        half = length >> ONE
        # No branch: which half it is, is a coin toss.
        low += half * np.uint64(firsts[low + half] <= value)
        length -= half
    return low


@inlined
def _skip_zeros(payload, high, stop, wanted):
    """Position just after `wanted` zeros in the bitmap ``[high, stop)`` of words.

    That is where the members with this high part begin. If there are fewer zeros, a position so
    far past the end that no member comes after it.
    """
    zeros = ZERO
    word = high
    while word < stop:
        in_word = popcount(~payload[word])
        if zeros + in_word >= wanted:
            break
        zeros += in_word
        word += ONE
    if word >= stop:
        return ((stop - high) << SIX) + wanted
    at = (word - high) << SIX
    if wanted:
        at += select_in_word(~payload[word], wanted - zeros - ONE) + ONE
    return at


@inlined
def run_length(bits, base, stop, at):
    """Number of ones from position `at` on in the bitmap ``[base, stop)`` of words."""
    length = ZERO
    word = base + (at >> SIX)
    if word >= stop:
        return length
    zeros = ~bits[word] >> (at & WORD_MASK)
    if zeros:
        return trailing_zeros(zeros)
    length = WORD_BITS - (at & WORD_MASK)
    word += ONE
    while word < stop and ~bits[word] == ZERO:
        length += WORD_BITS
        word += ONE
    if word < stop:
        length += trailing_zeros(~bits[word])
    return length


@inlined
def search_lows(words, offset, i, length, width, low):
    """Position of the first low part not below `low` among members ``[i, i + length)``."""
    # In clusters many members share a high part: a linear search would be most of the time.
    while length:
        half = length >> ONE
        if read_low(words, offset, i + half, width) < low:
            i += half + ONE
            length -= half + ONE
        else:
            length = half
    return i


@inlined
def _rank_from(payload, offset, high, stop, members, width, value, at):
    """(members below `value`, is it one), from where its high part begins in the bitmap."""
    low = value & low_bits(width)
    i = min(at - (value >> width), members)
    end = i + min(run_length(payload, high, stop, at), members - i)
    i = search_lows(payload, offset, i, end - i, width, low)
    return i, i < end and read_low(payload, offset, i, width) == low


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
def ranks_into(
    firsts, places, stops, shifts, starts, shift, size, count, payload, values, lanes, ranks, found
):
    """For every value the number of members below it, and whether it is a member.

    starts, shift : see `find_partition`
    lanes : uint64[LANES, 2], scratch of the calling thread
    ranks : uint64[n]; found : bool[n]
    """
    num_values = np.uint64(len(values))
    for start in range(ZERO, num_values, LANES):
        num_lanes = min(LANES, num_values - start)
        # Each loop asks for what the next one reads: the misses of all lanes overlap.
        for lane in range(num_lanes):
            value = values[start + lane]
            prefetch(starts, min(value >> shift, np.uint64(len(starts) - 2)))
        for lane in range(num_lanes):
            partition = find_partition(firsts, starts, shift, values[start + lane])
            lanes[lane, 0] = partition
            prefetch(places, partition)
        for lane in range(num_lanes):
            partition = lanes[lane, 0]
            offset = (places[partition] >> OFFSET_SHIFT) - shifts[partition]
            if places[partition] & KIND_MASK == ELIAS_FANO:
                width = places[partition] >> WIDTH_SHIFT & WIDTH_MASK
                offset += low_words(min(size, count - partition * size), width)
            prefetch(payload, offset)
        for lane in range(num_lanes):
            partition = lanes[lane, 0]
            value = values[start + lane]
            if places[partition] & KIND_MASK == ELIAS_FANO and value >= firsts[partition]:
                value -= firsts[partition]
                offset = (places[partition] >> OFFSET_SHIFT) - shifts[partition]
                width = places[partition] >> WIDTH_SHIFT & WIDTH_MASK
                high = offset + low_words(min(size, count - partition * size), width)
                stop = stops[partition] - shifts[partition]
                at = _skip_zeros(payload, high, stop, value >> width)
                lanes[lane, 1] = at
                prefetch(payload, offset + ((at - (value >> width)) * width >> SIX))
        for lane in range(num_lanes):
            partition = lanes[lane, 0]
            value = values[start + lane]
            first = firsts[partition]
            members = min(size, count - partition * size)
            kind = places[partition] & KIND_MASK
            offset = (places[partition] >> OFFSET_SHIFT) - shifts[partition]
            stop = stops[partition] - shifts[partition]
            if value < first:
                rank = ZERO
                is_member = False
            elif kind == RUN:
                rank = min(value - first, members)
                is_member = value - first < members
            elif kind == BITMAP:
                rank, is_member = _rank_in_bitmap(payload, offset, stop, members, first, value)
            else:
                width = places[partition] >> WIDTH_SHIFT & WIDTH_MASK
                high = offset + low_words(members, width)
                rank, is_member = _rank_from(
                    payload, offset, high, stop, members, width, value - first, lanes[lane, 1]
                )
            ranks[start + lane] = partition * size + rank
            found[start + lane] = is_member


@kernel
def members_into(firsts, places, stops, shifts, size, count, payload, positions, values):
    """The member at every position, all below `count`."""
    for q in range(np.uint64(len(positions))):
        partition = positions[q] // size
        i = positions[q] % size
        first = firsts[partition]
        kind = places[partition] & KIND_MASK
        offset = (places[partition] >> OFFSET_SHIFT) - shifts[partition]
        stop = stops[partition] - shifts[partition]
        if kind == RUN:
            values[q] = first + i
            continue
        members = min(size, count - partition * size)
        width = places[partition] >> WIDTH_SHIFT & WIDTH_MASK
        bits_start = offset if kind == BITMAP else offset + low_words(members, width)
        rank = i
        at = ZERO
        for word in range(stop - bits_start):
            bits = payload[bits_start + word]
            if popcount(bits) > rank:
                at = word << SIX | select_in_word(bits, rank)
                break
            rank -= popcount(bits)
        if kind == BITMAP:
            values[q] = (first & ~WORD_MASK) + at
        else:
            values[q] = first + ((at - i) << width | read_low(payload, offset, i, width))
