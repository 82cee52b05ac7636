"""The catalogue of a finished kind of bands: one file with all that a reader needs to start.

A ZIP file with, of every band, its manifest, its chunk tables and the metadata of its arrays, then
the records of the kind. The same parts give the same bytes. Its comment is the SHA-256 of
everything before the comment, so a change anywhere is found.

Every band has members of the same names but for the band, so their entries in the ZIP's directory
are all as long: where those of the i-th band lie follows from i, and its members lie side by side.
A reader takes the end of the file and then what it is asked for, however large the directory is.
"""

from __future__ import annotations

import hashlib
import os
import struct
import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path

from .errors import SolutionDamaged
from .location import Location

NAME = "catalogue.zip"
FIRST_DATE = (1980, 1, 1, 0, 0, 0)
"""The first date a ZIP file can say."""
DIGEST_BYTES = 64
TAIL_BYTES = 1 << 17
"""Read at the start; the whole catalogue of any board but 4x3."""

_END = struct.Struct("<4s4H2LH")
_ENTRY = struct.Struct("<4s4B4H3L5H2L")
_HEADER_BYTES = 30
"""Before the name of a member in its own header; nothing else comes before its data."""


def write_catalogue(path: Path, parts: Iterable[tuple[str, bytes]]) -> None:
    """Write a catalogue of named parts and flush it to the disk; nothing may be there yet."""
    with open(path, "xb") as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
            for name, data in parts:
                entry = zipfile.ZipInfo(name, FIRST_DATE)
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = 0o644 << 16
                archive.writestr(entry, data)
            archive.comment = b"0" * DIGEST_BYTES
        file.flush()
        digest = _digest(path)
        file.seek(-DIGEST_BYTES, os.SEEK_END)
        file.write(digest)
        file.flush()
        os.fsync(file.fileno())


def _digest(path: Path) -> bytes:
    """What the comment of a catalogue should be."""
    digest = hashlib.sha256()
    left = path.stat().st_size - DIGEST_BYTES
    with open(path, "rb") as file:
        while left > 0 and (block := file.read(min(left, 1 << 20))):
            digest.update(block)
            left -= len(block)
    return digest.hexdigest().encode()


def read_catalogue(path: Path) -> dict[str, bytes]:
    """All parts of a catalogue, which is compared with its own digest. Raises SolutionDamaged."""
    try:
        with zipfile.ZipFile(path) as archive:
            if archive.comment != _digest(path):
                raise SolutionDamaged(f"{path} is not as it was written: its checksum differs")
            return {name: archive.read(name) for name in archive.namelist()}
    except SolutionDamaged:
        raise
    # Whatever zipfile makes of damaged bytes, it is one thing to the user.
    except Exception as error:
        raise SolutionDamaged(f"{path}: {error}") from None


class Catalogue:
    """A catalogue read in parts; whatever is wrong with it raises SolutionDamaged.

    tail, size : the end of the file, and the bytes of all of it
    records : names of the members after those of the bands
    """

    def __init__(
        self, location: Location, name: str, tail: bytes, size: int, records: Iterable[str]
    ) -> None:
        self.path = location.shown(name)
        self._location, self._name = location, name
        self._tail, self._size = tail, size
        try:
            end = _END.unpack(tail[-DIGEST_BYTES - _END.size : -DIGEST_BYTES])
        except struct.error:
            raise SolutionDamaged(f"{self.path} is no catalogue") from None
        self._directory_bytes, self._directory = end[5], end[6]
        of_records = sum(_ENTRY.size + len(record) for record in records)
        self._records_at = self._directory_bytes - of_records
        after = self._directory + self._directory_bytes + _END.size + DIGEST_BYTES
        if end[0] != b"PK\5\6" or self._records_at < 0 or after != size:
            raise SolutionDamaged(f"{self.path} is no catalogue")

    def records(self) -> dict[str, bytes]:
        """The records of the kind by name."""
        return self._members(self._records_at, self._directory_bytes)

    def band(self, number: int, num_bands: int) -> dict[str, bytes]:
        """The members of a band by name, the number counting from the lowest of all."""
        size, rest = divmod(self._records_at, num_bands)
        if rest or not size:
            raise SolutionDamaged(f"{self.path} is no catalogue of {num_bands} bands")
        return self._members(number * size, (number + 1) * size)

    def _members(self, start: int, stop: int) -> dict[str, bytes]:
        """The members whose entries are the bytes [start, stop) of the directory."""
        # The entry after them, or the end of the directory, says where their data end.
        base = self._directory
        entries = self._read(base + start, base + stop + _ENTRY.size)
        try:
            found = list(_parse_entries(entries[: stop - start]))
            is_last = stop == self._directory_bytes
            end = base if is_last else _ENTRY.unpack(entries[stop - start :])[-1]
            first = found[0].header_offset
            data = self._read(first, end)
            return {entry.filename: _inflate(entry, data, first) for entry in found}
        except (ValueError, IndexError, struct.error, zlib.error) as error:
            raise SolutionDamaged(f"{self.path}: {error}") from None

    def _read(self, start: int, stop: int) -> bytes:
        if not 0 <= start < stop <= self._size:
            raise SolutionDamaged(f"{self.path}: a member ends outside the file")
        at = self._size - len(self._tail)
        if start >= at:
            return self._tail[start - at : stop - at]
        return self._location.read_ranges(self._name, self._size, [(start, stop)])[0]


def _parse_entries(entries: bytes) -> Iterable[zipfile.ZipInfo]:
    """The members of a part of the directory, in order."""
    start = 0
    while start < len(entries):
        fields = _ENTRY.unpack(entries[start : start + _ENTRY.size])
        start += _ENTRY.size
        entry = zipfile.ZipInfo(entries[start : start + fields[12]].decode("ascii"))
        entry.CRC, entry.compress_size, entry.file_size = fields[9:12]
        entry.header_offset = fields[18]
        start += fields[12]
        if fields[0] != b"PK\1\2" or fields[7:9] != (0, 33) or any(fields[13:15]):
            raise ValueError("the directory is damaged")
        yield entry


def _inflate(entry: zipfile.ZipInfo, data: bytes, first: int) -> bytes:
    start = entry.header_offset - first + _HEADER_BYTES + len(entry.filename)
    plain = zlib.decompress(data[start : start + entry.compress_size], wbits=-zlib.MAX_WBITS)
    if len(plain) != entry.file_size or zlib.crc32(plain) != entry.CRC:
        raise ValueError(f"{entry.filename} is not as it was written")
    return plain
