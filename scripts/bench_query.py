"""How fast a solution answers, beside a dict and a sorted array of the same boards.

    python scripts/bench_query.py solutions/3x3

Random boards are members of random layers, an age as often as its share of the states, flipped at
random. First query: the first of its age. Batches: the least of five
runs, and of their processor time, all threads together. The dict maps packed boards to values, one
board at a time as Python does it; `searchsorted` looks packed boards up in the sorted array of all
boards asked, and takes their values.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solver2048 import open_solution
from solver2048.board import format_board, pack_boards
from solver2048.solution import Solution

Boards = NDArray[np.int64]


def random_boards(solution: Solution, count: int, rng: np.random.Generator) -> Boards:
    """About `count` random states of all layers, in random order and orientation."""
    share = count / solution.meta["states"] / (2 if solution.shape.is_square else 1)
    picked = []
    for age in solution.ages:
        for part in solution.layer(age):
            picked.append(part.boards[rng.random(len(part.boards)) < share])
    boards = rng.permutation(np.concatenate(picked))
    for axis in (1, 2):
        flipped = rng.random(len(boards)) < 0.5
        boards[flipped] = np.flip(boards[flipped], axis)
    return boards


def seconds(work: Callable[[], Any]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def least(work: Callable[[], Any]) -> NDArray[np.float64]:
    """Least seconds on the wall, and least of processor time, of a few runs."""
    runs = []
    for _ in range(5):
        processor = time.process_time()
        runs.append((seconds(work), time.process_time() - processor))
    return np.min(runs, axis=0)


def row(name: str, *cells: str) -> None:
    print(f"| {name} | {' | '.join(cells)} |", flush=True)


def measure_single(path: str, boards: Boards) -> None:
    """Opening, and single queries: the first of an age, and warm."""
    opening = min(seconds(lambda: open_solution(path).close()) for _ in range(5))
    texts = [format_board(board) for board in boards[:2000].tolist()]
    row("single", "p50", "p99")
    row("---", "---:", "---:")
    row("open", f"{opening * 1e3:.1f} ms", "")
    with open_solution(path) as solution:
        report_times("query, first of its age", solution.query, texts[:500])
    with open_solution(path) as solution:
        solution.probe(boards)
        lists = boards[:2000].tolist()
        report_times("query, warm, text", solution.query, texts)
        report_times("query, warm, list", solution.query, lists)
        report_times("value, warm, text", solution.value, texts)
        report_times("value, warm, list", solution.value, lists)


def report_times(name: str, ask: Callable[[Any], Any], boards: list[Any]) -> None:
    times = np.array([seconds(lambda board=board: ask(board)) for board in boards]) * 1e6
    row(name, f"{np.percentile(times, 50):.1f} us", f"{np.percentile(times, 99):.1f} us")


def measure_batches(path: str, boards: Boards) -> None:
    """Batches in random order and by age, beside a dict and `searchsorted`."""
    print()
    row(f"batch of {len(boards):,}", "boards/s", "dict", "searchsorted", "boards/s of CPU")
    row("---", "---:", "---:", "---:", "---:")
    ages = boards.sum(axis=(1, 2))
    with open_solution(path) as solution:
        cold = seconds(lambda: solution.probe(boards))
        row("random, layers not decoded", f"{len(boards) / cold / 1e6:.2f} M", "", "", "")
        for name, asked in ("random", boards), ("by age", boards[np.argsort(ages, kind="stable")]):
            dictionary, searched = baselines(solution, asked)
            for threads in (1, 2):
                taken = least(lambda n=threads, b=asked: solution.probe(b, threads=n))
                rates = len(asked) / taken / 1e6
                row(f"{name}, {threads} thread{'s' * (threads > 1)}", f"{rates[0]:.2f} M",
                    f"{dictionary[0] / taken[0]:.2f}x", f"{searched[0] / taken[0]:.2f}x",
                    f"{rates[1]:.2f} M")  # fmt: skip


def baselines(
    solution: Solution, boards: Boards
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Times of a dict and of `searchsorted` for the values of the same boards, packed before."""
    values = solution.probe(boards).values
    codes = pack_boards(boards, solution.shape)
    order = np.argsort(codes)
    sorted_codes, sorted_values = codes[order], values[order]
    # Not in the order in which it is asked: that would be memory in a row.
    table = dict(zip(sorted_codes.tolist(), sorted_values.tolist(), strict=True))
    keys = codes.tolist()
    return (
        least(lambda: [table[key] for key in keys]),
        least(lambda: sorted_values[np.searchsorted(sorted_codes, codes)]),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("solution", help="directory of a finished solution")
    parser.add_argument("--boards", type=int, default=1_000_000)
    options = parser.parse_args()
    with open_solution(options.solution) as solution:
        boards = random_boards(solution, options.boards, np.random.default_rng(1))
    measure_single(options.solution, boards)
    measure_batches(options.solution, boards)


if __name__ == "__main__":
    main()
