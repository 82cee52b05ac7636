"""Simulated games beside exact figures: v*, tiles, and published score tails of 3x3.

    python scripts/check_self_play.py solutions/3x3 --games 100000 --seed 1

Tiles are exact: the distribution of all games under the same policy, carried forward age by age.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from solver2048 import open_solution
from solver2048.prospects import start_distribution, tile_distribution
from solver2048.simulation import simulate

SCORE_TAILS = {1000: 0.999949, 2000: 0.995675, 3000: 0.804536, 4000: 0.736648,
               6000: 0.539757, 8000: 0.011115}  # fmt: skip


def print_row(name: str, found: float, exact: float, error: float) -> None:
    off = (found - exact) / error if error else 0.0
    print(f"{name:<16}{found:14.6f}{exact:14.6f}{off:+8.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path")
    parser.add_argument("--games", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    with open_solution(asked.path) as solution:
        began = time.perf_counter()
        games = simulate(solution, asked.games, asked.seed, show_progress=True)
        simulated = time.perf_counter() - began
        began = time.perf_counter()
        start = start_distribution(solution.shape, solution.spawn4)
        at_end = tile_distribution(solution, start, max_states=10**10)
        assert at_end is not None
        print(f"{asked.games:,} games in {simulated:.1f} s, {games.num_moves.sum():,} moves; "
              f"tiles exactly in {time.perf_counter() - began:.1f} s")  # fmt: skip
        print(f"{'':<16}{'simulated':>14}{'exact':>14}{'s.e.':>8}")
        value = solution.start_values["random"]
        print_row("mean score", games.scores.mean(), value, games.scores.std() / asked.games**0.5)
        shares = [
            (f"tile {2**e}", (games.exponents >= e).mean(), float(at_end[e:].sum()))
            for e in range(5, int(np.flatnonzero(at_end)[-1]) + 1)
        ]
        if solution.shape.name == "3x3":
            shares += [
                (f"score >= {x:,}", (games.scores >= x).mean(), p) for x, p in SCORE_TAILS.items()
            ]
        for name, found, exact in shares:
            print_row(name, found, exact, max(exact * (1 - exact), 0.0) ** 0.5 / asked.games**0.5)


if __name__ == "__main__":
    main()
