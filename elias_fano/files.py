"""A set in a single file, mapped into memory.

All numbers are little-endian. The file is a head, the words of the set, and checksums::

    head        8 words: MAGIC, version, number of words of the set, words per checksum (2^17, that
                is 1 MiB), byte where the words begin, byte where the checksums begin, 0,
                CRC-32 of the seven words before
    words       the serialised set, from byte 64 on, with zeros up to a multiple of 64 bytes
    checksums   a CRC-32 in 32 bits for every MiB of words, the last of which may be short, then
                one of these checksums; with zeros up to a multiple of 64 bytes

Whatever is written, is written aside and renamed, flushed to the disk before and after.
"""

from __future__ import annotations

import os
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Literal

import numpy as np
from numpy.typing import ArrayLike

from .interface import DamagedSet, SortedSet, Words
from .kinds import Kind, built_from, open_words
from .partitioned import PartitionedEliasFano
from .spool import regrouped

MAGIC = int.from_bytes(b"EFFILE01", "little")
VERSION = 1
HEAD_BYTES = 64
CHECKSUM_WORDS = 1 << 17
ALIGNMENT = 64

Verify = Literal["header", "full"]


def write_file(
    path: str | os.PathLike[str],
    chunks: Iterable[ArrayLike],
    universe: int,
    *,
    kind: Kind = PartitionedEliasFano,
    count: int | None = None,
    **options: float,
) -> None:
    """Write the set of sorted chunks, each above the end of the last, in bounded memory.

    kind : PartitionedEliasFano or EliasFano, which needs `count`
    options : `partition_size` and `bitmap_bias` of `encode_bitmap`
    Raises TypeError, ValueError for what cannot be a set, and OSError; then no file is left.
    """
    path = Path(path)
    with built_from(chunks, universe, kind, count, path.parent, options) as (length, pieces):
        _write(path, length, pieces)


def save_file(path: str | os.PathLike[str], stored: SortedSet) -> None:
    """Write a set that is there. Raises OSError; then no file is left."""
    length = len(stored.source)
    pieces = (stored.source[at : at + CHECKSUM_WORDS] for at in range(0, length, CHECKSUM_WORDS))
    _write(Path(path), length, pieces)


def open_file(path: str | os.PathLike[str], verify: Verify = "header") -> SortedSet:
    """The set in a file, mapped into memory; reads its head and directory.

    verify : "full" reads all of it, and compares every checksum
    Raises OSError, DamagedSet.
    """
    if verify not in ("header", "full"):
        raise ValueError(f"verify is {verify!r}; it must be 'header' or 'full'")
    size = os.path.getsize(path)
    if size < HEAD_BYTES:
        raise DamagedSet(f"{path} has {size} bytes: too short for a set")
    mapped = np.memmap(path, dtype=np.uint8, mode="r")
    try:
        words = _checked_words(mapped)
        if verify == "full":
            _check(mapped, words)
        return open_words(words)
    except DamagedSet as error:
        raise DamagedSet(f"{path}: {error}") from None


def _aligned(num_bytes: int) -> int:
    return -(-num_bytes // ALIGNMENT) * ALIGNMENT


def _head(length: int) -> bytes:
    start = HEAD_BYTES + _aligned(8 * length)
    numbers = np.array([MAGIC, VERSION, length, CHECKSUM_WORDS, HEAD_BYTES, start, 0], dtype="<u8")
    return numbers.tobytes() + zlib.crc32(numbers.tobytes()).to_bytes(8, "little")


def _num_checksum_bytes(length: int) -> int:
    return 4 * (-(-length // CHECKSUM_WORDS) + 1)


def _checked_words(mapped: np.ndarray) -> Words:
    """The words of a mapped file, after a look at its head and its size. Raises DamagedSet."""
    head = mapped[:HEAD_BYTES].tobytes()
    magic, version, length = (int(number) for number in np.frombuffer(head[:24], dtype="<u8"))
    if magic != MAGIC:
        raise DamagedSet("no file of a set: it does not begin with its magic")
    if zlib.crc32(head[:-8]) != int.from_bytes(head[-8:], "little"):
        raise DamagedSet("the checksum of the head does not match")
    if version != VERSION:
        raise DamagedSet(f"file of version {version}; this program reads {VERSION}")
    if 8 * length > len(mapped) or head != _head(length):
        raise DamagedSet("the head contradicts itself or the size")
    expected = HEAD_BYTES + _aligned(8 * length) + _aligned(_num_checksum_bytes(length))
    if len(mapped) != expected:
        raise DamagedSet(f"{len(mapped)} bytes, expected {expected}")
    return np.asarray(mapped[HEAD_BYTES : HEAD_BYTES + 8 * length]).view("<u8")


def _check(mapped: np.ndarray, words: Words) -> None:
    """Compare all checksums, and make sure that only zeros fill the gaps. Raises DamagedSet."""
    start = HEAD_BYTES + _aligned(words.nbytes)
    end = start + _num_checksum_bytes(len(words))
    table = mapped[start:end].tobytes()
    if zlib.crc32(table[:-4]) != int.from_bytes(table[-4:], "little"):
        raise DamagedSet("the checksum of the checksums does not match")
    stored = np.frombuffer(table, dtype="<u4")
    for i, at in enumerate(range(0, len(words), CHECKSUM_WORDS)):
        found = zlib.crc32(words[at : at + CHECKSUM_WORDS].tobytes())
        if found != stored[i]:
            raise DamagedSet(f"MiB {i}: checksum {found:#010x}, expected {stored[i]:#010x}")
    if mapped[HEAD_BYTES + words.nbytes : start].any() or mapped[end:].any():
        raise DamagedSet("something stands where zeros should")


def _write(path: Path, length: int, pieces: Iterator[Words]) -> None:
    file = tempfile.NamedTemporaryFile(  # noqa: SIM115
        dir=path.parent, prefix=f".{path.name}.", delete=False
    )
    try:
        with file:
            _write_parts(file, length, pieces)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(file.name, 0o644)
        os.replace(file.name, path)
    except BaseException:
        Path(file.name).unlink(missing_ok=True)
        raise
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _write_parts(file: IO[bytes], length: int, pieces: Iterator[Words]) -> None:
    file.write(_head(length))
    checksums = []
    for block in regrouped(pieces, CHECKSUM_WORDS):
        data = block.astype("<u8", copy=False).tobytes()
        file.write(data)
        checksums.append(zlib.crc32(data))
    file.write(bytes(_aligned(8 * length) - 8 * length))
    table = np.array(checksums, dtype="<u4").tobytes()
    table += zlib.crc32(table).to_bytes(4, "little")
    file.write(table + bytes(_aligned(len(table)) - len(table)))
