"""Nanoseconds per state and afterstate of every kernel, on real layers of 4x3.

    python scripts/bench_kernels.py SOLUTION --baseline plain_solver.cpp

SOLUTION holds the sets of 4x3 up to the largest age asked for and 4 beyond (`solver2048 solve 4x3
--max-age 1004`). Forward: moves of an age's states, both spawns of its afterstates. Backward: both
spawns' values, and the best moves, over random values of the two ages above. Each is the least of
a few runs. The baseline (g++ -O2 -march=native) enumerates up to an age, sets alone; its time per
state is that of all ages, as is that of ours beside it.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from bench_solve import compile_baseline, kernel_seconds, timed_process
from numpy.typing import NDArray

from elias_fano.bits import empty_bitmap
from elias_fano.ranked import rank_bitmap
from solver2048.kernels.moves import TARGET_BUFFER, mark_moves
from solver2048.kernels.spawns import mark_spawns
from solver2048.kernels.values import add_spawn_values, best_moves
from solver2048.layer_index import LayerIndex, build_layer_index
from solver2048.layer_sets import LayerSets
from solver2048.shape import SHAPES
from solver2048.store import Store
from solver2048.tables import build_tables
from solver2048.workers import Workers

SHAPE = SHAPES["4x3"]
TABLES = build_tables(SHAPE)
SPAWNS = ((np.uint64(1), 0.9), (np.uint64(2), 0.1))


class LayerBench:
    """The kernels over the layer of one age, each as a call on a range of slots."""

    def __init__(self, sets: LayerSets, age: int) -> None:
        self.index = build_layer_index(SHAPE, age)
        self.states = sets.open(age, "states").to_bitmap()
        self.afterstates = sets.open(age, "afterstates").to_bitmap()
        self.num_states = len(sets.open(age, "states"))
        self.num_afterstates = len(sets.open(age, "afterstates"))
        self.above: list[tuple[LayerIndex, NDArray[np.uint64]]] = [
            (build_layer_index(SHAPE, age + 2 * int(tile)),
             sets.open(age + 2 * int(tile), "states").to_bitmap())
            for tile, _ in SPAWNS
        ]  # fmt: skip

    def forward(self, workers: Workers) -> tuple[float, float]:
        """Seconds of the moves, and of both spawns."""
        marked = empty_bitmap(int(self.index.num_slots))
        grown = [empty_bitmap(int(index.num_slots)) for index, _ in self.above]

        def moves(start: np.uint64, stop: np.uint64) -> None:
            targets = np.empty(TARGET_BUFFER, dtype=np.uint64)
            mark_moves(TABLES, self.index, self.states, marked, targets, start, stop)

        def spawns(start: np.uint64, stop: np.uint64) -> None:
            for (tile, _), (index, _), bits in zip(SPAWNS, self.above, grown, strict=True):
                mark_spawns(TABLES, self.index, index, tile, self.afterstates, bits, start, stop)

        return self._seconds(workers, moves, marked), self._seconds(workers, spawns, *grown)

    def backward(self, workers: Workers) -> tuple[float, float]:
        """Seconds of the best moves, and of both spawns' values."""
        rng = np.random.default_rng(1)
        ranks = [rank_bitmap(states) for _, states in self.above]
        values = [rng.random(int(r[-1])) for r in ranks]
        states, afterstates = rank_bitmap(self.states), rank_bitmap(self.afterstates)
        means = np.zeros(self.num_afterstates)
        best = np.empty(self.num_states)
        floors = np.zeros(len(TABLES.rows))

        def average(start: np.uint64, stop: np.uint64) -> None:
            sums = np.empty(64)
            for (tile, share), (index, _), of, v in zip(
                SPAWNS, self.above, ranks, values, strict=True
            ):
                add_spawn_values(TABLES, self.index, index, tile, share, afterstates, of, v, means,
                                 sums, start, stop)  # fmt: skip

        def choose(start: np.uint64, stop: np.uint64) -> None:
            targets = np.empty(TARGET_BUFFER, dtype=np.uint64)
            positions = np.empty(TARGET_BUFFER, dtype=np.uint64)
            best_moves(TABLES, self.index, floors, np.inf, states, afterstates, means, best,
                       targets, positions, start, stop)  # fmt: skip

        return self._seconds(workers, choose), self._seconds(workers, average, means)

    def _seconds(
        self,
        workers: Workers,
        work: Callable[[np.uint64, np.uint64], None],
        *cleared: NDArray[np.generic],
    ) -> float:
        """Least wall seconds of a few runs over all slots, into cleared arrays."""
        work(np.uint64(0), np.uint64(1))  # compiled
        times = []
        for _ in range(3):
            for array in cleared:
                array[:] = 0
            started = time.perf_counter()
            workers.run((int(self.index.num_slots), work))
            times.append(time.perf_counter() - started)
        return min(times)


def measure(sets: LayerSets, ages: list[int]) -> None:
    print(f"{'':8}{'':22}{'ns per state':>26}{'ns per afterstate':>26}")
    print(f"{'age':>6}{'states':>13}  thr {'moves':>12}{'best moves':>12}"
          f"{'spawns':>13}{'their values':>14}{'back/fwd':>10}")  # fmt: skip
    for age in ages:
        bench = LayerBench(sets, age)
        single = None
        for threads in (1, 2):
            with Workers(threads) as workers:
                forward, backward = bench.forward(workers), bench.backward(workers)
            per_state, per_afterstate = 1e9 / bench.num_states, 1e9 / bench.num_afterstates
            total = sum(forward), sum(backward)
            single = single or total
            speedup = f"  {single[0] / total[0]:.2f}x {single[1] / total[1]:.2f}x"
            print(
                f"{age:6}{bench.num_states:13,}{threads:5}{forward[0] * per_state:13.1f}"
                f"{backward[0] * per_state:12.1f}{forward[1] * per_afterstate:13.1f}"
                f"{backward[1] * per_afterstate:14.1f}{total[1] / total[0]:10.2f}"
                + (speedup if threads > 1 else ""),
                flush=True,
            )


def compare(source: Path, max_age: int) -> None:
    """The baseline's time for all ages up to one beside that of our kernels, one thread."""
    with tempfile.TemporaryDirectory() as directory:
        binary = compile_baseline(source, Path(directory))
        plain, _ = timed_process([binary, "4", "3", str(max_age)])
    kernel_seconds(40)
    ours = kernel_seconds(max_age)
    print(f"ages up to {max_age}, 1 thread: baseline {plain:.1f} s, kernels {ours:.2f} s: "
          f"{plain / ours:.1f}x")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("solution", help="directory of a 4x3 solution, at least enumerated")
    parser.add_argument("--ages", type=int, nargs="+", default=[120, 300, 600, 1000])
    parser.add_argument("--baseline", type=Path, help="source of the plain C++ solver")
    options = parser.parse_args()
    measure(LayerSets(Store(options.solution)), options.ages)
    if options.baseline:
        compare(options.baseline, 120)


if __name__ == "__main__":
    main()
