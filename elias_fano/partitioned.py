"""Partitioned Elias–Fano sets: strictly increasing integers, few bits each, readable in parts.

The `n` members are cut into partitions of `m` members each (the last may be short). A partition
that starts at member `b` and spans `u` values is held as whichever is smallest:

run
    all `m` members consecutive: no payload;
bitmap
    the 64-bit words of the plain bitmap of the set from the word of `b` on;
Elias–Fano
    with ``l = max(0, floor(log2(u / m)))``: the `l` low bits of each ``x - b``, packed, then a
    bitmap with bit ``((x - b) >> l) + i`` set for member `i`: at most
    ``2 + log2(u / m)`` bits a member.

A directory gives each partition's first member, kind, width `l` and place, so a query reads the
directory and one partition. Serialised, everything is one array of little-endian 64-bit words::

    header     8 words: MAGIC, version, universe (0 for 2^64), n, m, number of partitions,
               payload words, 0
    firsts     a word per partition: its first member
    places     a word per partition: payload offset << 8 | l << 2 | kind
    payload    the partitions

After P. Elias (1974), R. Fano (1971), and G. Ottaviano and R. Venturini, "Partitioned Elias-Fano
indexes" (2014).
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .bits import ONE, SIX, WORD_MASK, ZERO, empty_bitmap
from .partition_kernels import (
    BITMAP,
    ELIAS_FANO,
    KIND_MASK,
    OFFSET_SHIFT,
    RUN,
    WIDTH_MASK,
    WIDTH_SHIFT,
    decode_into,
    encode_into,
    partition_bounds_into,
    positions_into,
)

Words = NDArray[np.uint64]

MAGIC = int.from_bytes(b"EFPART01", "little")
VERSION = 1
HEADER_WORDS = 8


class DamagedSet(ValueError):
    """The words are no serialised set, or contradict themselves."""


class WordSource(Protocol):
    """Anything that gives 64-bit words by slices: an array, a memory map, a stored array."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: slice, /) -> Words: ...


def encode_bitmap(
    bitmap: Words, universe: int, *, partition_size: int = 256, bitmap_bias: float = 1.0
) -> Words:
    """The serialised set of the bits set in a bitmap with a spare word.

    universe : number of bits that count; the bits after them must be zero
    partition_size : members of a partition, at least 64
    bitmap_bias : hold a partition as a bitmap up to this many times the size of its Elias–Fano
        form: bitmaps of structured sets compress better afterwards, and are faster
    Time O(words + members).
    """
    if partition_size < 64:
        raise ValueError(f"partition_size is {partition_size}; at least 64 members are needed")
    count = int(np.bitwise_count(bitmap).sum(dtype=np.uint64))
    num_partitions = -(-count // partition_size)
    firsts = np.empty(num_partitions, dtype=np.uint64)
    lasts = np.empty(num_partitions, dtype=np.uint64)
    partition_bounds_into(bitmap, np.uint64(partition_size), firsts, lasts)
    if num_partitions and int(lasts[-1]) >= universe:
        raise ValueError(f"member {int(lasts[-1])} is not below the universe {universe}")
    kinds_widths, num_words = _smallest_forms(firsts, lasts, partition_size, count, bitmap_bias)
    stops = np.cumsum(num_words, dtype=np.uint64)
    payload_words = int(stops[-1]) if num_partitions else 0
    header = [MAGIC, VERSION, universe % 2**64, count, partition_size, num_partitions]
    words = np.zeros(HEADER_WORDS + 2 * num_partitions + payload_words, dtype=np.uint64)
    words[: len(header) + 1] = [*header, payload_words]
    directory = words[HEADER_WORDS : HEADER_WORDS + 2 * num_partitions]
    directory[:num_partitions] = firsts
    directory[num_partitions:] = (stops - num_words) << OFFSET_SHIFT | kinds_widths
    encode_into(
        bitmap, firsts, lasts, directory[num_partitions:], np.uint64(partition_size),
        np.uint64(count), words[HEADER_WORDS + 2 * num_partitions :],
    )  # fmt: skip
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


class PartitionedEliasFano:
    """A set of integers in ``[0, universe)``, opened from its serialised words.

    Opening reads the header and the directory; each query reads the partitions it needs.

    >>> bitmap = empty_bitmap(200)
    >>> bitmap[0], bitmap[2] = 0b1011, 1
    >>> s = PartitionedEliasFano(encode_bitmap(bitmap, universe=200))
    >>> len(s), s.index_of(np.array([3, 128, 5], dtype=np.uint64)).tolist()
    (4, [2, 3, -1])
    """

    def __init__(self, source: WordSource) -> None:
        header = source[0:HEADER_WORDS]
        if len(header) < HEADER_WORDS or int(header[0]) != MAGIC:
            raise DamagedSet("no partitioned Elias-Fano set: the first word is not its magic")
        if int(header[1]) != VERSION:
            raise DamagedSet(f"set version {int(header[1])}; this program reads {VERSION}")
        self.universe = int(header[2]) or 2**64
        self._count, self._size, num_partitions, payload_words = (int(w) for w in header[3:7])
        self._payload_start = HEADER_WORDS + 2 * num_partitions
        if (
            self._size == 0
            or num_partitions != -(-self._count // self._size)
            or self._payload_start + payload_words != len(source)
        ):
            raise DamagedSet(
                f"set header contradicts itself: {self._count} members in {num_partitions} "
                f"partitions of {self._size}, {payload_words} of {len(source)} words"
            )
        directory = source[HEADER_WORDS : self._payload_start]
        self._firsts = directory[:num_partitions]
        self._places = directory[num_partitions:]
        self._source = source
        self._stops = self._checked_stops(payload_words)

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
            least = np.where(
                kinds == ELIAS_FANO, (members * widths + WORD_MASK) // 64 + members // 64, 0
            )
            fits = (stops >= offsets) & (stops - offsets >= least)
        if not (
            np.all(fits)
            and np.all(kinds <= ELIAS_FANO)
            and np.all(self._firsts[1:] > self._firsts[:-1])
            and (not len(offsets) or (offsets[0] == 0 and int(self._firsts[-1]) < self.universe))
        ):
            raise DamagedSet("set directory contradicts itself")
        return stops

    def __len__(self) -> int:
        return self._count

    @property
    def num_words(self) -> int:
        """Size of the serialised set in 64-bit words."""
        return len(self._source)

    def to_bitmap(self) -> Words:
        """The plain bitmap of the set over its whole universe, spare word included."""
        bitmap = empty_bitmap(self.universe)
        if self._count:
            payload = self._source[self._payload_start : len(self._source)]
            met = decode_into(
                self._firsts, self._places, self._stops, np.uint64(self._size),
                np.uint64(self._count), payload, bitmap,
            )  # fmt: skip
            if met != self._count:
                raise DamagedSet(f"set of {self._count} members decodes to {met}")
        return bitmap

    def index_of(self, values: Words) -> NDArray[np.int64]:
        """Position of every value among the members, -1 where it is none.

        values : uint64[n], any order; time O(n log partitions + n * size / 64)
        """
        values = np.ascontiguousarray(values, dtype=np.uint64)
        positions = np.empty(len(values), dtype=np.int64)
        partitions = np.unique(
            np.maximum(np.searchsorted(self._firsts, values, side="right") - 1, 0)
        ) if self._count else np.empty(0, dtype=np.int64)  # fmt: skip
        payload, shifts = self._read_partitions(partitions)
        positions_into(
            self._firsts, self._places, self._stops, shifts, np.uint64(self._size),
            np.uint64(self._count), payload, values, positions,
        )  # fmt: skip
        return positions

    def _read_partitions(self, partitions: NDArray[np.int64]) -> tuple[Words, Words]:
        """Payload of some partitions, and by how much each lies before its place."""
        shifts = np.zeros(len(self._places), dtype=np.uint64)
        pieces = [np.zeros(0, dtype=np.uint64)]
        length = 0
        for run in np.split(partitions, np.flatnonzero(np.diff(partitions) > 1) + 1):
            if not len(run):
                continue
            start = int(self._places[run[0]] >> OFFSET_SHIFT)
            stop = int(self._stops[run[-1]])
            pieces.append(self._source[self._payload_start + start : self._payload_start + stop])
            shifts[run] = start - length
            length += stop - start
        return np.concatenate(pieces), shifts
