"""What runs beside a pass: its clock, and the writing of one band while the next is computed."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

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
        now = time.monotonic()
        record = self._store.read_run()
        record[self._name] = record.get(self._name, 0.0) + now - self._last
        record["peak_memory_bytes"] = max(record.get("peak_memory_bytes", 0), peak_memory_bytes())
        self._store.write_record("run.json", record)
        self._last = now


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
        self.finish()
        self._pending = self._pool.submit(write)

    def finish(self) -> None:
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.result()
