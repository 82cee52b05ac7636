"""Sets on disk: single files and Zarr groups, streaming, damage, full disks."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from test_sorted_sets import KINDS, TOP, check, member_sets

from elias_fano import (
    DamagedSet,
    EliasFano,
    PartitionedEliasFano,
    open_file,
    open_group,
    save_file,
    spool,
    write_file,
    write_group,
)


@pytest.fixture(scope="module")
def place():
    with tempfile.TemporaryDirectory() as directory:
        yield Path(directory)


def members_of(count, seed=1, universe=2**40):
    return np.unique(np.random.default_rng(seed).integers(0, universe, count, dtype=np.uint64))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=350, deadline=None)
@given(drawn=member_sets())
def test_a_file_is_like_the_plain_array(kind, place, drawn):
    members, universe = drawn
    flat = np.array(members, dtype=np.uint64)
    cut = len(flat) // 3
    path = place / "set.ef"
    write_file(path, [flat[:cut], flat[cut:]], universe, kind=kind, count=len(flat))
    stored = open_file(path, verify="full")
    assert type(stored) is kind
    check(stored, members, universe)
    assert not [p for p in place.iterdir() if p != path]
    written = path.read_bytes()
    save_file(path, kind.from_members(flat, universe))
    assert path.read_bytes() == written


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60, deadline=None)
@given(drawn=member_sets())
def test_a_group_is_like_the_plain_array(kind, place, drawn):
    members, universe = drawn
    flat = np.array(members, dtype=np.uint64)
    with tempfile.TemporaryDirectory(dir=place) as directory:
        write_group(Path(directory) / "set", [flat], universe, kind=kind, count=len(flat))
        check(open_group(Path(directory) / "set"), members, universe)


@pytest.mark.parametrize("kind", KINDS)
def test_a_large_group_has_shards(kind, tmp_path, monkeypatch):
    monkeypatch.setattr("elias_fano.groups.SHARD_WORDS", 1 << 16)
    members = members_of(2 * 10**6)
    chunks = np.array_split(members, 17)
    write_group(tmp_path / "set", chunks, 2**40, kind=kind, count=len(members))
    stored = open_group(str(tmp_path / "set"))
    assert np.array_equal(stored.decode(), members)
    assert np.array_equal(stored.index_of(members[::-997]), np.arange(len(members))[::-997])
    with pytest.raises(FileExistsError):
        write_group(tmp_path / "set", chunks, 2**40, kind=kind, count=len(members))
    next((tmp_path / "set/words/c").iterdir()).unlink()
    with pytest.raises(DamagedSet, match="chunks are there"):
        open_group(tmp_path / "set")


def test_a_flipped_bit_of_a_group_is_found(tmp_path):
    members = members_of(10**5)
    write_group(tmp_path / "set", [members], 2**40)
    shard = next(p for p in (tmp_path / "set/words/c").rglob("*") if p.is_file())
    sound = shard.read_bytes()
    for at in range(100, len(sound), len(sound) // 40):
        shard.write_bytes(sound[:at] + bytes([sound[at] ^ 4]) + sound[at + 1 :])
        with pytest.raises(DamagedSet):
            open_group(tmp_path / "set").decode()


def test_what_is_no_group(tmp_path):
    with pytest.raises(DamagedSet, match="no group of a set"):
        open_group(tmp_path / "nothing")


def test_opening_a_file_reads_little(tmp_path):
    """A set of 3 million members, of which a query touches a few pages."""
    path = tmp_path / "set.ef"
    members = np.arange(3 * 10**6, dtype=np.uint64) * np.uint64(1000) + np.uint64(7)
    write_file(path, [members], 3 * 10**9)
    code = (
        "import sys, elias_fano\n"
        "stored = elias_fano.open_file(sys.argv[1])\n"
        "assert stored.index_of(123_456_007) == 123_456\n"
        "rss = [l for l in open('/proc/self/smaps') ]\n"
        "at = next(i for i, l in enumerate(rss) if l.rstrip().endswith('set.ef'))\n"
        "print([l for l in rss[at:at+12] if l.startswith('Rss')][0].split()[1])\n"
    )
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True)
    if "smaps" in done.stderr:
        pytest.skip("no /proc/self/smaps here")
    assert int(done.stdout) * 1024 < path.stat().st_size / 2


@pytest.mark.parametrize("kind", KINDS)
def test_every_flipped_bit_of_a_file_is_refused_or_harmless(kind, tmp_path):
    members = members_of(300, universe=5000)
    path = tmp_path / "set.ef"
    write_file(path, [members], 5000, kind=kind, count=len(members))
    sound = path.read_bytes()
    queries = np.arange(5100)
    for bit in range(0, 8 * len(sound), 3):
        damaged = bytearray(sound)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        with pytest.raises(DamagedSet):
            open_file(path, verify="full")
        try:
            stored = open_file(path)
            assert stored.rank(queries).max() <= len(stored)
            stored.rank(queries[::-1])
            stored.get(np.arange(len(stored)))
            stored.decode()
        except DamagedSet:
            continue
    for length in (0, 10, 63, 64, 100, len(sound) - 1):
        path.write_bytes(sound[:length])
        with pytest.raises(DamagedSet):
            open_file(path)
    path.write_bytes(sound + b"\0")
    with pytest.raises(DamagedSet):
        open_file(path)
    with pytest.raises(OSError, match="nothing"):
        open_file(tmp_path / "nothing")
    with pytest.raises(ValueError, match="verify"):
        open_file(path, verify="a bit")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("write", [write_file, write_group])
def test_bad_chunks_leave_nothing(kind, write, tmp_path):
    for chunks, message in (([[1, 5], [5, 6]], "member 5 at position 0"), ([[1, 200]], "universe"),
                            ([[1]], "1 members were pushed, 3 expected")):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            write(tmp_path / "set", chunks, 100, kind=kind, count=3)
        assert not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match="count"):
        write_file(tmp_path / "set", [[1]], 100, kind=EliasFano)


@pytest.mark.parametrize("kind", KINDS)
def test_a_full_disk_leaves_nothing(kind, tmp_path, monkeypatch):
    members = members_of(10**5)
    write_file(tmp_path / "set.ef", [members], 2**40, kind=kind, count=len(members))
    before = (tmp_path / "set.ef").read_bytes()

    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    for name in ("os.fsync", "os.replace", "elias_fano.files._write_parts",
                 "elias_fano.spool.Spool.append"):  # fmt: skip
        with monkeypatch.context() as patch:
            patch.setattr(name, fail)
            with pytest.raises(OSError, match="No space"):
                write_file(tmp_path / "set.ef", [members], 2**40, kind=kind, count=len(members))
        assert [p.name for p in tmp_path.iterdir()] == ["set.ef"]
        assert (tmp_path / "set.ef").read_bytes() == before


GROWTH = """
import resource, sys
import numpy as np
import elias_fano
kind = getattr(elias_fano, sys.argv[2])
def chunks(count):
    for start in range(0, count, 1 << 18):
        yield np.arange(start, min(start + (1 << 18), count), dtype=np.uint64) << np.uint64(36)
def write(count):
    elias_fano.write_file(sys.argv[1], chunks(count), 2**64, kind=kind, count=count)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
small = write(1 << 18)
print(write(1 << 25) - small)
"""


@pytest.mark.parametrize("kind", KINDS)
def test_memory_is_bounded_by_a_chunk(kind, tmp_path):
    """33 million members, a file of 165 MB, in some MB more than a chunk of them takes."""
    path = tmp_path / "set.ef"
    command = [sys.executable, "-c", GROWTH, str(path), kind.__name__]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert path.stat().st_size > 150 * 10**6
    assert int(done.stdout) * 1024 < 24 * 10**6
    stored = open_file(path)
    assert stored[12_345_678] == 12_345_678 << 36
    assert stored.index_of(np.array([5 << 36, 7])).tolist() == [5, -1]


@pytest.mark.parametrize("kind", KINDS)
def test_more_than_32_bits_of_bits(kind, tmp_path):
    """120 million members of about 39 bits each: positions in bits pass 2^32."""
    count, step = 120_000_000, np.uint64(153_722_867_280)
    path = tmp_path / "set.ef"

    def values(positions):
        return positions.astype(np.uint64) * step + np.uint64(3)

    write_file(
        path,
        (values(np.arange(i, min(i + (1 << 20), count))) for i in range(0, count, 1 << 20)),
        2**64,
        kind=kind,
        count=count,
    )
    assert 8 * path.stat().st_size > 2**32
    stored = open_file(path)
    picked = np.random.default_rng(1).integers(0, count, 10**4)
    picked[:2] = 0, count - 1
    assert np.array_equal(stored.get(picked), values(picked))
    assert np.array_equal(stored.index_of(values(picked)), picked)
    assert np.array_equal(stored.rank(values(picked) + np.uint64(1)), picked + 1)
    assert stored.last < TOP
    assert np.array_equal(stored.decode(count - 1000), values(np.arange(count - 1000, count)))


def test_spools_in_files_and_in_memory_are_alike(tmp_path, monkeypatch):
    monkeypatch.setattr(spool, "PIECE_WORDS", 7)
    for directory in (None, tmp_path):
        words = spool.Spool(directory)
        for length in (3, 0, 20):
            words.append(np.arange(length, dtype=np.uint64))
        expected = [*range(3), *range(20)]
        assert np.concatenate(list(words.pieces())).tolist() == expected
        assert len(words) == 23
        words.close()
    assert not os.listdir(tmp_path)


def test_options_reach_the_builder(tmp_path):
    members = members_of(1000)
    write_file(tmp_path / "set.ef", [members], 2**40, partition_size=64)
    stored = open_file(tmp_path / "set.ef")
    assert isinstance(stored, PartitionedEliasFano)
    assert sum(stored.num_partitions.values()) == -(-len(members) // 64)
