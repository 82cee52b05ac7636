"""The catalogue of a finished kind of bands: one file with all that a reader needs to start.

A ZIP file with the records of the kind, and of every band its manifest, its chunk tables and the
metadata of its arrays. The same parts give the same bytes. Its comment is the SHA-256 of
everything before the comment, so a change anywhere is found.
"""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Iterable
from pathlib import Path

from .errors import SolutionDamaged

NAME = "catalogue.zip"
FIRST_DATE = (1980, 1, 1, 0, 0, 0)
"""The first date a ZIP file can say."""
DIGEST_BYTES = 64


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


class Catalogue:
    """A catalogue opened for reading; whatever is wrong with it raises SolutionDamaged."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._archive = zipfile.ZipFile(path)
        except Exception as error:
            raise SolutionDamaged(f"{path}: {error}") from None

    def close(self) -> None:
        self._archive.close()

    @property
    def names(self) -> list[str]:
        return self._archive.namelist()

    def read(self, name: str) -> bytes:
        """A part. Raises SolutionDamaged if it is not there."""
        try:
            return self._archive.read(name)
        except KeyError:
            raise SolutionDamaged(f"{self.path} lacks {name}") from None
        # Whatever zipfile makes of damaged bytes, it is one thing to the user.
        except Exception as error:
            raise SolutionDamaged(f"{self.path}, {name}: {error}") from None

    def check(self) -> None:
        """Compare the file with its own digest."""
        if self._archive.comment != _digest(self.path):
            raise SolutionDamaged(f"{self.path} is not as it was written: its checksum differs")
