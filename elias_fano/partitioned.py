"""Partitioned Elias–Fano sets: strictly increasing integers, few bits each, readable in parts.

The `n` members are cut into partitions of `m` members each (the last may be short). A partition
that starts at member `b` and spans `u` values is held as whichever is smallest:

run
    all `m` members consecutive: no payload;
bitmap
    the 64-bit words of the plain bitmap of the set, from the word of `b` on;
Elias–Fano
    with ``l = max(0, floor(log2(u / m)))``, at most 57: the `l` low bits of each ``x - b``, packed
    into words, then the words of a bitmap with bit ``((x - b) >> l) + i`` set for member `i`: at
    most ``2 + log2(u / m)`` bits a member.

A directory gives each partition's first member, kind, width `l` and place, so a query reads the
directory and one partition. Serialised, everything is one array of little-endian 64-bit words::

    header     8 words: MAGIC, version, universe (0 for 2^64), n, m, number of partitions,
               payload words, flags (1: the universe is 0)
    firsts     a word per partition: its first member
    places     a word per partition: payload offset << 8 | l << 2 | kind
    payload    the partitions

After P. Elias (1974), R. Fano (1971), and G. Ottaviano and R. Venturini, "Partitioned Elias-Fano
indexes" (2014).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .bits import ONE, SIX, WORD_MASK, ZERO, empty_bitmap
from .coding import MAX_WIDTH, lookup_scratch
from .interface import (
    HEADER_WORDS,
    MAX_UNIVERSE,
    DamagedSet,
    SortedSet,
    Words,
    WordSource,
    as_members,
    least_universe,
)
from .partition_builder import (
    MAGIC,
    MAX_PARTITION_SIZE,
    PartitionedBuilder,
    encode_members,
    members_per_partition,
)
from .partition_decoding import decode_bitmap_into, decode_into, ranks_of_rising_into
from .partition_encoding import ELIAS_FANO, KIND_MASK, OFFSET_SHIFT, WIDTH_MASK, WIDTH_SHIFT
from .partition_kernels import Partitions, members_into, ranks_into
from .search_tree import build_tree, find_into

_NO_WORDS = np.empty(0, dtype=np.uint64)


class PartitionedEliasFano(SortedSet):
    """A set of integers in ``[0, universe)``, opened from its serialised words.

    Opening reads the header and the directory; a query reads the partitions it needs.

    >>> s = PartitionedEliasFano.from_members([3, 5, 100, 4000], universe=10_000)
    >>> len(s), s[2], 100 in s, s.index_of(np.array([5, 6]))
    (4, 100, True, array([ 1, -1]))
    >>> s.rank(100), s.succ(101), s.pred(99), s.decode(1, 3)
    (2, (3, 4000), (1, 5), array([  5, 100], dtype=uint64))
    """

    def __init__(self, source: WordSource) -> None:
        super().__init__(source, MAGIC)
        self._size = self._header.parameter
        num_partitions, payload_words = self._header.lengths
        self._payload_start = HEADER_WORDS + 2 * num_partitions
        if (
            not 64 <= self._size <= MAX_PARTITION_SIZE
            or num_partitions != -(-len(self) // self._size)
            or self._payload_start + payload_words != len(source)
        ):
            raise DamagedSet(
                f"set header contradicts itself: {len(self)} members below {self.universe} in "
                f"{num_partitions} partitions of {self._size}, {payload_words} payload words, "
                f"{len(source)} in all"
            )
        directory = self._words(HEADER_WORDS, self._payload_start)
        self._firsts = directory[:num_partitions]
        self._places = np.append(
            directory[num_partitions:], np.uint64(payload_words << int(OFFSET_SHIFT))
        )
        self._check_directory()

    @classmethod
    def from_members(
        cls, members: ArrayLike, universe: int | None = None, **options: float
    ) -> PartitionedEliasFano:
        """The set of sorted members; `universe` is one past the last unless given.

        options : `partition_size` and `bitmap_bias` of `encode_bitmap`
        """
        flat = as_members(members, MAX_UNIVERSE)
        if universe is None:
            universe = least_universe(flat)
        return cls(encode_members(flat, universe, **options))  # type: ignore[arg-type]

    @classmethod
    def from_chunks(
        cls, chunks: Iterable[ArrayLike], universe: int, **options: float
    ) -> PartitionedEliasFano:
        """The set of the members of sorted chunks, each beginning above the end of the last."""
        builder = PartitionedBuilder(universe, **options)  # type: ignore[arg-type]
        for chunk in chunks:
            builder.push(chunk)
        return cls(builder.finish())

    def _check_directory(self) -> None:
        """Make sure that no query can leave its partition."""
        offsets, places = self._places >> OFFSET_SHIFT, self._places[:-1]
        num_partitions = len(places)
        members = members_per_partition(num_partitions, self._size, len(self))
        widths = places >> WIDTH_SHIFT & WIDTH_MASK
        kinds = places & KIND_MASK
        with np.errstate(over="ignore"):
            low_words = (members * widths + WORD_MASK) >> SIX
            least = np.where(kinds == ELIAS_FANO, low_words + ONE, ZERO)
            fits = (offsets[1:] >= offsets[:-1]) & (offsets[1:] - offsets[:-1] >= least)
        if not (
            np.all(fits)
            and np.all(kinds <= ELIAS_FANO)
            and np.all(widths <= MAX_WIDTH)
            and offsets[0] == 0
            and np.all(self._firsts[1:] > self._firsts[:-1])
            and (not num_partitions or int(self._firsts[-1]) < self.universe)
        ):
            raise DamagedSet("set directory contradicts itself")

    @property
    def num_partitions(self) -> dict[str, int]:
        """Number of partitions of each kind."""
        kinds = np.bincount((self._places[:-1] & KIND_MASK).astype(np.int64), minlength=3)
        return dict(zip(("run", "bitmap", "elias_fano"), kinds.tolist(), strict=True))

    # --- queries ------------------------------------------------------------------------------

    @functools.cached_property
    def _all(self) -> Partitions:
        """All partitions, with the payload as the source gives it."""
        payload = self._words(self._payload_start, len(self.source))
        return self._partitions(self._firsts, self._places, _NO_WORDS, payload)

    def _partitions(
        self, firsts: Words, places: Words, numbers: Words, payload: Words
    ) -> Partitions:
        return Partitions(
            build_tree(firsts), places, numbers, np.uint64(self._size), np.uint64(len(self)),
            payload,
        )  # fmt: skip

    @functools.cached_property
    def _directory(self) -> Partitions:
        """All partitions without their payload."""
        return self._partitions(self._firsts, self._places, _NO_WORDS, _NO_WORDS)

    def _read(self, numbers: NDArray[np.uint64]) -> Partitions:
        """The partitions of rising numbers, of which there is at least one, with their payload."""
        offsets = self._places >> OFFSET_SHIFT
        starts, stops = offsets[numbers], offsets[numbers + ONE]
        # Neighbours are read at once.
        cuts = np.flatnonzero(np.diff(numbers) > ONE) + 1
        pieces = [
            self._words(self._payload_start + int(a), self._payload_start + int(b))
            for a, b in zip(
                starts[np.concatenate([[0], cuts])], stops[np.append(cuts - 1, -1)], strict=True
            )
        ]
        ends = np.cumsum(stops - starts, dtype=np.uint64)
        forms = self._places[numbers] & ((ONE << OFFSET_SHIFT) - ONE)
        places = np.append((ends - (stops - starts)) << OFFSET_SHIFT | forms,
                           ends[-1:] << OFFSET_SHIFT)  # fmt: skip
        payload = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
        return self._partitions(self._firsts[numbers], places, numbers, payload)

    def _partitions_of(self, values: Words) -> Partitions:
        """Partitions that decide about values: all where they are in memory."""
        if self._is_in_memory:
            return self._all
        numbers = np.empty(len(values), dtype=np.uint64)
        find_into(self._directory.tree, np.uint64(len(self._firsts)), values, numbers)
        return self._read(np.unique(numbers))

    def _ranks(self, values: Words) -> tuple[Words, NDArray[np.bool_]]:
        ranks = np.zeros(len(values), dtype=np.uint64)
        found = np.zeros(len(values), dtype=np.bool_)
        if not len(self) or not len(values):
            return ranks, found
        partitions = self._partitions_of(values)
        if self._is_dense_walk(values):
            members = np.empty(min(self._size, len(self)), dtype=np.uint64)
            ranks_of_rising_into(partitions, values, members, ranks, found)
        else:
            ranks_into(partitions, values, *lookup_scratch(), ranks, found)
        return ranks, found

    def _members(self, positions: Words) -> Words:
        members = np.empty(len(positions), dtype=np.uint64)
        if not len(positions):
            return members
        if self._is_in_memory:
            members_into(self._all, positions, _NO_WORDS, members)
        else:
            numbers, where = np.unique(positions // np.uint64(self._size), return_inverse=True)
            members_into(self._read(numbers), positions, where.astype(np.uint64), members)
        return members

    def _decode_into(self, start: int, members: Words) -> int:
        first, skip = divmod(start, self._size)
        partitions = self._run(first, (start + len(members) - 1) // self._size)
        return int(decode_into(partitions, ZERO, np.uint64(skip), members))

    def _run(self, first: int, last: int) -> Partitions:
        return self._read(np.arange(first, last + 1, dtype=np.uint64))

    def to_bitmap(self, start: int = 0, stop: int | None = None) -> Words:
        """The plain bitmap of the values in ``[start, stop)``, spare word included.

        start : a multiple of 64; stop : the universe unless given
        Reads only the partitions of the range. Raises DamagedSet.
        """
        stop = self.universe if stop is None else stop
        if not 0 <= start <= stop <= self.universe or start % 64:
            raise ValueError(
                f"values {start} to {stop}: they must lie in 0 to {self.universe}, and the first "
                "be a multiple of 64"
            )
        bitmap = empty_bitmap(stop - start)
        end = int(np.searchsorted(self._firsts, np.uint64(max(stop, 1) - 1), side="right"))
        if start == stop or not end:
            return bitmap
        begin = int(np.searchsorted(self._firsts[:end], np.uint64(start), side="right"))
        begin = max(begin - 1, 0)
        partitions = self._run(begin, end - 1)
        met = decode_bitmap_into(partitions, np.uint64(start), np.uint64(stop - 1), bitmap)
        expected = min(end * self._size, len(self)) - begin * self._size
        if met != expected:
            raise DamagedSet(f"{expected} members decode to {met}")
        if stop % 64:
            bitmap[(stop - start) // 64] &= (ONE << np.uint64(stop % 64)) - ONE
        return bitmap
