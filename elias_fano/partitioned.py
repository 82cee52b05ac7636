"""Partitioned Elias–Fano sets: strictly increasing integers, few bits each, readable in parts.

The `n` members are cut into partitions of `m` members each (the last may be short). A partition
that starts at member `b` and spans `u` values is held as whichever is smallest:

run
    all `m` members consecutive: no payload;
bitmap
    the 64-bit words of the plain bitmap of the set, from the word of `b` on;
Elias–Fano
    with ``l = max(0, floor(log2(u / m)))``: the `l` low bits of each ``x - b``, packed, then a
    bitmap with bit ``((x - b) >> l) + i`` set for member `i`: at most
    ``2 + log2(u / m)`` bits a member.

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

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .bits import ONE, SIX, WORD_MASK, ZERO, empty_bitmap
from .interface import (
    MAX_UNIVERSE,
    DamagedSet,
    SortedSet,
    Words,
    WordSource,
    as_members,
    checked_universe,
)
from .partition_kernels import (
    BITMAP,
    ELIAS_FANO,
    KIND_MASK,
    LANES,
    OFFSET_SHIFT,
    RUN,
    WIDTH_MASK,
    WIDTH_SHIFT,
    decode_bitmap_into,
    decode_members_into,
    encode_bitmap_into,
    encode_members_into,
    members_into,
    partition_bounds_into,
    ranks_into,
)

MAGIC = int.from_bytes(b"EFPART01", "little")
VERSION = 1
HEADER_WORDS = 8
EMPTY_UNIVERSE = 1
DEFAULT_PARTITION_SIZE = 256


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
        header = source[0:HEADER_WORDS]
        if len(header) < HEADER_WORDS or int(header[0]) != MAGIC:
            raise DamagedSet("no partitioned Elias-Fano set: the first word is not its magic")
        if int(header[1]) != VERSION:
            raise DamagedSet(f"set version {int(header[1])}; this program reads {VERSION}")
        universe, self._count, self._size, num_partitions, payload_words, flags = (
            int(word) for word in header[2:8]
        )
        self.universe = universe or (0 if flags & EMPTY_UNIVERSE else MAX_UNIVERSE)
        self._payload_start = HEADER_WORDS + 2 * num_partitions
        if (
            self._size == 0
            or self._count > self.universe
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
        self._places = directory[num_partitions:]
        self._source = source
        self._stops = self._checked_stops(payload_words)
        self._no_shifts = np.zeros(num_partitions, dtype=np.uint64)
        self._starts, self._shift = self._buckets()

    @classmethod
    def from_members(
        cls, members: ArrayLike, universe: int | None = None, **options: float
    ) -> PartitionedEliasFano:
        """The set of sorted members; `universe` is one past the last unless given.

        options : `partition_size` and `bitmap_bias` of `encode_members`
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

    def _checked_stops(self, payload_words: int) -> Words:
        """End of every partition's payload, after making sure no query can leave it."""
        offsets = self._places >> OFFSET_SHIFT
        stops = np.append(offsets[1:], np.uint64(payload_words)) if len(offsets) else offsets
        members = np.full(len(offsets), self._size, dtype=np.uint64)
        if len(members):
            members[-1] = self._count - (len(members) - 1) * self._size
        widths = self._places >> WIDTH_SHIFT & WIDTH_MASK
        kinds = self._places & KIND_MASK
        with np.errstate(over="ignore"):
            least = np.where(kinds == ELIAS_FANO, (members * widths + WORD_MASK) >> SIX, ZERO)
            fits = (stops >= offsets) & (stops - offsets >= least)
        if not (
            np.all(fits)
            and np.all(kinds <= ELIAS_FANO)
            and np.all(self._firsts[1:] > self._firsts[:-1])
            and (not len(offsets) or (offsets[0] == 0 and int(self._firsts[-1]) < self.universe))
        ):
            raise DamagedSet("set directory contradicts itself")
        return stops

    def _buckets(self) -> tuple[NDArray[np.uint32], np.uint64]:
        """Where in the directory the values of each bucket begin: two buckets a partition.

        Returns (uint32[buckets + 1], shift that makes a value its bucket).
        """
        num_partitions = len(self._firsts)
        if not num_partitions:
            return np.zeros(2, dtype=np.uint32), np.uint64(63)
        last = int(self._firsts[-1])
        shift = max(last.bit_length() - (2 * num_partitions).bit_length(), 0)
        buckets = np.arange((last >> shift) + 1, dtype=np.uint64) << np.uint64(shift)
        starts = np.searchsorted(self._firsts, buckets)
        return np.append(starts, num_partitions).astype(np.uint32), np.uint64(shift)

    def __len__(self) -> int:
        return self._count

    @property
    def nbytes(self) -> int:
        """Bytes of the set, serialised."""
        return 8 * len(self._source)

    @property
    def words(self) -> Words:
        """The serialised set."""
        return self._source[0 : len(self._source)]

    @property
    def num_partitions(self) -> dict[str, int]:
        """Number of partitions of each kind."""
        kinds = np.bincount((self._places & KIND_MASK).astype(np.int64), minlength=3)
        return dict(zip(("run", "bitmap", "elias_fano"), kinds.tolist(), strict=True))

    def _ranks(self, values: Words) -> tuple[Words, NDArray[np.bool_]]:
        ranks = np.zeros(len(values), dtype=np.uint64)
        found = np.zeros(len(values), dtype=np.bool_)
        if not self._count:
            return ranks, found
        partitions = None
        if not self._is_in_memory:
            after = np.searchsorted(self._firsts, values, side="right")
            partitions = np.unique(np.maximum(after, 1) - 1)
        payload, shifts = self._read_partitions(partitions)
        ranks_into(
            self._firsts, self._places, self._stops, shifts, self._starts, self._shift,
            np.uint64(self._size), np.uint64(self._count), payload, values,
            np.empty((int(LANES), 2), dtype=np.uint64), ranks, found,
        )  # fmt: skip
        return ranks, found

    def _members(self, positions: Words) -> Words:
        members = np.empty(len(positions), dtype=np.uint64)
        partitions = None
        if not self._is_in_memory:
            partitions = np.unique(positions // np.uint64(self._size)).astype(np.int64)
        payload, shifts = self._read_partitions(partitions)
        members_into(
            self._firsts, self._places, self._stops, shifts, np.uint64(self._size),
            np.uint64(self._count), payload, positions, members,
        )  # fmt: skip
        return members

    def decode(self, start: int = 0, stop: int | None = None) -> Words:
        """The members at the positions ``[start, stop)`` as an array. Raises DamagedSet."""
        start, stop = self._checked_range(start, stop)
        members = np.empty(stop - start, dtype=np.uint64)
        if len(members):
            run = np.arange(start // self._size, (stop - 1) // self._size + 1)
            payload, shifts = self._read_partitions(None if self._is_in_memory else run)
            written = decode_members_into(
                self._firsts, self._places, self._stops, shifts, np.uint64(self._size),
                np.uint64(self._count), payload, np.uint64(start), members,
            )  # fmt: skip
            if written != len(members):
                raise DamagedSet(f"{len(members)} members from {start} on decode to {written}")
        return members

    def to_bitmap(self) -> Words:
        """The plain bitmap of the set over its whole universe, spare word included."""
        bitmap = empty_bitmap(self.universe)
        if self._count:
            payload, _ = self._read_partitions(None)
            met = decode_bitmap_into(
                self._firsts, self._places, self._stops, np.uint64(self._size),
                np.uint64(self._count), payload, bitmap,
            )  # fmt: skip
            if met != self._count:
                raise DamagedSet(f"set of {self._count} members decodes to {met}")
        return bitmap

    @property
    def _is_in_memory(self) -> bool:
        return isinstance(self._source, np.ndarray)

    def _read_partitions(self, partitions: NDArray[np.int64] | None) -> tuple[Words, Words]:
        """Payload of some partitions (None: all), and by how much each lies before its place."""
        if partitions is None:
            return self._source[self._payload_start : len(self._source)], self._no_shifts
        shifts = np.zeros(len(self._places), dtype=np.uint64)
        pieces = [np.zeros(0, dtype=np.uint64)]
        length = 0
        for run in np.split(partitions, np.flatnonzero(np.diff(partitions) > 1) + 1):
            if not len(run) or not self._count:
                continue
            start = int(self._places[run[0]] >> OFFSET_SHIFT)
            stop = int(self._stops[run[-1]])
            pieces.append(self._source[self._payload_start + start : self._payload_start + stop])
            shifts[run] = start - length
            length += stop - start
        return np.concatenate(pieces), shifts


def encode_members(
    members: Words,
    universe: int,
    *,
    partition_size: int = DEFAULT_PARTITION_SIZE,
    bitmap_bias: float = 1.0,
) -> Words:
    """The serialised set of sorted members; options as for `encode_bitmap`. Time O(members)."""
    builder = Builder(universe, partition_size=partition_size, bitmap_bias=bitmap_bias)
    builder.push(members)
    return builder.finish()


def encode_bitmap(
    bitmap: Words,
    universe: int,
    *,
    partition_size: int = DEFAULT_PARTITION_SIZE,
    bitmap_bias: float = 1.0,
) -> Words:
    """The serialised set of the bits set in a bitmap with a spare word.

    universe : number of bits that count; the bits after them must be zero
    partition_size : members of a partition, at least 64
    bitmap_bias : hold a partition as a bitmap up to this many times the size of its Elias–Fano
        form: bitmaps of structured sets compress better afterwards, and are faster
    Time O(words + members).
    """
    _check_partition_size(partition_size)
    universe = checked_universe(universe)
    count = int(np.bitwise_count(bitmap).sum(dtype=np.uint64))
    num_partitions = -(-count // partition_size)
    firsts = np.empty(num_partitions, dtype=np.uint64)
    lasts = np.empty(num_partitions, dtype=np.uint64)
    partition_bounds_into(bitmap, np.uint64(partition_size), firsts, lasts)
    if num_partitions and int(lasts[-1]) >= universe:
        raise ValueError(f"member {int(lasts[-1])} is not below the universe {universe}")
    forms, num_words = _smallest_forms(firsts, lasts, partition_size, count, bitmap_bias)
    stops = np.cumsum(num_words, dtype=np.uint64)
    places = (stops - num_words) << OFFSET_SHIFT | forms
    payload_words = int(stops[-1]) if num_partitions else 0
    words = _framed(universe, count, partition_size, firsts, places, payload_words)
    encode_bitmap_into(
        bitmap, firsts, lasts, places, np.uint64(partition_size), np.uint64(count),
        words[len(words) - payload_words :],
    )  # fmt: skip
    return words


def _check_partition_size(partition_size: int) -> None:
    if partition_size < 64:
        raise ValueError(f"partition_size is {partition_size}; at least 64 members are needed")


def _framed(
    universe: int, count: int, size: int, firsts: Words, places: Words, payload_words: int
) -> Words:
    """The words of a set with header and directory filled in, its payload still zero."""
    flags = 0 if universe else EMPTY_UNIVERSE
    header = [MAGIC, VERSION, universe % MAX_UNIVERSE, count, size, len(firsts), payload_words]
    words = np.zeros(HEADER_WORDS + 2 * len(firsts) + payload_words, dtype=np.uint64)
    words[:HEADER_WORDS] = np.array([*header, flags], dtype=np.uint64)
    words[HEADER_WORDS : HEADER_WORDS + len(firsts)] = firsts
    words[HEADER_WORDS + len(firsts) : HEADER_WORDS + 2 * len(firsts)] = places
    return words


def _smallest_forms(
    firsts: Words, lasts: Words, size: int, count: int, bitmap_bias: float
) -> tuple[Words, Words]:
    """For every partition: its kind and width as in its place, and its number of words."""
    members = np.full(len(firsts), size, dtype=np.int64)
    if len(members):
        members[-1] = count - (len(members) - 1) * size
    # The span less one: it fits 64 bits even where the span does not.
    reach = lasts - firsts
    # log2 of the mean gap; a width one off, where the float rounds, costs a bit and no more.
    widths = np.log2(np.maximum(reach / np.maximum(members, 1), 1.0)).astype(np.uint64)
    low_words = (members * widths.astype(np.int64) + 63) // 64
    high_words = (members + (reach >> widths).astype(np.int64) + 63) // 64
    elias_fano_words = low_words + high_words
    bitmap_words = ((lasts >> SIX) - (firsts >> SIX)).astype(np.float64) + 1
    is_bitmap = bitmap_words <= bitmap_bias * elias_fano_words
    kinds = np.where(is_bitmap, BITMAP, ELIAS_FANO)
    num_words = np.where(is_bitmap, bitmap_words, elias_fano_words).astype(np.uint64)
    is_run = reach + ONE == members.astype(np.uint64)
    kinds = np.where(is_run, RUN, kinds)
    num_words = np.where(is_run, ZERO, num_words)
    forms = np.where(kinds == ELIAS_FANO, widths << WIDTH_SHIFT, ZERO) | kinds
    return forms.astype(np.uint64), num_words


class Builder:
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
    ) -> None:
        _check_partition_size(partition_size)
        self._universe = checked_universe(universe)
        self._size = partition_size
        self._bias = bitmap_bias
        self._pending = np.empty(0, dtype=np.uint64)
        self._last = -1
        self._count = 0
        self._firsts: list[Words] = []
        self._forms: list[Words] = []
        self._num_words: list[Words] = []
        self._payload: list[Words] = []

    def push(self, members: ArrayLike) -> None:
        """Append members, sorted and above all before. Raises TypeError, ValueError."""
        flat = as_members(members, self._universe, self._last)
        if not len(flat):
            return
        self._last = int(flat[-1])
        self._count += len(flat)
        if len(self._pending):
            flat = np.concatenate([self._pending, flat])
        whole = len(flat) - len(flat) % self._size
        self._pending = flat[whole:].copy()
        self._encode(flat[:whole])

    def _encode(self, members: Words) -> None:
        if not len(members):
            return
        firsts = members[:: self._size].copy()
        lasts = np.append(members[self._size - 1 :: self._size][: len(firsts) - 1], members[-1])
        forms, num_words = _smallest_forms(firsts, lasts, self._size, len(members), self._bias)
        stops = np.cumsum(num_words, dtype=np.uint64)
        payload = np.zeros(int(stops[-1]), dtype=np.uint64)
        places = (stops - num_words) << OFFSET_SHIFT | forms
        encode_members_into(members, places, np.uint64(self._size), payload)
        self._firsts.append(firsts)
        self._forms.append(forms)
        self._num_words.append(num_words)
        self._payload.append(payload)

    def finish(self, expected_count: int | None = None) -> Words:
        """The serialised set. Raises ValueError if it has not `expected_count` members."""
        if expected_count is not None and expected_count != self._count:
            raise ValueError(f"{self._count} members were pushed, {expected_count} expected")
        self._encode(self._pending)
        none = np.empty(0, dtype=np.uint64)
        num_words = np.concatenate([none, *self._num_words])
        offsets = np.cumsum(num_words, dtype=np.uint64) - num_words
        places = offsets << OFFSET_SHIFT | np.concatenate([none, *self._forms])
        firsts = np.concatenate([none, *self._firsts])
        payload_words = int(num_words.sum())
        words = _framed(self._universe, self._count, self._size, firsts, places, payload_words)
        np.concatenate([none, *self._payload], out=words[len(words) - payload_words :])
        return words
