"""A solution's directory: bands of arrays, committed whole or not at all; nothing of the game.

A solution is a directory::

    solution.json            what was solved: shape, rules, spawn probability, format, identity
    sets/BAND/               Zarr v3 group: `states`, `afterstates`; chunks and manifest.json
    values/OBJECTIVE/        objective.json, result.json at the end
    values/OBJECTIVE/BAND/   Zarr v3 group: `afterstates`; chunks and manifest.json
    counts/BAND.json, values/OBJECTIVE/BAND.json   where no sets, or no values, are kept
    policy/OBJECTIVE/        of a policy table: as values, with arrays `codes` and `weights`
    */catalogue.zip          of a finished kind (sets, or an objective's values)
    lock, run.json, progress.jsonl, scratch/, quarantine/   not part of the solution

A band is written into scratch, flushed to the disk, and renamed into place; once it is whole it is
never written again. Its manifest lists every file with size and SHA-256 and is what says that the
band is done; its chunk tables hold the place and crc32c of every chunk, against which every read
is compared. Until a kind is finished the manifests are the only index; then its catalogue is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

from . import catalogue, chunk_table
from .band_reader import MANIFEST, ZARR_METADATA, BandReader, records_of
from .chunk_table import dump_tables
from .errors import NoSpace, SolutionDamaged
from .files import (
    check_digest,
    check_size,
    dump_record,
    file_digest,
    format_size,
    free_bytes,
    make_directory,
    move,
    parse_record,
    read_file,
    remove,
    replace_directory,
    seal,
    write_file,
)
from .layer import Band
from .lock import SOLUTION_NAME
from .records import SETS
from .stored_array import ArrayToWrite

SPARE_BYTES = 64 << 20
"""Free disk space that a band must leave over."""


class Store(BandReader):
    """A solution's directory."""

    # --- bands: what is there -----------------------------------------------------------------

    def is_done(self, kind: str, band: Band) -> bool:
        """Whether a band is stored, and not cut short; its manifest says so."""
        manifest = self.stored_manifest(kind, band)
        return manifest is not None and bool(manifest.get("is_complete", True))

    def stored_bytes(self, kind: str, band: Band) -> dict[str, int]:
        """Bytes on disk of each array of a band."""
        manifest = self.manifest(kind, band)
        sizes: dict[str, int] = {}
        for file, facts in (manifest["files"] if manifest else {}).items():
            array = file.split("/")[0]
            sizes[array] = sizes.get(array, 0) + int(facts["size"])
        return sizes

    # --- bands: writing -----------------------------------------------------------------------

    def write_band(
        self,
        kind: str,
        band: Band,
        arrays: dict[str, ArrayToWrite],
        record: dict[str, Any],
    ) -> None:
        """Commit a band: its arrays, and its record, a part of the manifest.

        A band that is done is never written again. What else lies in its place, other than one
        that was cut short, goes into quarantine. Raises NoSpace.
        """
        from .zarr_arrays import write_group

        if self.is_done(kind, band):
            raise ValueError(f"{kind}/{band.name} is done")
        new = self._new / band.name
        target = self.path / kind / band.name
        try:
            remove(new)
            make_directory(new.parent)
            self.check_space(kind, band, sum(array.items.nbytes for array in arrays.values()))
            tables, places = dump_tables(write_group(new, arrays))
            (new / chunk_table.NAME).write_bytes(tables)
            manifest = {
                "kind": kind,
                "band": [band.first, band.last],
                "identity": self.kind_identity(kind),
                "chunks": places,
                "files": seal(new),
                **record,
            }
            write_file(new / MANIFEST, dump_record(manifest), self._new)
            if target.exists() and not (target / MANIFEST).exists():
                self.quarantine(f"{kind}/{band.name}")
            replace_directory(new, target, self._new / "old")
        except OSError as error:
            remove(new)
            raise NoSpace(
                f"ages {band.first} to {band.last} could not be written to {self.path}: "
                f"{error.strerror or error}; {_safe(kind, band)}"
            ) from error

    def check_space(self, kind: str, band: Band, num_bytes: float) -> None:
        """Raise NoSpace unless a band of at most so many bytes fits, with some to spare."""
        free = free_bytes(self.path)
        if free < num_bytes + SPARE_BYTES:
            raise NoSpace(
                f"ages {band.first} to {band.last} need up to {format_size(num_bytes)} and "
                f"{format_size(SPARE_BYTES)} to spare, {format_size(free)} are free at "
                f"{self.path}; {_safe(kind, band)}"
            )

    # --- bands: reading -----------------------------------------------------------------------

    def check_files(self, kind: str, band: Band) -> None:
        """Make sure that every file of a band is there, with its size."""
        manifest = self._needed_manifest(kind, band)
        directory = self.path / kind / band.name
        for file, facts in manifest["files"].items():
            check_size(directory / file, facts)

    def stray_files(self, kind: str, band: Band) -> list[str]:
        """Paths, below the solution, of files in a band's directory that its manifest lacks."""
        manifest = self._needed_manifest(kind, band)
        ours = {f"{kind}/{band.name}/{file}" for file in [*manifest["files"], MANIFEST]}
        files = self.record_names(f"{kind}/{band.name}/**/*")
        return [name for name in files if name not in ours and not (self.path / name).is_dir()]

    def check_band(self, kind: str, band: Band) -> None:
        """Compare every file of a band with its manifest. Raises SolutionDamaged."""
        self.check_files(kind, band)
        for file, facts in self._needed_manifest(kind, band)["files"].items():
            check_digest(self.path / kind / band.name / file, facts)

    # --- catalogues ---------------------------------------------------------------------------

    def finish_kind(self, kind: str, bands: Iterable[Band]) -> bool:
        """Write the catalogue of a kind whose bands, all of them given, are done.

        Returns False if it is there already. Raises NoSpace.
        """
        if (self.path / kind / catalogue.NAME).is_file():
            return False
        new = self._new / catalogue.NAME
        try:
            make_directory(self._new)
            new.unlink(missing_ok=True)
            catalogue.write_catalogue(new, self.catalogue_parts(kind, bands))
            move(new, self.path / kind / catalogue.NAME)
        except OSError as error:
            raise NoSpace(
                f"the catalogue of {kind} could not be written to {self.path}: "
                f"{error.strerror or error}; all bands are safe"
            ) from error
        return True

    def catalogue_parts(self, kind: str, bands: Iterable[Band]) -> Iterator[tuple[str, bytes]]:
        """Names and bytes of what a catalogue holds, by name, as they lie on the disk."""
        for band in bands:
            manifest = self.stored_manifest(kind, band)
            if manifest is None:
                raise SolutionDamaged(f"{self.path / kind / band.name}: the band is missing")
            for file in sorted({MANIFEST, *manifest["files"]}):
                if file.endswith((ZARR_METADATA, chunk_table.NAME, MANIFEST)):
                    path = self.path / kind / band.name / file
                    stored = read_file(path)
                    if file != MANIFEST:
                        digest = hashlib.sha256(stored).hexdigest()
                        check_digest(path, manifest["files"][file], digest)
                    yield f"{band.name}/{file}", stored
        for name in records_of(kind):
            path = self.path / name if name == SOLUTION_NAME else self.path / kind / name
            stored = read_file(path)
            parse_record(stored, path)
            yield name, stored

    def objective_kinds(self) -> list[str]:
        """Objectives' kinds of which there is something; an empty directory is a run cut off."""
        return sorted({name.rsplit("/", 1)[0] for name in self.objective_names("*")})

    def catalogue_names(self) -> list[str]:
        """Paths of the catalogues that are there, below the solution."""
        return [
            *self.record_names(f"{SETS}/{catalogue.NAME}"),
            *self.objective_names(catalogue.NAME),
        ]

    # --- all files ----------------------------------------------------------------------------

    def checksums(self) -> Iterator[tuple[str, str]]:
        """(SHA-256, path below the solution) of every file of the solution, none read twice.

        Files of bands by their manifests, everything else as it is on the disk.
        """
        manifests = self.record_names(f"{SETS}/*/{MANIFEST}")
        manifests += self.objective_names(f"*/{MANIFEST}")
        for name in manifests:
            files = (self.read_record(name) or {})["files"]
            for file, facts in sorted(files.items()):
                yield str(facts["sha256"]), f"{name.removesuffix(MANIFEST)}{file}"
        others = [SOLUTION_NAME, *self.objective_names("*.json")]
        others += self.record_names("counts/*.json")
        others += self.catalogue_names()
        for name in others + manifests:
            yield file_digest(self.path / name), name


def _safe(kind: str, band: Band) -> str:
    """What is not lost when a band cannot be written."""
    if kind == SETS:
        return f"ages up to {band.first - 2} are safe"
    if kind.startswith("values/"):
        return f"ages from {band.last + 2} are safe"
    return "all bands before are safe"
