"""Both sets of elias_fano against the plain sorted array, by Hypothesis and at the edges."""

from __future__ import annotations

import itertools
import os
import platform
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elias_fano import (
    DamagedSet,
    EliasFano,
    PartitionedBuilder,
    PartitionedEliasFano,
    SequenceBuilder,
    encode_bitmap,
    encode_members,
)

KINDS = [EliasFano, PartitionedEliasFano]
TOP = 2**64 - 1


@st.composite
def member_sets(draw) -> tuple[list[int], int]:
    """Sorted members and a universe: runs, dense and sparse stretches, huge gaps."""
    members: list[int] = []
    at = draw(st.sampled_from([0, 0, 1, 63, 64, 2**40, TOP - 5000]))
    for _ in range(draw(st.integers(0, 5))):
        gap = draw(st.sampled_from([1, 1, 2, 3, 64, 1000, 2**33, 2**58]))
        count = draw(st.integers(1, 300))
        for _ in range(count):
            if at > TOP:
                break
            members.append(at)
            at += 1 if gap == 1 else draw(st.integers(1, gap)) if count < 40 else gap
        at += draw(st.sampled_from([0, 1, 10**6, 2**50]))
    least = members[-1] + 1 if members else 0
    universe = draw(st.sampled_from([least, least + 1, max(least, 2**63), 2**64]))
    return members, min(max(universe, least), 2**64)


def check(stored, members: list[int], universe: int) -> None:
    plain = np.array(members, dtype=np.uint64)
    assert len(stored) == len(members)
    assert stored.universe == universe
    assert np.array_equal(stored.decode(), plain)
    assert list(stored) == members
    around = {0, TOP} | {
        x + d
        for x in members[:: max(1, len(members) // 40)]
        for d in (-1, 0, 1)
        if 0 <= x + d <= TOP
    }
    queries = np.array(sorted(around), dtype=np.uint64)
    ranks = np.searchsorted(plain, queries)
    is_member = np.isin(queries, plain)
    # Many rising queries are answered in a walk, others one by one.
    assert np.array_equal(stored.rank(queries), ranks)
    assert np.array_equal(stored.rank(queries[::-1]), ranks[::-1])
    assert np.array_equal(stored.contains(queries[::-1]), is_member[::-1])
    assert np.array_equal(stored.contains(queries), is_member)
    assert np.array_equal(stored.index_of(queries), np.where(is_member, ranks, -1))
    positions, found = stored.succ(queries)
    assert np.array_equal(positions, ranks)
    exists = ranks < len(plain)
    assert np.array_equal(found[exists], plain[ranks[exists]])
    positions, found = stored.pred(queries)
    before = np.searchsorted(plain, queries, side="right") - 1
    assert np.array_equal(positions, before)
    assert np.array_equal(found[before >= 0], plain[before[before >= 0]])
    if members:
        assert (stored.first, stored.last) == (members[0], members[-1])
        picked = np.arange(-len(members), len(members), max(1, len(members) // 30))
        assert np.array_equal(stored.get(picked), plain[picked])
        third = len(members) // 3
        assert np.array_equal(stored[third : 2 * third], plain[third : 2 * third])
        assert np.array_equal(stored[::-7], plain[::-7])


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=3600, deadline=None)
@given(drawn=member_sets())
def test_like_the_plain_array(kind, drawn):
    members, universe = drawn
    check(kind.from_members(np.array(members, dtype=np.uint64), universe), members, universe)


@settings(max_examples=900, deadline=None)
@given(drawn=member_sets(), size=st.sampled_from([64, 100, 1000]), bias=st.sampled_from([0.5, 4.0]))
def test_partition_sizes(drawn, size, bias):
    members, universe = drawn
    words = encode_members(
        np.array(members, dtype=np.uint64), universe, partition_size=size, bitmap_bias=bias
    )
    check(PartitionedEliasFano(words), members, universe)


class Slices:
    """A word source that is no array, and counts what is read of it."""

    def __init__(self, words):
        self.words, self.num_read = words, 0

    def __len__(self):
        return len(self.words)

    def __getitem__(self, index):
        self.num_read += len(self.words[index])
        return self.words[index]


@settings(max_examples=700, deadline=None)
@given(drawn=member_sets())
def test_read_in_parts(drawn):
    members, universe = drawn
    words = encode_members(np.array(members, dtype=np.uint64), universe, partition_size=64)
    check(PartitionedEliasFano(Slices(words)), members, universe)


@settings(max_examples=400, deadline=None)
@given(
    words=st.lists(st.integers(0, TOP) | st.sampled_from([0, 0, 1, TOP]), min_size=1, max_size=40),
    first_word=st.sampled_from([0, 1, 1000]),
    bias=st.sampled_from([1.0, 4.0]),
    a=st.integers(0, 40),
    b=st.integers(0, 2560),
)
def test_bitmaps_of_a_range(words, first_word, bias, a, b):
    start = 64 * first_word
    universe = start + 64 * len(words)
    bitmap = np.array([*words, 0], dtype=np.uint64)
    encoded = encode_bitmap(bitmap, universe, start=start, partition_size=64, bitmap_bias=bias)
    bits = np.unpackbits(bitmap[:-1].view(np.uint8), bitorder="little")
    members = np.flatnonzero(bits).astype(np.uint64) + np.uint64(start)
    for source in (encoded, Slices(encoded)):
        stored = PartitionedEliasFano(source)
        assert np.array_equal(stored.decode(), members)
        assert np.array_equal(stored.to_bitmap(start, universe), bitmap)
        low = start + 64 * min(a, len(words))
        high = min(low + b, universe)
        part = np.zeros((high - low + 63) // 64 * 64, dtype=np.uint8)
        part[: high - low] = bits[low - start : high - start]
        expected = np.append(np.packbits(part, bitorder="little").view(np.uint64), np.uint64(0))
        assert np.array_equal(stored.to_bitmap(low, high), expected)
    if bias == 1:  # members and bitmap of a set make the same words
        assert np.array_equal(encoded, encode_members(members, universe, partition_size=64))


def test_a_set_is_no_larger_than_its_bitmap(rng):
    """Half of it dense, half sparse: all bitmaps would exceed it by their directory."""
    universe = 2**22
    flags = rng.random(universe) < np.where(np.arange(universe) // 2**16 % 2, 0.4, 0.1)
    bitmap = np.append(np.packbits(flags, bitorder="little").view(np.uint64), np.uint64(0))
    free = PartitionedEliasFano(
        encode_members(np.flatnonzero(flags).astype(np.uint64), universe, partition_size=4096,
                       bitmap_bias=4.0)
    )  # fmt: skip
    bound = PartitionedEliasFano(
        encode_bitmap(bitmap, universe, partition_size=4096, bitmap_bias=4.0)
    )
    assert free.nbytes > bitmap.nbytes - 8 >= bound.nbytes
    assert bound.num_partitions["bitmap"] > 0.8 * sum(bound.num_partitions.values())
    assert np.array_equal(bound.to_bitmap(), bitmap)


def test_bad_ranges_of_bitmaps():
    stored = PartitionedEliasFano.from_members([1, 5, 900], 1000)
    for start, stop in ((1, 64), (64, 0), (0, 1001), (-64, 10)):
        with pytest.raises(ValueError, match="multiple of 64"):
            stored.to_bitmap(start, stop)
    with pytest.raises(ValueError, match="multiple of 64"):
        encode_bitmap(stored.to_bitmap(), 1000, start=32)
    with pytest.raises(ValueError, match="member 900 is not below"):
        encode_bitmap(stored.to_bitmap(), 900)
    with pytest.raises(ValueError, match="at least 64"):
        encode_bitmap(stored.to_bitmap(), 1000, partition_size=63)


def test_a_query_reads_one_partition():
    source = Slices(encode_members(np.arange(10**6, dtype=np.uint64) * 1000, 10**9))
    stored = PartitionedEliasFano(source)
    opened = source.num_read
    assert opened < len(source) / 5
    assert stored.index_of(123_456_000) == 123_456
    assert source.num_read - opened < 100


@settings(max_examples=200, deadline=None)
@given(drawn=member_sets(), cuts=st.lists(st.integers(0, 1500), max_size=6))
def test_chunks_make_the_same_words(drawn, cuts):
    members, universe = drawn
    flat = np.array(members, dtype=np.uint64)
    bounds = sorted({0, len(flat), *(min(c, len(flat)) for c in cuts)})
    chunks = [flat[a:b] for a, b in itertools.pairwise(bounds)]
    parts = PartitionedEliasFano.from_chunks(chunks, universe)
    assert np.array_equal(parts.words, encode_members(flat, universe))
    whole = EliasFano.from_chunks(chunks, universe, len(flat))
    assert np.array_equal(whole.words, EliasFano.from_members(flat, universe).words)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(12))
def test_large_sets(kind, seed):
    """Sets of many blocks and samples: long runs, wide gaps, both ends."""
    rng = np.random.default_rng(seed)
    gaps = np.concatenate([
        np.ones(int(rng.integers(0, 30_000)), dtype=np.int64),
        rng.integers(1, 2 ** int(rng.integers(1, 30)), int(rng.integers(0, 40_000))),
        np.full(int(rng.integers(1, 20_000)), int(rng.choice([1, 64, 2**20]))),
    ])  # fmt: skip
    members = np.cumsum(gaps).astype(np.uint64) - np.uint64(1)
    universe = int(rng.choice([int(members[-1]) + 1, 2**44, 2**63]))
    stored = kind.from_members(members, universe)
    queries = np.concatenate([members, members[:-1] + np.uint64(1), [np.uint64(TOP)]])
    rng.shuffle(queries)
    for values in (queries, np.sort(queries), np.sort(queries[:100])):
        assert np.array_equal(stored.rank(values), np.searchsorted(members, values))
        assert np.array_equal(stored.contains(values), np.isin(values, members))
    positions = rng.integers(0, len(members), 5000)
    assert np.array_equal(stored.get(positions), members[positions])
    for start in (0, len(members) // 3, len(members) - 1):
        assert np.array_equal(stored.decode(start), members[start:])


EDGES = [
    ([], 0), ([], 1), ([], 2**64), ([0], 1), ([0], 2**64), ([TOP], 2**64), ([0, TOP], 2**64),
    (list(range(300)), 300), (list(range(TOP - 299, TOP + 1)), 2**64), ([5], 6),
    (list(range(0, 64 * 300, 64)), 64 * 300), ([2**63 - 1, 2**63], 2**63 + 1),
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("members", "universe"), EDGES, ids=lambda e: str(e)[:20])
def test_edges(kind, members, universe):
    stored = kind.from_members(np.array(members, dtype=np.uint64), universe)
    check(stored, members, universe)
    words = stored.words.copy()
    words.flags.writeable = False
    check(kind(words), members, universe)


@pytest.mark.parametrize("kind", KINDS)
def test_every_value_of_small_universes(kind):
    for universe in range(1, 7):
        for flags in itertools.product([0, 1], repeat=universe):
            members = np.flatnonzero(flags)
            stored = kind.from_members(members, universe)
            values = np.arange(universe + 2)
            assert np.array_equal(stored.rank(values), np.searchsorted(members, values))
            assert np.array_equal(stored.contains(values), np.isin(values, members))


def test_space_is_near_the_bound():
    rng = np.random.default_rng(1)
    for universe in (2**21, 2**24, 2**30, 2**48):
        members = np.unique(rng.integers(0, universe, 10**6, dtype=np.uint64))
        n = len(members)
        low = max(0, (universe // n).bit_length() - 1)
        bound = n * low + n + (universe >> low) + 1
        assert 8 * EliasFano.from_members(members, universe).nbytes <= 1.02 * bound


BAD_MEMBERS = [
    ([1, 3, 2], ValueError, "member 2 at position 2 falls below"),
    ([1, 2, 2], ValueError, "member 2 at position 2 repeats"),
    ([1, 10], ValueError, "member 10 at position 1 is not below the universe 10"),
    ([-1, 3], ValueError, "member -1 at position 0 is negative"),
    ([1.0, 2.0], TypeError, "integers, not float64"),
    ([[1, 2]], ValueError, "one-dimensional"),
    (["a"], TypeError, "integers"),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("members", "error", "message"), BAD_MEMBERS, ids=str)
def test_bad_members(kind, members, error, message):
    with pytest.raises(error, match=message):
        kind.from_members(members, 10)


def test_builders_refuse_what_does_not_fit():
    for builder in (PartitionedBuilder(100), SequenceBuilder(100, 4)):
        builder.push([1, 5])
        with pytest.raises(ValueError, match="member 5 at position 0 does not exceed"):
            builder.push([5, 6])
    sequence = SequenceBuilder(100, 3)
    sequence.push([1, 2])
    with pytest.raises(ValueError, match="2 members were pushed, 3 expected"):
        sequence.finish()
    with pytest.raises(ValueError, match="3 members were pushed, 2 expected"):
        SequenceBuilder(100, 2).push([1, 2, 3])
    with pytest.raises(ValueError, match="universe"):
        PartitionedBuilder(2**64 + 1)


@pytest.mark.parametrize("kind", KINDS)
def test_bad_queries(kind):
    stored = kind.from_members([1, 5, 9], 10)
    for bad, error in ((-1, ValueError), (2**64, ValueError), (1.5, TypeError), ("a", TypeError)):
        with pytest.raises(error):
            stored.rank(bad)
    with pytest.raises(ValueError, match="negative"):
        stored.rank(np.array([3, -4]))
    with pytest.raises(IndexError, match="position 3 is out of range"):
        stored.get(3)
    with pytest.raises(IndexError):
        stored.decode(1, 9)
    assert -1 not in stored
    assert "a" not in stored
    assert True not in stored
    assert stored.succ(10) is None
    assert stored.pred(0) is None
    assert "3 of 10" in repr(stored)


def test_every_flipped_bit_of_a_sequence_is_refused_or_harmless():
    members = np.unique(np.random.default_rng(2).integers(0, 5000, 300))
    sound = EliasFano.from_members(members, 5000).words
    queries = np.arange(5100)
    for bit in range(64 * len(sound)):
        words = sound.copy()
        words[bit // 64] ^= np.uint64(1) << np.uint64(bit % 64)
        try:
            stored = EliasFano(words)
            assert stored.rank(queries).max() <= len(stored)
            stored.get(np.arange(len(stored)))
            stored.decode()
        except DamagedSet:
            continue


def test_without_bmi2():
    """The portable path, in a process of its own: the choice is made when the package loads."""
    command = [sys.executable, "-m", "pytest", "-q", "-k", "edges or small_universes", __file__]
    # An x86-64 of the first day has neither BMI2 nor vectors of more than 128 bits.
    environment = {**os.environ, "ELIAS_FANO_PORTABLE": "1"}
    if platform.machine() in ("x86_64", "AMD64"):
        environment |= {"NUMBA_CPU_NAME": "x86-64", "NUMBA_CPU_FEATURES": ""}
    result = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout
    assert "passed" in result.stdout
