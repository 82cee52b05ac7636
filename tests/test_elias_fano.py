"""Partitioned Elias–Fano sets against the plain sorted array."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from elias_fano import (
    DamagedSet,
    EliasFano,
    PartitionedBuilder,
    PartitionedEliasFano,
    SequenceBuilder,
    encode_bitmap,
    encode_members,
)
from elias_fano.bits import empty_bitmap
from elias_fano.partition_builder import MAGIC
from elias_fano.partition_encoding import BITMAP, ELIAS_FANO, KIND_MASK, RUN


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


def test_damaged_sets_are_read_in_bounds():
    """In a child, where reading a byte too many ends the process."""
    script = Path(__file__).with_name("guarded_sets.py")
    command = [sys.executable, str(script), os.environ.get("TEST_SEED", "1"), "400"]
    done = subprocess.run(command, capture_output=True, text=True)
    if "no guard page" in done.stderr:
        pytest.skip("no guard page to be had")
    assert done.returncode == 0, done.stderr
    num_asked, num_refused = map(int, done.stdout.split())
    assert num_asked > 300
    assert num_refused > 50


CRAFTED = {
    # 2^63 members a partition, of 4 bits each: the number of bits wraps around.
    "huge partition": [MAGIC, 1, 0, 2**62, 2**63, 1, 1, 0, 0, (4 << 2) | 2, 2**64 - 1],
    "huge count": [MAGIC, 1, 0, 2**63, 2**32, 2**31, 0, 0],
    "wide low parts": [MAGIC, 1, 0, 1, 64, 1, 2, 0, 0, (58 << 2) | 2, 0, 1],
    "no bitmap": [MAGIC, 1, 0, 64, 64, 1, 1, 0, 0, (1 << 2) | 2, 0],
}


@pytest.mark.parametrize("name", CRAFTED)
def test_crafted_directories_are_refused(name):
    with pytest.raises(DamagedSet):
        PartitionedEliasFano(np.array(CRAFTED[name], dtype=np.uint64))


def test_a_bitmap_with_too_many_ones_gives_no_position_past_the_end():
    members = np.arange(64, dtype=np.uint64) << np.uint64(57)
    words = EliasFano.from_members(members, 2**63).words.copy()
    words[-3:] = 2**64 - 1
    stored = EliasFano(words)
    values = np.arange(0, 2**63, 2**55, dtype=np.uint64)
    assert stored.rank(values).max() <= 64
    words = encode_members(np.arange(2048, dtype=np.uint64) * 3, 6144, partition_size=128,
                           bitmap_bias=100)  # fmt: skip
    words[-2:] = 2**64 - 1
    positions, found = PartitionedEliasFano(words).pred(np.arange(7000))
    assert positions.max() < 2048
    assert found.max() < 7000


def test_words_of_any_layout():
    members = np.cumsum(np.random.default_rng(1).integers(1, 10**6, 5000)).astype(np.uint64)
    for kind in (EliasFano, PartitionedEliasFano):
        words = kind.from_members(members).words
        strided = np.full(2 * len(words), 2**64 - 1, dtype=np.uint64)
        strided[::2] = words
        for source in (strided[::2], words[::-1].copy()[::-1], words.astype(">u8")):
            assert np.array_equal(kind(source).decode(), members)
        with pytest.raises(TypeError, match="words must be uint64"):
            kind(words.astype(np.int64))


def test_bitmaps_are_words_that_end_before_2_64():
    for bad in (np.array([-1, 0]), np.zeros(4, dtype=np.uint8), np.zeros((2, 2), dtype=np.uint64)):
        with pytest.raises(TypeError, match="words must be uint64"):
            encode_bitmap(bad, 64)
    words = np.array([5, 2**63, 1], dtype=np.uint64)
    for start in (0, 2**64 - 128):
        with pytest.raises(ValueError, match="spare word"):
            encode_bitmap(words, 2**64, start=start)
    words[-1] = 0
    stored = PartitionedEliasFano(encode_bitmap(words, 2**64, start=2**64 - 128))
    assert list(stored) == [2**64 - 128, 2**64 - 126, 2**64 - 1]
    with pytest.raises(ValueError, match="spare word"):
        encode_bitmap(words, 2**64, start=2**64 - 64)


def test_a_builder_finishes_once():
    for builder in (PartitionedBuilder(100), SequenceBuilder(100, 1)):
        builder.push([5])
        builder.finish()
        with pytest.raises(ValueError, match="is finished"):
            builder.finish()
        with pytest.raises(ValueError, match="is finished"):
            builder.push([6])


def test_large_partitions_take_no_more_than_their_members():
    stored = PartitionedEliasFano.from_members([1, 5, 9], partition_size=2**32)
    assert stored.rank([1, 5, 20]).tolist() == [0, 1, 3]
    with pytest.raises(ValueError, match="at most 2\\^32"):
        PartitionedEliasFano.from_members([1], partition_size=2**33)


@pytest.mark.parametrize("kind", [EliasFano, PartitionedEliasFano])
def test_arguments_of_all_kinds(kind):
    stored = kind.from_members([1, 2**63, 2**64 - 1])
    assert stored.rank([1, 2**63]).tolist() == [0, 1]
    assert stored.rank([]).tolist() == stored.get([]).tolist() == []
    for bad in (np.uint64(2**64 - 1), np.array([2**63], dtype=np.uint64), 2**70, -4):
        with pytest.raises(IndexError):
            stored.get(bad)
    with pytest.raises(ValueError, match="one-dimensional"):
        stored.get([[0]])
    frozen = np.zeros(3, dtype=np.uint64)
    frozen.flags.writeable = False
    for out in (frozen, [0, 0, 0], np.zeros(3), np.zeros(6, dtype=np.uint64)[::2]):
        with pytest.raises(ValueError, match="out must be"):
            stored.decode(out=out)
    assert kind.from_members([1], np.uint64(2**63)).universe == 2**63
    with pytest.raises(TypeError):
        kind.from_members([1], 10.5)
