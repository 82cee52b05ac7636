"""Elias–Fano: a strictly increasing sequence of integers in at most ``2 + log2(u / n)`` bits each.

A sequence of `n` members below a universe `u` is cut at ``l = max(0, floor(log2(u / n)))`` bits:

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

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .interface import (
    MAX_UNIVERSE,
    DamagedSet,
    SortedSet,
    Words,
    as_members,
    checked_universe,
)
from .partition_kernels import LANES
from .sequence_kernels import (
    append_members_into,
    decode_into,
    members_into,
    ranks_into,
    sample_ones_into,
)

MAGIC = int.from_bytes(b"EFSEQU01", "little")
VERSION = 1
HEADER_WORDS = 8
EMPTY_UNIVERSE = 1
BLOCK_WORDS = 64
HINT_STEP = 4096


class EliasFano(SortedSet):
    """A sequence opened from its serialised words, all of which are in memory or mapped.

    >>> s = EliasFano.from_members([3, 5, 100, 4000], universe=10_000)
    >>> len(s), s[2], 100 in s, s.index_of(np.array([5, 6]))
    (4, 100, True, array([ 1, -1]))
    >>> s.rank(100), s.succ(101), s.pred(99), list(s)
    (2, (3, 4000), (1, 5), [3, 5, 100, 4000])
    """

    def __init__(self, words: Words) -> None:
        if len(words) < HEADER_WORDS or int(words[0]) != MAGIC:
            raise DamagedSet("no Elias-Fano sequence: the first word is not its magic")
        if int(words[1]) != VERSION:
            raise DamagedSet(f"sequence version {int(words[1])}; this program reads {VERSION}")
        universe, self._count, width, low_words, high_words, flags = (
            int(word) for word in words[2:8]
        )
        self.universe = universe or (0 if flags & EMPTY_UNIVERSE else MAX_UNIVERSE)
        num_samples = -(-high_words // BLOCK_WORDS) + 1
        lows = HEADER_WORDS + num_samples
        if (
            width > 63
            or self._count > self.universe
            or low_words != -(-self._count * width // 64)
            or high_words < -(-self._count // 64)
            or lows + low_words + high_words != len(words)
        ):
            raise DamagedSet(
                f"sequence header contradicts itself: {self._count} members of {width} low bits "
                f"below {self.universe} in {low_words} + {high_words} of {len(words)} words"
            )
        self._words = words
        self._width = np.uint64(width)
        self._samples = words[HEADER_WORDS:lows]
        self._lows = words[lows : lows + low_words]
        self._highs = words[lows + low_words :]
        if int(self._samples[-1]) != self._count or np.any(
            self._samples[1:] - self._samples[:-1] > np.uint64(64 * BLOCK_WORDS)
        ):
            raise DamagedSet("sequence samples contradict the header")
        self._one_hints = _hints(self._samples)
        bits = np.arange(num_samples, dtype=np.uint64) * np.uint64(64 * BLOCK_WORDS)
        bits[-1] = 64 * high_words
        self._zero_hints = _hints(bits - self._samples)

    @classmethod
    def from_members(cls, members: ArrayLike, universe: int | None = None) -> EliasFano:
        """The sequence of sorted members; `universe` is one past the last unless given."""
        flat = as_members(members, MAX_UNIVERSE)
        if universe is None:
            universe = int(flat[-1]) + 1 if len(flat) else 0
        builder = SequenceBuilder(len(flat), universe)
        builder.push(flat)
        return cls(builder.finish())

    @classmethod
    def from_chunks(cls, chunks: Iterable[ArrayLike], count: int, universe: int) -> EliasFano:
        """The sequence of `count` members in sorted chunks, each above the end of the last."""
        builder = SequenceBuilder(count, universe)
        for chunk in chunks:
            builder.push(chunk)
        return cls(builder.finish())

    def __len__(self) -> int:
        return self._count

    @property
    def nbytes(self) -> int:
        """Bytes of the sequence, serialised."""
        return int(self._words.nbytes)

    @property
    def words(self) -> Words:
        """The serialised sequence."""
        return self._words

    def _ranks(self, values: Words) -> tuple[Words, NDArray[np.bool_]]:
        ranks = np.empty(len(values), dtype=np.uint64)
        found = np.empty(len(values), dtype=np.bool_)
        ranks_into(
            self._lows, self._highs, self._samples, self._zero_hints, self._width,
            np.uint64(self._count), values, np.empty((int(LANES), 2), dtype=np.uint64), ranks,
            found,
        )  # fmt: skip
        return ranks, found

    def _members(self, positions: Words) -> Words:
        members = np.empty(len(positions), dtype=np.uint64)
        members_into(
            self._lows, self._highs, self._samples, self._one_hints, self._width, positions, members
        )
        return members

    def decode(self, start: int = 0, stop: int | None = None) -> Words:
        """The members at the positions ``[start, stop)`` as an array. Raises DamagedSet."""
        start, stop = self._checked_range(start, stop)
        members = np.empty(stop - start, dtype=np.uint64)
        if len(members):
            written = decode_into(
                self._lows, self._highs, self._samples, self._one_hints, self._width,
                np.uint64(start), members,
            )  # fmt: skip
            if written != len(members):
                raise DamagedSet(f"{len(members)} members from {start} on decode to {written}")
        return members


def _hints(before: Words) -> NDArray[np.uint32]:
    """For every `HINT_STEP`-th item the block that holds it, then the last block twice.

    before : uint64[blocks + 1], items before each block, then all of them
    """
    num_blocks = len(before) - 1
    steps = np.arange(0, int(before[-1]) + 1, HINT_STEP, dtype=np.uint64)
    blocks = np.searchsorted(before[:-1], steps, side="right") - 1
    last = max(num_blocks - 1, 0)
    return np.append(np.clip(blocks, 0, last), [last, last]).astype(np.uint32)


class SequenceBuilder:
    """Builds a sequence from a stream of sorted chunks; its size is known from the start.

    >>> builder = SequenceBuilder(count=3, universe=100)
    >>> builder.push([1, 2]); builder.push([50])
    >>> EliasFano(builder.finish())[2]
    50
    """

    def __init__(self, count: int, universe: int) -> None:
        self._universe = checked_universe(universe)
        if not 0 <= count <= universe:
            raise ValueError(f"{count} members do not fit below {universe}")
        self._count = count
        width = max(0, (universe // count).bit_length() - 1) if count else 0
        self._width = min(width, 63)
        low_words = -(-count * self._width // 64)
        high_bits = count + (universe >> self._width) + 1 if count else 0
        high_words = -(-high_bits // 64)
        samples = HEADER_WORDS + -(-high_words // BLOCK_WORDS) + 1
        flags = 0 if universe else EMPTY_UNIVERSE
        header = [MAGIC, VERSION, universe % MAX_UNIVERSE, count, self._width, low_words,
                  high_words, flags]  # fmt: skip
        self._words = np.zeros(samples + low_words + high_words, dtype=np.uint64)
        self._words[:HEADER_WORDS] = np.array(header, dtype=np.uint64)
        self._samples = self._words[HEADER_WORDS:samples]
        self._lows = self._words[samples : samples + low_words]
        self._highs = self._words[samples + low_words :]
        self._pushed = 0
        self._last = -1

    def push(self, members: ArrayLike) -> None:
        """Append members, sorted and above all before. Raises TypeError, ValueError."""
        flat = as_members(members, self._universe, self._last)
        if self._pushed + len(flat) > self._count:
            raise ValueError(
                f"{self._pushed + len(flat)} members were pushed, {self._count} expected"
            )
        if len(flat):
            append_members_into(
                flat, np.uint64(self._pushed), np.uint64(self._width), self._lows, self._highs
            )
            self._pushed += len(flat)
            self._last = int(flat[-1])

    def finish(self) -> Words:
        """The serialised sequence. Raises ValueError if members are missing."""
        if self._pushed != self._count:
            raise ValueError(f"{self._pushed} members were pushed, {self._count} expected")
        sample_ones_into(self._highs, self._samples)
        return self._words
