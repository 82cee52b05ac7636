"""Files that are there whole or not at all, also after a power failure; records with a checksum."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO

from .errors import SolutionDamaged
from .location import Location


def dump_plain(record: dict[str, Any]) -> bytes:
    """A record as text: keys sorted, one blank of indentation, a new line at the end."""
    return (json.dumps(record, indent=1, sort_keys=True) + "\n").encode()


def digest_of(record: dict[str, Any]) -> str:
    """SHA-256 of a record as text."""
    return hashlib.sha256(dump_plain(record)).hexdigest()


def dump_record(record: dict[str, Any]) -> bytes:
    """A record as it is stored: with a checksum of all the rest."""
    return dump_plain({**record, "sha256": digest_of(record)})


def parse_record(stored: bytes, where: object) -> dict[str, Any]:
    """The record stored, without its checksum; `where` is for messages. Raises SolutionDamaged."""
    try:
        record = json.loads(stored)
    except (ValueError, RecursionError) as error:
        raise SolutionDamaged(f"{where}: {error}") from None
    if not isinstance(record, dict):
        raise SolutionDamaged(f"{where} is no JSON object")
    record.pop("sha256", None)
    if dump_record(record) != stored:
        raise SolutionDamaged(f"{where} is not as it was written: its checksum differs")
    return record


def _check_regular(path: Path) -> None:
    # To open a pipe would wait for who writes into it.
    if path.exists() and not path.is_file():
        raise SolutionDamaged(f"{path} is no file")


def read_file(path: Path) -> bytes:
    """The bytes of a file that has to be there. Raises SolutionDamaged."""
    with _reading(path) as file:
        return file.read()


class Directory(Location):
    """The files below a directory; none stays open."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __str__(self) -> str:
        return str(self._path)

    def shown(self, name: str) -> str:
        return str(self._path / name)

    def read(self, name: str) -> bytes | None:
        path = self._path / name
        return read_file(path) if path.is_file() else None

    def read_tail(self, name: str, num_bytes: int) -> tuple[bytes, int] | None:
        path = self._path / name
        if not path.is_file():
            return None
        with _reading(path) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - num_bytes, 0))
            return file.read(), size

    def read_ranges(self, name: str, size: int, ranges: list[tuple[int, int]]) -> list[bytes]:
        path = self._path / name
        check_size(path, {"size": size})
        with _reading(path) as file:
            return [_read_range(file, *part) for part in ranges]


def _read_range(file: BufferedReader, start: int, stop: int) -> bytes:
    file.seek(start)
    return file.read(stop - start)


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[BufferedReader]:
    """A file that has to be there, opened. Raises SolutionDamaged."""
    _check_regular(path)
    try:
        with open(path, "rb") as file:
            yield file
    except FileNotFoundError:
        raise SolutionDamaged(f"{path} is missing") from None
    except OSError as error:
        raise SolutionDamaged(f"{path}: {error.strerror}") from None


def file_digest(path: Path) -> str:
    """SHA-256 of a file that has to be there. Raises SolutionDamaged."""
    with _reading(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_size(path: Path, facts: dict[str, Any]) -> None:
    """Raise SolutionDamaged unless the file is there with the size that a manifest gives it."""
    try:
        size = path.stat().st_size
    except OSError:
        raise SolutionDamaged(f"{path} is missing") from None
    if size != facts["size"]:
        raise SolutionDamaged(f"{path} has {size} bytes, expected {facts['size']}")


def check_digest(path: Path | str, facts: dict[str, Any], digest: str | None = None) -> None:
    """Raise SolutionDamaged unless the file, or `digest` of it, is what a manifest says."""
    digest = digest or file_digest(Path(path))
    if digest != facts["sha256"]:
        raise SolutionDamaged(
            f"{path}: sha256 {digest[:16]}..., expected {facts['sha256'][:16]}..."
        )


def sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_directory(path: Path) -> None:
    """Make a directory, and those above it, so that they outlast a power failure."""
    if not path.is_dir():
        make_directory(path.parent)
        path.mkdir(exist_ok=True)
        sync_directory(path.parent)


def write_file(path: Path, data: bytes, scratch: Path) -> None:
    """Write a file by way of a directory for what is not finished."""
    make_directory(scratch)
    temporary = scratch / f"{path.name}.new"
    with open(temporary, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    move(temporary, path)


def move(source: Path, target: Path) -> None:
    """Give a file or directory, already flushed to the disk, its name."""
    make_directory(target.parent)
    os.replace(source, target)
    sync_directory(target.parent)


@contextlib.contextmanager
def written_aside(path: Path) -> Iterator[BinaryIO]:
    """A file that gets its name once it is whole; one that has it stays until then.

    What is no regular file, such as a pipe, is written to as it is.
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        with open(path, "wb") as stream:
            yield stream
        return
    temporary = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        with open(temporary, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def write_text(path: Path, text: str) -> None:
    """Write a text, so that a file that was there stays until it is whole."""
    with written_aside(path) as file:
        file.write(text.encode())


def seal(directory: Path) -> dict[str, dict[str, Any]]:
    """Flush every file below a directory to the disk; returns size and digest of each."""
    files = {}
    for path in sorted(p for p in directory.rglob("*") if p.is_file()):
        with open(path, "rb") as file:
            os.fsync(file.fileno())
        files[path.relative_to(directory).as_posix()] = {
            "size": path.stat().st_size,
            "sha256": file_digest(path),
        }
    for path in sorted(p for p in directory.rglob("*") if p.is_dir()):
        sync_directory(path)
    return files


def replace_directory(new: Path, target: Path, old: Path) -> None:
    """Put a directory in the place of another, which is whole in one place or the other."""
    shutil.rmtree(old, ignore_errors=True)
    if target.exists():
        os.rename(target, old)
    move(new, target)
    shutil.rmtree(old, ignore_errors=True)


def remove(directory: Path) -> None:
    """Remove a directory of scratch, as far as that goes."""
    shutil.rmtree(directory, ignore_errors=True)


def free_bytes(path: str | os.PathLike[str]) -> int:
    """Free disk space where a directory is or would be made."""
    place = Path(path).absolute()
    while not place.exists():
        place = place.parent
    return shutil.disk_usage(place).free


def directory_size(directory: Path) -> int:
    """Bytes of all files below a directory, which others may write to meanwhile."""
    size = 0
    # What is being written may be renamed meanwhile: a walk passes over what is gone.
    for place, _, names in os.walk(directory):
        for name in names:
            with contextlib.suppress(OSError):
                size += os.lstat(os.path.join(place, name)).st_size
    return size


def format_size(num_bytes: float) -> str:
    """A number of bytes for people, in powers of 1000."""
    for unit in ("B", "kB", "MB", "GB"):
        if num_bytes < 1000:
            return f"{num_bytes:.0f} {unit}" if unit == "B" else f"{num_bytes:.1f} {unit}"
        num_bytes /= 1000
    return f"{num_bytes:.2f} TB"
