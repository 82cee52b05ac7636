"""The bands of a solution as they are read: from a directory or from afar, by ranges of bytes."""

from __future__ import annotations

import bisect
import hashlib
import os
from typing import Any, NamedTuple

from . import catalogue, chunk_table
from .array_form import parse_form
from .cache import Cache
from .catalogue import TAIL_BYTES, Catalogue
from .chunk_table import parse_table
from .errors import NotSolved, SolutionDamaged
from .files import check_digest, file_digest, parse_record
from .layer import Band
from .lock import SOLUTION_NAME
from .records import OBJECTIVE, RESULT, SETS, Records
from .stored_array import ChunkCache, StoredArray

MANIFEST = "manifest.json"
ZARR_METADATA = "zarr.json"
CACHE_BYTES = 256 << 20
PART_BYTES = 16 << 20
"""Of manifests and chunk tables to keep."""


class _Opened(NamedTuple):
    """A catalogue, and the records in it."""

    catalogue: Catalogue
    records: dict[str, dict[str, Any]]


class _Parts(NamedTuple):
    """A band's manifest, and its small files as a catalogue has them."""

    manifest: dict[str, Any]
    files: dict[str, bytes]


class BandReader(Records):
    """The bands of a solution; `uses_catalogues` False takes the manifests for all it reads.

    bands : all there are of the shape, upward. By them catalogues are read; without them, too, the
        manifests are taken. Who knows the shape sets them
    """

    def __init__(self, path: str | os.PathLike[str], *, uses_catalogues: bool = True) -> None:
        super().__init__(path)
        self._uses_catalogues = uses_catalogues
        self.bands: tuple[Band, ...] = ()
        self.cache: ChunkCache = Cache(CACHE_BYTES, lambda chunk: chunk.nbytes)
        self._parts: Cache[tuple[str, Band], _Parts] = Cache(
            PART_BYTES, lambda parts: sum(map(len, parts.files.values()))
        )
        self._ahead: dict[str, Catalogue] = {}
        self._catalogues: dict[str, _Opened] = {}

    def forget(self) -> None:
        super().forget()
        self.close()

    def close(self) -> None:
        """Let go of what was cached."""
        self.cache.clear()
        self._parts.clear()
        self._ahead.clear()
        self._catalogues.clear()

    def manifest(self, kind: str, band: Band) -> dict[str, Any] | None:
        """The manifest of a band by the catalogue, else as stored; None if there is none."""
        parts = self._catalogued(kind, band)
        return parts.manifest if parts else self.stored_manifest(kind, band)

    def _catalogued(self, kind: str, band: Band) -> _Parts | None:
        """What the catalogue has of a band, None if there is no catalogue."""
        opened = self._opened(kind) if self.bands else None
        return opened and self._parts.find(
            (kind, band), lambda: self._read_parts(opened, kind, band)
        )

    def _read_parts(self, opened: _Opened, kind: str, band: Band) -> _Parts:
        members = opened.catalogue.band(bisect.bisect_left(self.bands, band), len(self.bands))
        files = {name.removeprefix(f"{band.name}/"): data for name, data in members.items()}
        where = f"{opened.catalogue.path}, {band.name}/{MANIFEST}"
        if MANIFEST not in files or chunk_table.NAME not in files:
            raise SolutionDamaged(f"{opened.catalogue.path} lacks {band.name}")
        manifest = parse_record(files[MANIFEST], where)
        return _Parts(self._checked_manifest(kind, band, manifest, where), files)

    def record(self, kind: str, name: str) -> dict[str, Any] | None:
        """A record of a kind by the catalogue, else as stored; None if it is not there."""
        opened = self._opened(kind)
        return dict(opened.records[name]) if opened else super().record(kind, name)

    def stored_manifest(self, kind: str, band: Band) -> dict[str, Any] | None:
        """The manifest that lies in a band's directory, None if there is none."""
        name = f"{kind}/{band.name}/{MANIFEST}"
        record = self.read_record(name)
        return record and self._checked_manifest(kind, band, record, self.location.shown(name))

    def _checked_manifest(
        self, kind: str, band: Band, manifest: dict[str, Any], where: object
    ) -> dict[str, Any]:
        if (manifest.get("kind"), manifest.get("band")) != (kind, [band.first, band.last]):
            raise SolutionDamaged(f"{where} is the manifest of another band")
        expected = self.kind_identity(kind)
        if manifest.get("identity") != expected:
            raise SolutionDamaged(
                f"{where} is of another solution: identity "
                f"{str(manifest.get('identity'))[:16]}..., here {expected[:16]}..."
            )
        return manifest

    def manifest_digest(self, kind: str, band: Band) -> str:
        """SHA-256 of a band's manifest, which stands for all of the band."""
        if parts := self._catalogued(kind, band):
            return _sha256(parts.files[MANIFEST])
        return file_digest(self.path / kind / band.name / MANIFEST)

    def _needed_manifest(self, kind: str, band: Band) -> dict[str, Any]:
        manifest = self.manifest(kind, band)
        if manifest is None:
            raise SolutionDamaged(
                f"{self.location.shown(f'{kind}/{band.name}')}: the band is missing"
            )
        return manifest

    def open_array(self, kind: str, band: Band, name: str,
                   missing: float | int | None = None) -> StoredArray:  # fmt: skip
        """A stored array for reading in parts, every chunk compared with the band's chunk table.

        Raises SolutionDamaged.
        """
        manifest = self._needed_manifest(kind, band)
        facts = manifest["files"]

        def read_shard(shard: int, ranges: list[tuple[int, int]]) -> list[bytes]:
            file = f"{name}/c/{shard}"
            size = int(facts[file]["size"])
            return self.location.read_ranges(f"{kind}/{band.name}/{file}", size, ranges)

        table = parse_table(
            self._small_file(kind, band, chunk_table.NAME, facts), manifest["chunks"][name]
        )
        metadata = self._small_file(kind, band, f"{name}/{ZARR_METADATA}", facts)
        where = f"ages {band.first} to {band.last}, {kind}/{band.name}/{name}"
        try:
            form = parse_form(metadata)
        except (ValueError, KeyError) as error:
            raise SolutionDamaged(f"{where}/{ZARR_METADATA}: {error}") from None
        return StoredArray(form, table, read_shard, where, missing, self.cache)

    def _small_file(
        self, kind: str, band: Band, file: str, facts: dict[str, dict[str, Any]]
    ) -> bytes:
        """A file of a band that catalogues have too, compared with its digest."""
        parts = self._catalogued(kind, band)
        name = f"{kind}/{band.name}/{file}"
        stored = parts.files.get(file) if parts else self.location.read(name)
        if stored is None:
            raise SolutionDamaged(f"{self.location.shown(name)} is missing")
        check_digest(self.location.shown(name), facts[file], _sha256(stored))
        return stored

    # --- catalogues ---------------------------------------------------------------------------

    def has_catalogue(self, kind: str) -> bool:
        """Whether a kind is finished: it has a catalogue, which is used."""
        return self._opened(kind) is not None

    def _opened(self, kind: str) -> _Opened | None:
        """The catalogue of a kind, None if there is none (yet), or none to be used.

        Raises SolutionDamaged, and NotSolved far away, where nothing can be read without.
        """
        if not self._uses_catalogues:
            return None
        if kind not in self._catalogues:
            found = self._ahead.get(kind) or self._read_catalogue(kind)
            if found is not None:
                self._catalogues[kind] = _Opened(found, self._own_records(kind, found))
            elif self.location.needs_catalogues:
                raise NotSolved(
                    f"{self.location.shown(f'{kind}/{catalogue.NAME}')} is missing: there are no "
                    "such values, or they are not finished; what is far away is read once it is"
                )
        return self._catalogues.get(kind)

    def _read_catalogue(self, kind: str) -> Catalogue | None:
        name = f"{kind}/{catalogue.NAME}"
        found = self.location.read_tail(name, TAIL_BYTES)
        return found and Catalogue(self.location, name, *found, records_of(kind))

    def _read_identity(self) -> bytes | None:
        # Far away every file is a request, and a finished solution's catalogue has the record too.
        if self.location.needs_catalogues and (found := self._read_catalogue(SETS)):
            self._ahead[SETS] = found
            return found.records().get(SOLUTION_NAME)
        return super()._read_identity()

    def _own_records(self, kind: str, opened: Catalogue) -> dict[str, dict[str, Any]]:
        """The records in a catalogue, which is one of this solution."""
        found = {
            name: parse_record(stored, f"{opened.path}, {name}")
            for name, stored in opened.records().items()
        }
        if sorted(found) != list(records_of(kind)):
            raise SolutionDamaged(f"{opened.path} lacks records")
        facts = dict(found[SOLUTION_NAME if kind == SETS else OBJECTIVE])
        identity = facts.pop("identity", None)
        own = self.identity()["identity"] if kind == SETS else self._values_identity(facts)
        if identity != own:
            raise SolutionDamaged(f"{opened.path} is of another solution")
        return found


def records_of(kind: str) -> tuple[str, ...]:
    """Names of the records that the catalogue of a kind has, in order."""
    return (SOLUTION_NAME,) if kind == SETS else (OBJECTIVE, RESULT, SOLUTION_NAME)


def _sha256(stored: bytes) -> str:
    return hashlib.sha256(stored).hexdigest()
