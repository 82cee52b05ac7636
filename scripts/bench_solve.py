"""Time solves against the plain sort-and-unique solver, in one run on one machine.

    python scripts/bench_solve.py --baseline plain_solver.cpp

compiles the baseline (g++ -O2 -march=native) and prints ratios of wall time: forward 4x3 to an
age with one thread, as a whole (a process with imports, sets and counts written) and for the
kernels alone, and 3x3 complete. Our kernels are compiled and cached before, all else is included.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from solver2048.forward import AfterstateLayer, enumerate_layer
from solver2048.kernels.moves import TARGET_BUFFER, mark_moves
from solver2048.kernels.spawns import mark_spawns
from solver2048.shape import SHAPES
from solver2048.tables import build_tables
from solver2048.workers import Workers


def timed_process(command: list[str]) -> tuple[float, str]:
    """Wall seconds and output of a command."""
    started = time.perf_counter()
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return time.perf_counter() - started, output


def compile_baseline(source: Path, directory: Path) -> str:
    binary = directory / "plain_solver"
    command = ["g++", "-O2", "-march=native", "-std=c++17", "-w", "-o", str(binary), str(source)]
    subprocess.run(command, check=True)
    return str(binary)


def solve_process(directory: str, *arguments: str) -> tuple[float, dict]:
    """Wall seconds of a whole solve, and its report."""
    command = [sys.executable, "-m", "solver2048", "solve", *arguments]
    seconds, output = timed_process([*command, "--out", directory, "--quiet", "--json"])
    return seconds, json.loads(output)


def kernel_seconds(max_age: int) -> float:
    """Seconds of the forward kernels alone over all layers of 4x3 to an age, one thread."""
    shape = SHAPES["4x3"]
    tables = build_tables(shape)
    targets = np.empty(TARGET_BUFFER, dtype=np.uint64)
    window: dict[int, AfterstateLayer] = {}
    total = 0.0
    zero = np.uint64(0)
    with Workers(1) as workers:
        for age in range(4, max_age + 1, 2):
            layer = enumerate_layer(shape, age, window, workers)
            # Once more, timed, into fresh bitmaps whose pages are there already.
            states, afterstates = layer.states.copy(), layer.afterstates.copy()
            states[:] = 0
            afterstates[:] = 0
            started = time.perf_counter()
            for exponent in (1, 2):
                below = window.get(age - 2**exponent)
                if below:
                    mark_spawns(
                        tables, below.index, layer.index, np.uint64(exponent), below.afterstates,
                        states, zero, below.index.num_slots,
                    )  # fmt: skip
            mark_moves(tables, layer.index, layer.states, afterstates, targets, zero,
                       layer.index.num_slots)  # fmt: skip
            total += time.perf_counter() - started
            assert np.array_equal(afterstates, layer.afterstates)
            assert age <= 8 or np.array_equal(states, layer.states)
            window[age] = AfterstateLayer(layer.index, layer.afterstates)
            window.pop(age - 4, None)
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--baseline", type=Path, required=True, help="the plain C++ solver")
    parser.add_argument("--max-age", type=int, default=120, help="forward age on 4x3")
    options = parser.parse_args()
    if not options.baseline.is_file():
        parser.error(
            f"no baseline at {options.baseline}: any plain solver with the same output does"
        )
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        baseline = compile_baseline(options.baseline, directory)
        solve_process(str(directory / "warm"), "2x2")
        kernel_seconds(8)
        age = str(options.max_age)
        ours, report = solve_process(str(directory / "4x3"), "4x3", "--threads", "1",
                                     "--max-age", age)  # fmt: skip
        kernels = kernel_seconds(options.max_age)
        plain, output = timed_process([baseline, "4", "3", age])
        states = int(re.search(r"total states (\d+)", output)[1])
        assert states == report["states"]
        print(f"4x3 forward to age {age}, {states:,} states, one thread")
        print(f"  plain baseline   {plain:7.2f} s   {1e9 * plain / states:6.1f} ns per state")
        print(f"  solve, complete  {ours:7.2f} s   {plain / ours:6.1f} x")
        print(f"  kernels alone    {kernels:7.2f} s   {plain / kernels:6.1f} x", flush=True)
        plain, output = timed_process([baseline, "3", "3", "999999", "values"])
        value = float(re.search(r"board 000000000011 v (\S+)", output)[1])
        print("3x3 complete, with values")
        print(f"  plain baseline   {plain:7.2f} s")
        for threads in ("1", "2"):
            ours, report = solve_process(str(directory / f"3x3-{threads}"), "3x3",
                                         "--threads", threads)  # fmt: skip
            assert abs(report["start_classes"]["2,2"] - value) < 1e-3
            print(
                f"  {threads} thread{'s' if threads > '1' else ' '}        {ours:7.2f} s   "
                f"{plain / ours:6.1f} x   (forward {report['forward_seconds']:.2f} s, backward "
                f"{report['backward_seconds']:.2f} s, {report['peak_memory_bytes'] / 1e6:.0f} MB)"
            )


if __name__ == "__main__":
    main()
