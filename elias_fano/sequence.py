"""Elias–Fano: a strictly increasing sequence of integers in at most ``2 + log2(u / n)`` bits each.

A sequence of `n` members below a universe `u` is cut at ``l = max(0, floor(log2(u / n)))`` bits, at
most 57:

lows
    the `l` low bits of every member, packed;
highs
    a bitmap in which bit ``(x >> l) + i`` is set for member `i`: `n` ones and at most ``u >> l``
    zeros, so that the high part of a member is the number of zeros before its one.

That is ``n l + n + (u >> l) + 1`` bits. Beside them stand samples, the number of ones before every
4,096 bits of the highs: 1.6 % of these, less of the whole. Serialised, everything is one array of
little-endian 64-bit words::

    header   8 words: MAGIC, version, universe (0 for 2^64), n, l, words of lows, words of highs,
             flags (1: the universe is 0)
    samples  a word per 64 words of highs, then the number of all ones
    lows, highs

P. Elias, "Efficient storage and retrieval by content and address of static files" (1974); R. Fano,
"On the number of bits required to implement an associative memory" (1971); S. Vigna,
"Quasi-succinct indices" (2013).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .builder import SetBuilder
from .coding import MAX_WIDTH, lookup_scratch
from .interface import (
    HEADER_WORDS,
    MAX_UNIVERSE,
    DamagedSet,
    Header,
    SortedSet,
    Words,
    WordSource,
    as_members,
    least_universe,
)
from .sequence_kernels import (
    BLOCK_SHIFT,
    HINT_SHIFT,
    Stretch,
    append_lows_into,
    append_ones_into,
    decode_into,
    members_into,
    ranks_into,
    ranks_of_rising_into,
)

MAGIC = int.from_bytes(b"EFSEQU01", "little")
BLOCK_WORDS = 1 << int(BLOCK_SHIFT)
HINT_STEP = 1 << int(HINT_SHIFT)
WALK_MEMBERS = 1024
"""Members that a walk along rising queries decodes at a time."""
PAGE_WORDS = 1 << 14
"""Words of the bitmap of high parts that a builder fills at a time."""


class EliasFano(SortedSet):
    """A sequence opened from its serialised words.

    Opening reads the header and the samples, the first query all the rest.

    >>> s = EliasFano.from_members([3, 5, 100, 4000], universe=10_000)
    >>> len(s), s[2], 100 in s, s.index_of(np.array([5, 6]))
    (4, 100, True, array([ 1, -1]))
    >>> s.rank(100), s.succ(101), s.pred(99), list(s)
    (2, (3, 4000), (1, 5), [3, 5, 100, 4000])
    """

    def __init__(self, source: WordSource) -> None:
        super().__init__(source, MAGIC)
        self._width = self._header.parameter
        self._low_words, high_words = self._header.lengths
        num_samples = -(-high_words // BLOCK_WORDS) + 1
        self._payload_start = HEADER_WORDS + num_samples
        if (
            self._width > MAX_WIDTH
            or self._low_words != -(-len(self) * self._width // 64)
            or high_words < -(-len(self) // 64)
            or self._payload_start + self._low_words + high_words != len(source)
        ):
            raise DamagedSet(
                f"sequence header contradicts itself: {len(self)} members of {self._width} low "
                f"bits below {self.universe} in {self._low_words} + {high_words} of "
                f"{len(source)} words"
            )
        self._samples = self._words(HEADER_WORDS, self._payload_start)
        is_whole = int(self._samples[-1]) == len(self) and (high_words == 0 or not self._samples[0])
        if not is_whole or np.any(
            self._samples[1:] - self._samples[:-1] > np.uint64(64 * BLOCK_WORDS)
        ):
            raise DamagedSet("sequence samples contradict the header")
        self._num_bits = 64 * high_words

    @classmethod
    def from_members(cls, members: ArrayLike, universe: int | None = None) -> EliasFano:
        """The sequence of sorted members; `universe` is one past the last unless given."""
        flat = as_members(members, MAX_UNIVERSE)
        if universe is None:
            universe = least_universe(flat)
        return cls.from_chunks([flat], universe, flat.size)

    @classmethod
    def from_chunks(cls, chunks: Iterable[ArrayLike], universe: int, count: int) -> EliasFano:
        """The sequence of `count` members in sorted chunks, each above the end of the last."""
        builder = SequenceBuilder(universe, count)
        for chunk in chunks:
            builder.push(chunk)
        return cls(builder.finish())

    @functools.cached_property
    def _stretch(self) -> Stretch:
        """The sequence as kernels take it, all of it read."""
        bits = np.arange(len(self._samples), dtype=np.uint64) * np.uint64(64 * BLOCK_WORDS)
        bits[-1] = self._num_bits
        return Stretch(
            samples=self._samples,
            zero_hints=_hints(bits - self._samples),
            one_hints=_hints(self._samples),
            width=np.uint64(self._width),
            count=np.uint64(len(self)),
            high=np.uint64(self._low_words),
            payload=self._words(self._payload_start, len(self.source)),
        )

    def _ranks(self, values: Words) -> tuple[Words, NDArray[np.bool_]]:
        ranks = np.empty(len(values), dtype=np.uint64)
        found = np.empty(len(values), dtype=np.bool_)
        if self._is_dense_walk(values):
            members = np.empty(WALK_MEMBERS, dtype=np.uint64)
            ranks_of_rising_into(self._stretch, values, members, ranks, found)
        else:
            ranks_into(self._stretch, values, *lookup_scratch(), ranks, found)
        return ranks, found

    def _members(self, positions: Words) -> Words:
        members = np.empty(len(positions), dtype=np.uint64)
        members_into(self._stretch, positions, members)
        return members

    def _decode_into(self, start: int, members: Words) -> int:
        return int(decode_into(self._stretch, np.uint64(start), members))


def _hints(before: Words) -> NDArray[np.uint32]:
    """For every `HINT_STEP`-th item the block that holds it, then the last block twice.

    before : uint64[blocks + 1], items before each block, then all of them
    """
    num_blocks = len(before) - 1
    steps = np.arange(0, int(before[-1]) + 1, HINT_STEP, dtype=np.uint64)
    blocks = np.searchsorted(before[:-1], steps, side="right") - 1
    last = max(num_blocks - 1, 0)
    return np.append(np.clip(blocks, 0, last), [last, last]).astype(np.uint32)


class SequenceBuilder(SetBuilder):
    """Builds a sequence from a stream of sorted chunks; its size is known from the start.

    >>> builder = SequenceBuilder(universe=100, count=3)
    >>> builder.push([1, 2]); builder.push([50])
    >>> EliasFano(builder.finish())[2]
    50
    """

    def __init__(self, universe: int, count: int, *, spool_directory: Path | None = None) -> None:
        super().__init__(universe, spool_directory)
        universe = self._universe
        if not 0 <= count <= universe:
            raise ValueError(f"{count} members do not fit below {universe}")
        self._expected = count
        width = max(0, (universe // count).bit_length() - 1) if count else 0
        self._width = min(width, int(MAX_WIDTH))
        high_bits = count + (universe >> self._width) + 1 if count else 0
        self._high_words = -(-high_bits // 64)
        # What is not a whole word of low parts yet, and a page of the bitmap.
        self._low_tail, self._low_tail_bits = np.uint64(0), 0
        self._page = np.zeros(PAGE_WORDS, dtype=np.uint64)
        self._ones = 0  # in the pages before

    def _take(self, members: Words) -> None:
        if self._count > self._expected:
            raise ValueError(f"{self._count} members were pushed, {self._expected} expected")
        _, of_lows, of_highs = self._sections
        width = np.uint64(self._width)
        num_bits = self._low_tail_bits + len(members) * self._width
        lows = np.zeros(num_bits // 64 + 1, dtype=np.uint64)
        lows[0] = self._low_tail
        append_lows_into(members, np.uint64(self._low_tail_bits), width, lows)
        self._low_tail, self._low_tail_bits = lows[-1], num_bits % 64
        of_lows.append(lows[:-1])
        start = np.uint64(self._count - len(members))
        done = 0
        while done < len(members):
            first_bit = np.uint64(64 * len(of_highs))
            done = int(
                append_ones_into(members, np.uint64(done), start, width, first_bit, self._page)
            )
            if done < len(members):
                self._append_page(PAGE_WORDS)

    def _append_page(self, num_words: int) -> None:
        """Append the first words of the page to the bitmap, with their samples, and begin anew."""
        of_samples, _, of_highs = self._sections
        page, self._page = self._page[:num_words], np.zeros(PAGE_WORDS, dtype=np.uint64)
        blocks = np.arange(0, num_words, BLOCK_WORDS)
        ones = np.add.reduceat(np.bitwise_count(page), blocks, dtype=np.uint64)
        of_samples.append(np.cumsum(ones, dtype=np.uint64) - ones + np.uint64(self._ones))
        of_highs.append(page)
        self._ones += int(ones.sum())

    def _close(self) -> Header:
        if self._count != self._expected:
            raise ValueError(f"{self._count} members were pushed, {self._expected} expected")
        of_samples, of_lows, of_highs = self._sections
        if self._low_tail_bits:
            of_lows.append(np.array([self._low_tail]))
        while left := self._high_words - len(of_highs):
            self._append_page(min(left, PAGE_WORDS))
        of_samples.append(np.array([self._ones], dtype=np.uint64))
        lengths = (len(of_lows), self._high_words)
        return Header(MAGIC, self._universe, self._count, self._width, lengths)
