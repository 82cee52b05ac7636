"""Checkpoints of a pass: arrays by age in scratch, no part of the solution."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import NoSpace, SolutionDamaged
from .files import (
    dump_record,
    file_digest,
    parse_record,
    remove,
    replace_directory,
    seal,
    write_file,
)

MANIFEST = "manifest.json"


class Checkpoint:
    """The checkpoint of a name, for a pass of an identity; another pass's is no checkpoint."""

    def __init__(self, scratch: Path, name: str, identity: dict[str, Any]) -> None:
        # In its place, or on the way there when a run was killed.
        self._places = [scratch / f"{name}{suffix}" for suffix in ("", ".new", ".old")]
        self._identity = identity

    def write(self, arrays: Mapping[int, NDArray[Any]]) -> None:
        """Replace it. Raises NoSpace."""
        target, new, old = self._places
        try:
            remove(new)
            new.mkdir(parents=True)
            for age, values in arrays.items():
                np.save(new / f"{age}.npy", values)
            record = {**self._identity, "files": seal(new)}
            write_file(new / MANIFEST, dump_record(record), new.parent)
            replace_directory(new, target, old)
        except OSError as error:
            remove(new)
            raise NoSpace(
                f"no checkpoint: {error.strerror or error}; all bands before are safe"
            ) from error

    def read(self) -> dict[int, NDArray[Any]]:
        """Its arrays, empty if there is none, or a damaged or another one."""
        for directory in self._places:
            try:
                path = directory / MANIFEST
                record = parse_record(path.read_bytes(), path)
                files = record.pop("files")
                if record == self._identity and all(
                    file_digest(directory / f) == x["sha256"] for f, x in files.items()
                ):
                    return {int(Path(file).stem): np.load(directory / file) for file in files}
            except (SolutionDamaged, OSError, ValueError, KeyError):
                continue
        return {}

    def drop(self) -> None:
        """Remove it, if it is there."""
        for directory in self._places:
            remove(directory)
