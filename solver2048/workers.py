"""One thread pool that runs kernels over ranges of slots."""

from __future__ import annotations

import itertools
import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any

import numpy as np

# Below this many slots a range costs more to hand out than to compute.
MIN_RANGE_SLOTS = 1 << 16
RANGES_PER_THREAD = 16
# A kernel cannot be interrupted: its ranges take well under a second.
MAX_RANGE_SLOTS = 1 << 24

Task = Callable[[np.uint64, np.uint64], Any]
Job = tuple[int, Task]
"""A number of slots, and what is to be done with every range ``[start, stop)`` of them."""


def available_threads() -> int:
    """Number of processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Workers:
    """Runs jobs, tasks over all ranges of a number of slots, in parallel.

    Results never depend on how the slots are cut nor on who computed what: counts add up, bits are
    or-ed, each value has one writer.
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

    def run(self, *jobs: Job, min_range: int = MIN_RANGE_SLOTS) -> list[Any]:
        """The results of every job's task over all its ranges, in no particular order.

        min_range : slots below which a range is not cut; where jobs count something larger, fewer
        """
        calls: deque[tuple[Task, np.uint64, np.uint64]] = deque()
        for num_slots, task in jobs:
            num_ranges = 1
            if self.num_threads > 1:
                num_ranges = min(self.num_threads * RANGES_PER_THREAD, num_slots // min_range)
            num_ranges = max(num_ranges, num_slots // MAX_RANGE_SLOTS, 1)
            bounds = [np.uint64(num_slots * i // num_ranges) for i in range(num_ranges + 1)]
            calls.extend((task, start, stop) for start, stop in itertools.pairwise(bounds))

        def work() -> list[Any]:
            results: list[Any] = []
            while True:
                try:
                    task, start, stop = calls.popleft()
                except IndexError:
                    return results
                try:
                    results.append(task(start, stop))
                except BaseException:
                    calls.clear()
                    raise

        helpers = [self._pool.submit(work) for _ in range(min(self.num_threads, len(calls)) - 1)]
        results = work()
        for helper in helpers:
            # A helper that has not begun by now would find nothing to do.
            if not helper.cancel():
                results += helper.result()
        return results

    def run_pieces(self, length: int, size: int, task: Callable[[int, int], Any]) -> list[Any]:
        """Results of a task over pieces ``[start, stop)`` of a fixed size, in order."""
        results: list[Any] = [None] * -(-length // size)

        def run(first: np.uint64, last: np.uint64) -> None:
            for number in range(int(first), int(last)):
                results[number] = task(number * size, min((number + 1) * size, length))

        self.run((len(results), run), min_range=1)
        return results
