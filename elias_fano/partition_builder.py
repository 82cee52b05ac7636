"""Building partitioned Elias–Fano sets, from members, streams of them, or bitmaps."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .bits import ONE, SIX, ZERO
from .builder import SetBuilder
from .coding import MAX_WIDTH
from .interface import HEADER_WORDS, MAX_UNIVERSE, Header, Words, as_words, checked_universe
from .partition_encoding import (
    BITMAP,
    ELIAS_FANO,
    OFFSET_SHIFT,
    RUN,
    WIDTH_SHIFT,
    encode_bitmap_into,
    encode_members_into,
    partition_bounds_into,
)

MAGIC = int.from_bytes(b"EFPART01", "little")
DEFAULT_PARTITION_SIZE = 128
MAX_PARTITION_SIZE = 2**32


def members_per_partition(num_partitions: int, size: int, count: int) -> Words:
    """Members of every partition: `size`, and of the last what is left."""
    members = np.full(num_partitions, size, dtype=np.uint64)
    if num_partitions:
        members[-1] = count - (num_partitions - 1) * size
    return members


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
    builder = PartitionedBuilder(universe, partition_size=partition_size, bitmap_bias=bitmap_bias)
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
    bitmap = as_words(bitmap)
    if start % 64 or not 0 <= start < MAX_UNIVERSE:
        raise ValueError(f"start is {start}; it must be a multiple of 64 below 2^64")
    if not len(bitmap) or bitmap[-1] or start + 64 * (len(bitmap) - 1) > MAX_UNIVERSE:
        raise ValueError("the bitmap must end, at or before 2^64, with a spare word that is zero")
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
    if not 64 <= partition_size <= MAX_PARTITION_SIZE:
        raise ValueError(
            f"partition_size is {partition_size}; it must be at least 64, at most 2^32 members"
        )


def _chosen_forms(
    firsts: Words,
    lasts: Words,
    size: int,
    count: int,
    bitmap_bias: float,
    most_words: float = math.inf,
) -> tuple[Words, Words]:
    """For every partition: its kind and width as in its place, and its number of words.

    most_words : what all words together should not exceed, if the smallest forms allow it
    """
    members = members_per_partition(len(firsts), size, count).astype(np.int64)
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
    num_words = np.where(of_run, 0, np.where(is_bitmap, of_bitmap, of_elias_fano))
    given_up = _bitmaps_to_give_up(
        is_bitmap, of_bitmap, of_elias_fano, num_words.sum() - most_words
    )
    is_bitmap[given_up] = False
    num_words[given_up] = of_elias_fano[given_up]
    kinds = np.where(of_run, RUN, np.where(is_bitmap, BITMAP, ELIAS_FANO))
    forms = np.where(kinds == ELIAS_FANO, widths << WIDTH_SHIFT, ZERO) | kinds
    return forms.astype(np.uint64), num_words.astype(np.uint64)


def _bitmaps_to_give_up(
    is_bitmap: NDArray[np.bool_],
    of_bitmap: NDArray[np.float64],
    of_elias_fano: NDArray[np.float64],
    excess: float,
) -> NDArray[np.int64]:
    """The bitmaps that are largest for what they hold, as many as save `excess` words."""
    ratios = np.where(is_bitmap, of_bitmap / of_elias_fano, 0)
    if excess <= 0:
        return np.empty(0, dtype=np.int64)
    order = np.argsort(-ratios, kind="stable")[: np.count_nonzero(ratios > 1)]
    saved = np.cumsum((of_bitmap - of_elias_fano)[order])
    return order[: np.searchsorted(saved, excess) + 1]


class PartitionedBuilder(SetBuilder):
    """Builds a set from a stream of sorted chunks.

    Beside the finished partitions it holds less than one partition of members.

    >>> from elias_fano import PartitionedEliasFano
    >>> builder = PartitionedBuilder(universe=100)
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
        super().__init__(universe, spool_directory)
        self._size = partition_size
        self._bias = bitmap_bias
        self._pending = np.empty(0, dtype=np.uint64)

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
        self._pending = np.empty(0, dtype=np.uint64)
        of_firsts, _, of_payload = self._sections
        lengths = (len(of_firsts), len(of_payload))
        return Header(MAGIC, self._universe, self._count, self._size, lengths)
