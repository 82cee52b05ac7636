"""The one module that knows files, Zarr and checksums, and nothing of the game.

A solution is a directory::

    solution.json            what was solved: shape, spawn probability, format
    sets/BAND/               Zarr v3 group: `states`, `afterstates`, and manifest.json
    values/OBJECTIVE/        objective.json, result.json at the end
    values/OBJECTIVE/BAND/   Zarr v3 group: `afterstates`, and manifest.json
    lock, run.json, scratch/ not part of the solution: they may differ from run to run

A band is written into scratch, flushed to the disk, and renamed into place: it is there whole or
not at all. Its manifest lists every file with size and SHA-256; every chunk carries a crc32c.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .errors import NoSolution, NoSpace, SolutionDamaged
from .layer import Band
from .stored_array import ChunkCache, Items, StoredArray

FORMAT = "solver2048 solution"
FORMAT_VERSION = 1

CHUNK_ITEMS = {"words": 1 << 15, "values": 1 << 16}
SHARD_ITEMS = {"words": 1 << 21, "values": 1 << 24}
CACHE_BYTES = 256 << 20
SMALL_FILE_BYTES = 1 << 20
"""Files up to this size are compared with their digest when they are opened."""
SPARE_BYTES = 64 << 20
"""Free disk space that a band must leave over."""


def _dump_json(data: dict[str, Any]) -> bytes:
    """A record as it is stored: sorted keys, and a checksum of all the rest."""

    def dump(record: dict[str, Any]) -> bytes:
        return (json.dumps(record, indent=1, sort_keys=True) + "\n").encode()

    return dump({**data, "sha256": hashlib.sha256(dump(data)).hexdigest()})


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_file(path: Path, data: bytes) -> None:
    """Write a file so that it is there whole or not at all, also after a power failure."""
    temporary = path.with_name(f".{path.name}.new")
    with open(temporary, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    _sync_directory(path.parent)


def _file_digest(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _seal(directory: Path) -> dict[str, dict[str, Any]]:
    """Flush every file below a directory to the disk; returns size and digest of each."""
    files = {}
    for path in sorted(p for p in directory.rglob("*") if p.is_file()):
        with open(path, "rb") as file:
            os.fsync(file.fileno())
        files[path.relative_to(directory).as_posix()] = {
            "size": path.stat().st_size,
            "sha256": _file_digest(path),
        }
    for path in sorted(p for p in directory.rglob("*") if p.is_dir()):
        _sync_directory(path)
    return files


def _replace_directory(new: Path, target: Path, old: Path) -> None:
    """Put a directory in the place of another, which is whole in one place or the other."""
    shutil.rmtree(old, ignore_errors=True)
    if target.exists():
        os.rename(target, old)
    os.rename(new, target)
    _sync_directory(target.parent)
    shutil.rmtree(old, ignore_errors=True)


def free_bytes(path: str | os.PathLike[str]) -> int:
    """Free disk space where a directory is or would be made."""
    place = Path(path).absolute()
    while not place.exists():
        place = place.parent
    return shutil.disk_usage(place).free


class ArrayToWrite(NamedTuple):
    """A one-dimensional array as `Store.write_band` takes it.

    role : "words" or "values", which decides chunks and codecs
    missing : what no item equals, None if there is nothing of the kind
    """

    role: str
    items: Items
    missing: float | int | None = None


class Store:
    """A solution's directory."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.cache = ChunkCache(CACHE_BYTES)

    # --- identity -----------------------------------------------------------------------------

    def exists(self) -> bool:
        return (self.path / "solution.json").is_file()

    def identity(self) -> dict[str, Any]:
        """What is solved here. Raises NoSolution, SolutionDamaged."""
        if not self.exists():
            raise NoSolution(f"no solution at {self.path}")
        path = self.path / "solution.json"
        if FORMAT.encode() not in path.read_bytes():
            raise NoSolution(f"{self.path} holds something else than a {FORMAT}")
        identity = self._read_json(path)
        if int(identity.get("version", 0)) > FORMAT_VERSION:
            raise NoSolution(
                f"{self.path} has format {identity['version']}; "
                f"this program reads up to {FORMAT_VERSION}"
            )
        return identity

    def create(self, identity: dict[str, Any]) -> None:
        """Make the directory a solution of this identity, or make sure that it is one."""
        wanted = {"format": FORMAT, "version": FORMAT_VERSION, **identity}
        if self.exists():
            found = self.identity()
            for name, value in wanted.items():
                if found.get(name) != value:
                    raise NoSolution(
                        f"{self.path} is solved with {name} {found.get(name)}; "
                        f"you asked for {value}"
                    )
            return
        self.write_record("solution.json", wanted)

    def clean(self) -> None:
        """Remove what a killed run left behind; the lock is held."""
        shutil.rmtree(self._scratch / "new", ignore_errors=True)

    # --- bands --------------------------------------------------------------------------------

    @property
    def _scratch(self) -> Path:
        return self.path / "scratch"

    def manifest(self, kind: str, band: Band) -> dict[str, Any] | None:
        """The manifest of a stored band, None if the band is not there."""
        path = self.path / kind / band.name / "manifest.json"
        if not path.is_file():
            return None
        manifest = self._read_json(path)
        if manifest.get("kind") != kind or manifest.get("band") != [band.first, band.last]:
            raise SolutionDamaged(f"{path} is the manifest of another band")
        return manifest

    def manifest_digest(self, kind: str, band: Band) -> str:
        """SHA-256 of a stored band's manifest, which stands for all of the band."""
        path = self.path / kind / band.name / "manifest.json"
        try:
            return _file_digest(path)
        except OSError as error:
            raise SolutionDamaged(f"{path}: {error.strerror}") from None

    def write_band(
        self,
        kind: str,
        band: Band,
        arrays: dict[str, ArrayToWrite],
        record: dict[str, Any],
    ) -> None:
        """Commit a band: its arrays, and its record, a part of the manifest."""
        new = self._scratch / "new" / band.name
        target = self.path / kind / band.name
        try:
            shutil.rmtree(new, ignore_errors=True)
            new.parent.mkdir(parents=True, exist_ok=True)
            target.parent.mkdir(parents=True, exist_ok=True)
            self._check_space(sum(array.items.nbytes for array in arrays.values()), band)
            _write_group(new, arrays)
            manifest = {"kind": kind, "band": [band.first, band.last], **record}
            manifest["files"] = _seal(new)
            _write_file(new / "manifest.json", _dump_json(manifest))
            _replace_directory(new, target, self._scratch / "new" / "old")
        except OSError as error:
            shutil.rmtree(new, ignore_errors=True)
            raise NoSpace(
                f"ages {band.first} to {band.last} could not be written to {self.path}: "
                f"{error.strerror or error}; all bands before are safe"
            ) from error

    def _check_space(self, num_bytes: int, band: Band) -> None:
        free = free_bytes(self.path)
        if free < num_bytes + SPARE_BYTES:
            raise NoSpace(
                f"ages {band.first} to {band.last} may need {num_bytes / 1e6:,.1f} MB, and "
                f"{SPARE_BYTES / 1e6:.0f} MB to spare; {free / 1e6:,.1f} MB are free at "
                f"{self.path}; all bands before are safe"
            )

    def open_array(self, kind: str, band: Band, name: str,
                   missing: float | int | None = None) -> StoredArray:  # fmt: skip
        """A stored array for reading in parts. Raises SolutionDamaged if a file is not there."""
        import zarr

        manifest = self.manifest(kind, band)
        if manifest is None:
            raise SolutionDamaged(f"{self.path / kind / band.name}: the band is missing")
        directory = self.path / kind / band.name
        for file, facts in manifest["files"].items():
            if file.split("/")[0] == name:
                self._check_size(directory / file, facts)
                # Chunks have checksums of their own, but a valid one may be of another solution.
                if file.endswith("zarr.json") or facts["size"] <= SMALL_FILE_BYTES:
                    self._check_digest(directory / file, facts)
        try:
            array = zarr.open_array(str(directory / name), mode="r")
        except Exception as error:
            raise SolutionDamaged(f"{directory / name}: {error}") from error
        return StoredArray(array, f"{kind}/{band.name}/{name}", missing, self.cache)

    def _check_size(self, path: Path, facts: dict[str, Any]) -> None:
        try:
            size = path.stat().st_size
        except OSError:
            raise SolutionDamaged(f"{path} is missing") from None
        if size != facts["size"]:
            raise SolutionDamaged(f"{path} has {size} bytes, expected {facts['size']}")

    def _check_digest(self, path: Path, facts: dict[str, Any]) -> None:
        try:
            digest = _file_digest(path)
        except OSError as error:
            raise SolutionDamaged(f"{path}: {error.strerror}") from None
        if digest != facts["sha256"]:
            raise SolutionDamaged(
                f"{path}: sha256 {digest[:16]}..., expected {facts['sha256'][:16]}..."
            )

    def check_band(self, kind: str, band: Band) -> int:
        """Compare every file of a band with its manifest; returns the number of bytes read."""
        manifest = self.manifest(kind, band)
        directory = self.path / kind / band.name
        if manifest is None:
            raise SolutionDamaged(f"{directory}: the band is missing")
        for file, facts in manifest["files"].items():
            self._check_size(directory / file, facts)
            self._check_digest(directory / file, facts)
        present = {
            path.relative_to(directory).as_posix()
            for path in directory.rglob("*")
            if path.is_file()
        }
        for extra in present - set(manifest["files"]) - {"manifest.json"}:
            raise SolutionDamaged(f"{directory / extra} does not belong there")
        return sum(facts["size"] for facts in manifest["files"].values())

    def checksums(self) -> Iterator[tuple[str, str]]:
        """(SHA-256, path below the solution) of every file of the solution, none read twice.

        Files of bands by their manifests, everything else as it is on the disk.
        """
        others = ["solution.json", *self.record_names("values/*/*.json")]
        manifests = self.record_names("sets/*/manifest.json")
        manifests += self.record_names("values/*/*/manifest.json")
        for name in manifests:
            for file, facts in sorted(self._read_json(self.path / name)["files"].items()):
                yield str(facts["sha256"]), f"{name.removesuffix('manifest.json')}{file}"
        for name in others + manifests:
            yield _file_digest(self.path / name), name

    def stored_bytes(self, kind: str, band: Band) -> dict[str, int]:
        """Bytes on disk of each array of a band."""
        manifest = self.manifest(kind, band)
        sizes: dict[str, int] = {}
        for file, facts in (manifest["files"] if manifest else {}).items():
            array = file.split("/")[0]
            sizes[array] = sizes.get(array, 0) + int(facts["size"])
        return sizes

    # --- small records ------------------------------------------------------------------------

    def read_record(self, name: str) -> dict[str, Any] | None:
        """A JSON record, None if it is not there."""
        path = self.path / name
        return self._read_json(path) if path.is_file() else None

    def read_run(self) -> dict[str, Any]:
        """Times of the runs so far: no part of the solution, so nothing depends on them."""
        try:
            return self.read_record("run.json") or {}
        except SolutionDamaged:
            return {}

    def write_record(self, name: str, record: dict[str, Any]) -> None:
        path = self.path / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            _write_file(path, _dump_json(record))
        except OSError as error:
            raise NoSpace(f"{path} could not be written: {error.strerror}") from error

    def record_names(self, pattern: str) -> list[str]:
        return sorted(p.relative_to(self.path).as_posix() for p in self.path.glob(pattern))

    @staticmethod
    def _read_json(path: Path) -> dict[str, Any]:
        try:
            stored = path.read_bytes()
            data = json.loads(stored)
        except (ValueError, OSError, RecursionError) as error:
            raise SolutionDamaged(f"{path}: {error}") from None
        if not isinstance(data, dict):
            raise SolutionDamaged(f"{path} is no JSON object")
        data.pop("sha256", None)
        if _dump_json(data) != stored:
            raise SolutionDamaged(f"{path} is not as it was written: its checksum differs")
        return data

    # --- checkpoints --------------------------------------------------------------------------

    def write_checkpoint(
        self, name: str, arrays: dict[int, NDArray[np.float64]], identity: dict[str, Any]
    ) -> None:
        """Replace the checkpoint of this name; arrays by age, for a pass of this identity."""
        target = self._scratch / name
        new = self._scratch / f"{name}.new"
        try:
            shutil.rmtree(new, ignore_errors=True)
            new.mkdir(parents=True)
            for age, values in arrays.items():
                np.save(new / f"{age}.npy", values)
            _write_file(new / "manifest.json", _dump_json({**identity, "files": _seal(new)}))
            _replace_directory(new, target, self._scratch / f"{name}.old")
        except OSError as error:
            shutil.rmtree(new, ignore_errors=True)
            raise NoSpace(
                f"no checkpoint: {error.strerror or error}; all bands before are safe"
            ) from error

    def read_checkpoint(
        self, name: str, identity: dict[str, Any]
    ) -> dict[int, NDArray[np.float64]]:
        """The checkpoint of this name, empty if there is none, or a damaged or another one."""
        for directory in self._checkpoint_places(name):
            try:
                manifest = self._read_json(directory / "manifest.json")
                files = manifest.pop("files")
                if manifest == identity and all(
                    _file_digest(directory / f) == x["sha256"] for f, x in files.items()
                ):
                    return {int(Path(file).stem): np.load(directory / file) for file in files}
            except (SolutionDamaged, OSError, ValueError, KeyError):
                continue
        return {}

    def drop_checkpoint(self, name: str) -> None:
        for directory in self._checkpoint_places(name):
            shutil.rmtree(directory, ignore_errors=True)

    def _checkpoint_places(self, name: str) -> list[Path]:
        """Where a checkpoint can be: its place, or on the way there when a run was killed."""
        return [self._scratch / f"{name}{suffix}" for suffix in ("", ".new", ".old")]


def _write_group(directory: Path, arrays: dict[str, ArrayToWrite]) -> None:
    """Write a Zarr v3 group of one-dimensional arrays, a crc32c in every chunk."""
    import zarr
    from zarr.codecs import BloscCodec, Crc32cCodec, ZstdCodec

    group = zarr.create_group(str(directory))
    for name, (role, items, missing) in arrays.items():
        # Zstd alone serves words of bitmaps; numbers of a kind gain from shuffled bits. Measured on
        # values of 3x3: level 1 takes 23 ns and 25.3 bits a value, level 3 62 ns and 24.9 bits.
        compressor: Any = ZstdCodec(level=3)
        if role == "values":
            compressor = BloscCodec(
                typesize=items.itemsize, cname="zstd", clevel=1, shuffle="bitshuffle"
            )
        chunk = CHUNK_ITEMS[role]
        whole_chunks = max(1, -(-len(items) // chunk))
        shard = min(SHARD_ITEMS[role], whole_chunks * chunk)
        array = group.create_array(
            name,
            shape=items.shape,
            dtype=items.dtype,
            chunks=(chunk,),
            shards=(shard,) if shard > chunk else None,
            compressors=[compressor, Crc32cCodec()],
            fill_value=0 if missing is None else missing,
            # A chunk equal to the fill value is written all the same: absent means lost.
            config={"write_empty_chunks": True},
        )
        if len(items):
            array[:] = items
