"""One thread pool that runs kernels over ranges of slots."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from types import TracebackType
from typing import Any

import numpy as np

# Below this many slots a range costs more to hand out than to compute.
MIN_RANGE_SLOTS = 1 << 16
RANGES_PER_THREAD = 16


def available_threads() -> int:
    """Number of processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Workers:
    """Runs ``task(start, stop)`` over all of ``[0, num_slots)``, in parallel.

    The ranges are a fixed cut of the slots, and results never depend on who computed which:
    counts add up, bits are or-ed, each value has one writer.
    """

    def __init__(self, num_threads: int | None = None) -> None:
        self.num_threads = num_threads or available_threads()
        # The calling thread is one of the workers.
        self._pool = ThreadPoolExecutor(max(1, self.num_threads - 1))

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:  # fmt: skip
        self._pool.shutdown(cancel_futures=True)

    def run(self, num_slots: int, task: Callable[[np.uint64, np.uint64], Any]) -> list[Any]:
        """The results of the task over every range, in no particular order."""
        num_ranges = min(self.num_threads * RANGES_PER_THREAD, num_slots // MIN_RANGE_SLOTS)
        if self.num_threads == 1 or num_ranges < 2:
            return [task(np.uint64(0), np.uint64(num_slots))]
        bounds = [np.uint64(num_slots * i // num_ranges) for i in range(num_ranges + 1)]
        ranges = list(itertools.pairwise(bounds))
        lock = Lock()

        def work() -> list[Any]:
            results: list[Any] = []
            while True:
                with lock:
                    if not ranges:
                        return results
                    start, stop = ranges.pop()
                try:
                    results.append(task(start, stop))
                except BaseException:
                    with lock:
                        ranges.clear()
                    raise

        helpers = [self._pool.submit(work) for _ in range(self.num_threads - 1)]
        results = work()
        for helper in helpers:
            # A helper that has not begun by now would find nothing to do.
            if not helper.cancel():
                results += helper.result()
        return results
