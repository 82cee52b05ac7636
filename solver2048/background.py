"""What runs beside a pass: its clock, and reading and writing bands while another is computed."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

from .errors import SolverError
from .progress import peak_memory_bytes
from .records import Records


class RunTimer:
    """Adds the time since its last call to an entry of run.json, no part of the solution."""

    def __init__(self, store: Records, name: str) -> None:
        self._store, self._name = store, name
        self._last = time.monotonic()

    def __enter__(self) -> RunTimer:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(SolverError):  # times are no reason to hide why a run ended
            self.save()

    def save(self) -> None:
        """Add the time up to now. Raises NoSpace."""
        now = time.monotonic()
        record = self._store.read_run()
        record[self._name] = record.get(self._name, 0.0) + now - self._last
        record["peak_memory_bytes"] = max(record.get("peak_memory_bytes", 0), peak_memory_bytes())
        self._store.write_record("run.json", record)
        self._last = now


Key = TypeVar("Key")
Item = TypeVar("Item")


class ReadAhead(Generic[Key, Item]):
    """Reads one thing after another, the next beside the computing where it `overlaps`."""

    def __init__(self, read: Callable[[Key], Item], keys: Iterable[Key], *, overlaps: bool) -> None:
        self._read, self._keys, self._overlaps = read, deque(keys), overlaps
        self._pool = ThreadPoolExecutor(1)
        self._pending: Future[Item] | None = None

    def __enter__(self) -> ReadAhead[Key, Item]:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()

    def next(self) -> Item:
        """The next of them, which is not held on to here."""
        pending, self._pending = self._pending or self._submit(), None
        item = pending.result()
        if self._overlaps and self._keys:
            self._pending = self._submit()
        return item

    def _submit(self) -> Future[Item]:
        return self._pool.submit(self._read, self._keys.popleft())


class BackgroundWriter:
    """Runs one write at a time beside the computing; an error shows at the next call."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1)
        self._pending: Future[None] | None = None

    def __enter__(self) -> BackgroundWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            self.finish()
        except Exception:
            if kind is None:
                raise
        finally:
            self._pool.shutdown()

    def submit(self, write: Callable[[], None]) -> None:
        """Begin a write once the one before is done, whose error is raised here."""
        self.finish()
        self._pending = self._pool.submit(write)

    def finish(self) -> None:
        """Wait for the write that runs, whose error is raised here."""
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.result()
