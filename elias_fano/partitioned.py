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
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .bits import ONE, SIX, WORD_MASK, ZERO, empty_bitmap
from .coding import FIELDS, MAX_WIDTH
from .interface import (
    HEADER_WORDS,
    MAX_UNIVERSE,
    DamagedSet,
    Header,
    SetBuilder,
    SortedSet,
    Words,
    WordSource,
    as_members,
    checked_universe,
)
from .partition_encoding import (
    BITMAP,
    ELIAS_FANO,
    KIND_MASK,
    OFFSET_SHIFT,
    RUN,
    WIDTH_MASK,
    WIDTH_SHIFT,
    encode_bitmap_into,
    encode_members_into,
    partition_bounds_into,
)
from .partition_kernels import (
    LANES,
    Partitions,
    decode_bitmap_into,
    decode_into,
    members_into,
    ranks_into,
    ranks_of_rising_into,
)
from .search_tree import build_tree, find_into

MAGIC = int.from_bytes(b"EFPART01", "little")
DEFAULT_PARTITION_SIZE = 128

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
        self.source = source
        header = Header.parse(source[0:HEADER_WORDS], MAGIC)
        self.universe, self._count, self._size = (
            header.universe,
            header.num_members,
            header.parameter,
        )
        num_partitions, payload_words = header.lengths
        self._payload_start = HEADER_WORDS + 2 * num_partitions
        if (
            self._size == 0
            or num_partitions != -(-self._count // self._size)
            or self._payload_start + payload_words != len(source)
        ):
            raise DamagedSet(
                f"set header contradicts itself: {self._count} members below {self.universe} in "
                f"{num_partitions} partitions of {self._size}, {payload_words} payload words, "
                f"{len(source)} in all"
            )
        directory = source[HEADER_WORDS : self._payload_start]
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
            universe = int(flat[-1]) + 1 if len(flat) else 0
        return cls(encode_members(flat, universe, **options))  # type: ignore[arg-type]

    @classmethod
    def from_chunks(
        cls, chunks: Iterable[ArrayLike], universe: int, **options: float
    ) -> PartitionedEliasFano:
        """The set of the members of sorted chunks, each beginning above the end of the last."""
        builder = Builder(universe, **options)  # type: ignore[arg-type]
        for chunk in chunks:
            builder.push(chunk)
        return cls(builder.finish())

    def _check_directory(self) -> None:
        """Make sure that no query can leave its partition."""
        offsets, places = self._places >> OFFSET_SHIFT, self._places[:-1]
        num_partitions = len(places)
        members = np.full(num_partitions, self._size, dtype=np.uint64)
        if num_partitions:
            members[-1] = self._count - (num_partitions - 1) * self._size
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

    def __len__(self) -> int:
        return self._count

    @property
    def num_partitions(self) -> dict[str, int]:
        """Number of partitions of each kind."""
        kinds = np.bincount((self._places[:-1] & KIND_MASK).astype(np.int64), minlength=3)
        return dict(zip(("run", "bitmap", "elias_fano"), kinds.tolist(), strict=True))

    # --- queries ------------------------------------------------------------------------------

    @functools.cached_property
    def _all(self) -> Partitions:
        """All partitions, with the payload as the source gives it."""
        payload = self.source[self._payload_start : len(self.source)]
        return self._partitions(self._firsts, self._places, _NO_WORDS, payload)

    def _partitions(
        self, firsts: Words, places: Words, numbers: Words, payload: Words
    ) -> Partitions:
        return Partitions(
            build_tree(firsts), places, numbers, np.uint64(self._size), np.uint64(self._count),
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
            self.source[self._payload_start + int(a) : self._payload_start + int(b)]
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
        if not self._count or not len(values):
            return ranks, found
        partitions = self._partitions_of(values)
        if self._is_dense_walk(values):
            members = np.empty(self._size, dtype=np.uint64)
            ranks_of_rising_into(partitions, values, members, ranks, found)
        else:
            lanes = np.empty((int(LANES), FIELDS), dtype=np.uint64)
            ranks_into(partitions, values, lanes, np.zeros(9, np.uint64), ranks, found)
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
        expected = min(end * self._size, self._count) - begin * self._size
        if met != expected:
            raise DamagedSet(f"{expected} members decode to {met}")
        if stop % 64:
            bitmap[(stop - start) // 64] &= (ONE << np.uint64(stop % 64)) - ONE
        return bitmap


def encode_members(
    members: Words,
    universe: int,
    *,
    partition_size: int = DEFAULT_PARTITION_SIZE,
    bitmap_bias: float = 1.0,
) -> Words:
    """The serialised set of sorted members. Time O(members).

    Options as for `encode_bitmap`, but there is no bitmap that it should not exceed.
    """
    builder = Builder(universe, partition_size=partition_size, bitmap_bias=bitmap_bias)
    builder.push(members)
    return builder.finish()


def encode_bitmap(
    bitmap: Words,
    universe: int,
    *,
    start: int = 0,
    partition_size: int = DEFAULT_PARTITION_SIZE,
    bitmap_bias: float = 1.0,
) -> Words:
    """The serialised set of the bits set in a bitmap with a spare word.

    universe : what the members are below; no bit may stand for a value beyond it
    start : value of the first bit, a multiple of 64
    partition_size : members of a partition, at least 64
    bitmap_bias : hold a partition as a bitmap up to this many times the size of its Elias–Fano
        form, as bitmaps of structured sets compress better afterwards; but as few of them that
        the set is no larger than the bitmap it is made from, if it can be
    Time O(words + members).
    """
    _check_partition_size(partition_size)
    universe = checked_universe(universe)
    if start % 64 or not 0 <= start < MAX_UNIVERSE:
        raise ValueError(f"start is {start}; it must be a multiple of 64 below 2^64")
    count = int(np.bitwise_count(bitmap).sum(dtype=np.uint64))
    num_partitions = -(-count // partition_size)
    firsts = np.empty(num_partitions, dtype=np.uint64)
    lasts = np.empty(num_partitions, dtype=np.uint64)
    partition_bounds_into(bitmap, np.uint64(start), np.uint64(partition_size), firsts, lasts)
    if num_partitions and int(lasts[-1]) >= universe:
        raise ValueError(f"member {int(lasts[-1])} is not below the universe {universe}")
    most_words = len(bitmap) - 1 - HEADER_WORDS - 2 * num_partitions
    forms, num_words = _chosen_forms(firsts, lasts, partition_size, count, bitmap_bias, most_words)
    stops = np.cumsum(num_words, dtype=np.uint64)
    places = (stops - num_words) << OFFSET_SHIFT | forms
    payload_words = int(stops[-1]) if num_partitions else 0
    header = Header(MAGIC, universe, count, partition_size, (num_partitions, payload_words)).words()
    words = np.zeros(len(header) + 2 * num_partitions + payload_words, dtype=np.uint64)
    np.concatenate([header, firsts, places], out=words[: len(words) - payload_words])
    encode_bitmap_into(
        bitmap, np.uint64(start), firsts, lasts, places, np.uint64(partition_size),
        np.uint64(count), words[len(words) - payload_words :],
    )  # fmt: skip
    return words


def _check_partition_size(partition_size: int) -> None:
    if partition_size < 64:
        raise ValueError(f"partition_size is {partition_size}; at least 64 members are needed")


def _chosen_forms(
    firsts: Words,
    lasts: Words,
    size: int,
    count: int,
    bitmap_bias: float,
    most_words: int | None = None,
) -> tuple[Words, Words]:
    """For every partition: its kind and width as in its place, and its number of words.

    most_words : what all words together should not exceed, if the smallest forms allow it
    """
    members = np.full(len(firsts), size, dtype=np.int64)
    if len(members):
        members[-1] = count - (len(members) - 1) * size
    # The span less one: it fits 64 bits even where the span does not.
    reach = lasts - firsts
    # log2 of the mean gap; a width one off, where the float rounds, costs a bit and no more.
    widths = np.log2(np.maximum(reach / np.maximum(members, 1), 1.0)).astype(np.uint64)
    widths = np.minimum(widths, MAX_WIDTH)
    low_words = (members * widths.astype(np.int64) + 63) // 64
    high_words = (members + (reach >> widths).astype(np.int64) + 63) // 64
    of_elias_fano = (low_words + high_words).astype(np.float64)
    of_bitmap = ((lasts >> SIX) - (firsts >> SIX)).astype(np.float64) + 1
    of_run = reach + ONE == members.astype(np.uint64)
    is_bitmap = ~of_run & (of_bitmap <= bitmap_bias * of_elias_fano)
    if most_words is not None:
        words = np.where(of_run, 0, np.where(is_bitmap, of_bitmap, of_elias_fano))
        _take_largest(is_bitmap, of_bitmap, of_elias_fano, words.sum() - most_words)
    kinds = np.where(of_run, RUN, np.where(is_bitmap, BITMAP, ELIAS_FANO))
    num_words = np.where(of_run, 0, np.where(is_bitmap, of_bitmap, of_elias_fano))
    forms = np.where(kinds == ELIAS_FANO, widths << WIDTH_SHIFT, ZERO) | kinds
    return forms.astype(np.uint64), num_words.astype(np.uint64)


def _take_largest(
    is_bitmap: NDArray[np.bool_],
    of_bitmap: NDArray[np.float64],
    of_elias_fano: NDArray[np.float64],
    excess: float,
) -> None:
    """Give up the bitmaps that are largest for what they hold until `excess` words are saved."""
    if excess <= 0:
        return
    ratios = np.where(is_bitmap, of_bitmap / of_elias_fano, 0)
    order = np.argsort(-ratios, kind="stable")
    order = order[: np.count_nonzero(ratios > 1)]
    saved = np.cumsum((of_bitmap - of_elias_fano)[order])
    is_bitmap[order[: np.searchsorted(saved, excess) + 1]] = False


class Builder(SetBuilder):
    """Builds a set from a stream of sorted chunks.

    Beside the finished partitions it holds less than one partition of members.

    >>> builder = Builder(universe=100)
    >>> builder.push([1, 2]); builder.push([50])
    >>> PartitionedEliasFano(builder.finish())[2]
    50
    """

    def __init__(
        self,
        universe: int,
        *,
        partition_size: int = DEFAULT_PARTITION_SIZE,
        bitmap_bias: float = 1.0,
        spool_directory: Path | None = None,
    ) -> None:
        _check_partition_size(partition_size)
        super().__init__(universe, 3, spool_directory)
        self._size = partition_size
        self._bias = bitmap_bias
        self._pending = _NO_WORDS

    def _take(self, members: Words) -> None:
        if len(self._pending):
            members = np.concatenate([self._pending, members])
        whole = len(members) - len(members) % self._size
        self._pending = members[whole:].copy()
        self._encode(members[:whole])

    def _encode(self, members: Words) -> None:
        if not len(members):
            return
        firsts = members[:: self._size].copy()
        lasts = np.append(members[self._size - 1 :: self._size][: len(firsts) - 1], members[-1])
        forms, num_words = _chosen_forms(firsts, lasts, self._size, len(members), self._bias)
        stops = np.cumsum(num_words, dtype=np.uint64)
        offsets = stops - num_words
        payload = np.zeros(int(stops[-1]), dtype=np.uint64)
        encode_members_into(
            members, offsets << OFFSET_SHIFT | forms, np.uint64(self._size), payload
        )
        of_firsts, of_places, of_payload = self._sections
        of_firsts.append(firsts)
        of_places.append((offsets + np.uint64(len(of_payload))) << OFFSET_SHIFT | forms)
        of_payload.append(payload)

    def _close(self) -> Header:
        self._encode(self._pending)
        self._pending = _NO_WORDS
        of_firsts, _, of_payload = self._sections
        lengths = (len(of_firsts), len(of_payload))
        return Header(MAGIC, self._universe, self._count, self._size, lengths)
