"""Partitioned Elias–Fano sets against the plain sorted array."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from elias_fano import DamagedSet, PartitionedEliasFano, encode_bitmap
from elias_fano.bits import empty_bitmap
from elias_fano.partition_kernels import BITMAP, ELIAS_FANO, KIND_MASK, RUN


def bitmap_of(members, universe):
    bitmap = empty_bitmap(universe)
    members = np.asarray(members, dtype=np.uint64)
    np.bitwise_or.at(bitmap, members >> np.uint64(6), np.uint64(1) << (members & np.uint64(63)))
    return bitmap


def random_members(rng, universe):
    """Members of mixed density: empty stretches, runs, sparse and dense ones."""
    density = np.repeat(rng.choice([0, 0.001, 0.02, 0.3, 0.9, 1.0], 8), -(-universe // 8))
    return np.flatnonzero(rng.random(universe) < density[:universe])


def check(members, universe, **options):
    bitmap = bitmap_of(members, universe)
    words = encode_bitmap(bitmap, universe, **options)
    words.flags.writeable = False
    stored = PartitionedEliasFano(words)
    assert len(stored) == len(members)
    assert stored.universe == universe
    assert np.array_equal(stored.to_bitmap(), bitmap)
    expected = np.full(universe + 70, -1)
    expected[members] = np.arange(len(members))
    queries = np.arange(universe + 70, dtype=np.uint64)
    assert np.array_equal(stored.index_of(queries), expected)
    for query in queries[:: max(1, universe // 20)]:
        assert stored.index_of(np.array([query]))[0] == expected[query]
    return words


def test_every_small_set():
    for universe in range(1, 8):
        for flags in itertools.product([0, 1], repeat=universe):
            check(np.flatnonzero(flags), universe)


@pytest.mark.parametrize("bias", [0.0, 1.0, 4.0])
def test_random_sets(bias, rng):
    for _ in range(60):
        universe = int(rng.integers(1, 60_000))
        size = int(rng.choice([64, 65, 100, 256, 4096]))
        check(random_members(rng, universe), universe, partition_size=size, bitmap_bias=bias)


@pytest.mark.parametrize("size", [64, 256])
def test_sizes_around_partition_limits(size):
    for count in (1, size - 1, size, size + 1, 2 * size - 1, 2 * size, 2 * size + 1):
        for gap in (1, 2, 3, 64, 100):
            check(np.arange(count) * gap, count * gap, partition_size=size)


def test_each_kind_is_used():
    members = np.concatenate(
        [np.arange(64), 10_000 + 3 * np.arange(64), 100_000 + 5_000 * np.arange(64)]
    )
    words = check(members, 500_000, partition_size=64)
    places = words[8 + 3 : 8 + 6]
    assert (places & KIND_MASK).tolist() == [RUN, BITMAP, ELIAS_FANO]


def test_every_flipped_bit_is_refused_or_harmless(rng):
    """Opening fails, decoding fails, or every query stays in bounds."""
    universe = 3000
    members = random_members(rng, universe)
    sound = encode_bitmap(bitmap_of(members, universe), universe, partition_size=64)
    queries = np.arange(universe + 64, dtype=np.uint64)
    for bit in range(64 * len(sound)):
        words = sound.copy()
        words[bit // 64] ^= np.uint64(1) << np.uint64(bit % 64)
        try:
            stored = PartitionedEliasFano(words)
            if stored.universe > 10**6:
                continue  # a huge universe has a huge bitmap; queries are what matters
            for values in (queries, queries[::-1]):
                assert stored.index_of(values).max(initial=-1) < len(stored)
                assert stored.rank(values).max(initial=0) <= len(stored)
            stored.to_bitmap()
        except DamagedSet:
            continue


def test_no_set():
    for words in ([], [1, 2, 3], [0] * 8, list(range(20))):
        with pytest.raises(DamagedSet):
            PartitionedEliasFano(np.array(words, dtype=np.uint64))
