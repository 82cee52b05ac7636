"""Damage to a stored solution, and faults of the system calls that write one."""

from __future__ import annotations

import builtins
import io
import os
import threading
from pathlib import Path

import google_crc32c
import numpy as np

from solver2048.files import Directory

INDEX_ENTRY = np.dtype([("offset", "<u8"), ("length", "<u8")])


def solution_files(path: Path) -> list[Path]:
    """Every file of a solution proper, in order."""
    files = [path / "solution.json", *path.glob("sets/**/*"), *path.glob("values/**/*")]
    return sorted(file for file in files if file.is_file())


def flip_bit(path: Path, rng: np.random.Generator) -> int:
    """Flip one bit; returns the number of the byte."""
    data = bytearray(path.read_bytes())
    position = int(rng.integers(len(data)))
    data[position] ^= 1 << int(rng.integers(8))
    path.write_bytes(data)
    return position


def swap_files(a: Path, b: Path) -> None:
    data = a.read_bytes()
    a.write_bytes(b.read_bytes())
    b.write_bytes(data)


def swap_chunks(shard: Path, per_shard: int, rng: np.random.Generator) -> None:
    """Exchange two chunks of a shard; its index is that of a sound shard."""
    data = shard.read_bytes()
    entries = np.frombuffer(data[-16 * per_shard - 4 : -4], dtype=INDEX_ENTRY).copy()
    there = np.flatnonzero(entries["offset"] != 2**64 - 1)
    chunks = {
        i: data[e["offset"] : e["offset"] + e["length"]] for i, e in enumerate(entries[there])
    }
    i, j = rng.choice(there, 2, replace=False)
    chunks[i], chunks[j] = chunks[j], chunks[i]
    entries["length"][there] = [len(chunks[n]) for n in there]
    entries["offset"][there] = np.cumsum([0, *(len(chunks[n]) for n in there[:-1])])
    index = entries.tobytes()
    body = b"".join(chunks[n] for n in there)
    shard.write_bytes(body + index + google_crc32c.value(index).to_bytes(4, "little"))


class Reads:
    """Which bytes of which files are read by ranges, while it is patched in."""

    def __init__(self, monkeypatch) -> None:
        self.ranges: list[tuple[Path, int, int]] = []
        read_ranges = Directory.read_ranges

        def recorded(directory, name, size, ranges):
            self.ranges += [(directory._path / name, start, stop) for start, stop in ranges]
            return read_ranges(directory, name, size, ranges)

        monkeypatch.setattr(Directory, "read_ranges", recorded)

    def take(self) -> list[tuple[Path, int, int]]:
        taken, self.ranges = self.ranges, []
        return taken


class Faults:
    """Counts what writes to the disk, and lets the n-th of those calls fail.

    A write that fails has written half of its data.
    """

    def __init__(self, monkeypatch) -> None:
        self._lock = threading.Lock()
        self.start(-1, 0)
        for name in ("fsync", "rename", "replace"):
            monkeypatch.setattr(os, name, self._failing(getattr(os, name)))
        opened = builtins.open

        def open_failing(file, mode="r", *arguments, **options):
            found = opened(file, mode, *arguments, **options)
            return found if set(mode) <= set("rbt") else _FailingFile(found, self)

        monkeypatch.setattr(builtins, "open", open_failing)
        monkeypatch.setattr(io, "open", open_failing)

    def start(self, number: int, error: int) -> None:
        """Count from 0 again; the call of this number fails with this error."""
        self.count = 0
        self._number, self._error = number, error

    def is_hit(self) -> bool:
        with self._lock:
            self.count += 1
            return self.count == self._number + 1

    def failure(self) -> OSError:
        return OSError(self._error, os.strerror(self._error))

    def _failing(self, call):
        def called(*arguments, **options):
            if self.is_hit():
                raise self.failure()
            return call(*arguments, **options)

        return called


class _FailingFile:
    def __init__(self, file, faults: Faults) -> None:
        self._file, self._faults = file, faults

    def write(self, data):
        if self._faults.is_hit():
            self._file.write(data[: len(data) // 2])
            self._file.flush()
            raise self._faults.failure()
        return self._file.write(data)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()

    def __getattr__(self, name):
        return getattr(self._file, name)
