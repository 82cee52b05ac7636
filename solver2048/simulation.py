"""Many games at once, by ages: every layer is looked up once, for all games that come to it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from .board import GivenBoard, format_board, pack_boards
from .game import board_ages, draws, largest_exponents, moves, spawn, start_boards
from .policies import ActionRule, make_policy
from .solution import Solution

HISTOGRAM_BINS = 20


@dataclass(frozen=True)
class PlayedGames:
    """What became of n games: int64[n] each.

    scores : earned since the start board; num_moves likewise
    exponents : of the largest tile at the end, which is the largest the game ever held
    """

    scores: NDArray[np.int64]
    exponents: NDArray[np.int64]
    num_moves: NDArray[np.int64]


def simulate(
    solution: Solution,
    num_games: int,
    seed: int,
    *,
    policy: str | ActionRule = "optimal",
    start: GivenBoard | None = None,
    show_progress: bool = False,
) -> PlayedGames:
    """Play games to their end, from a board or from random starts.

    policy : a name that `make_policy` knows, or the rule itself
    The same seed gives the same games, the first n of any larger number. Memory O(num_games).
    Raises what `Solution.policy` raises.
    """
    shape = solution.shape
    solution.check_start(start)
    if start is None:
        boards = start_boards(shape, seed, num_games, solution.spawn4)
    else:
        boards = np.repeat(pack_boards(start.oriented[None], shape), num_games)
    value = expected_value(solution, start)
    points = None
    if value is not None and policy == "optimal" and not solution.objective.exponent:
        points = value * num_games
    rule = make_policy(policy, solution) if isinstance(policy, str) else policy
    with tqdm(total=points, desc="games", unit=" points", unit_scale=True,
              disable=None if show_progress else True) as bar:  # fmt: skip
        return _play(solution, boards, seed, rule, bar)


def _play(
    solution: Solution, boards: NDArray[np.uint64], seed: int, policy: ActionRule, bar: tqdm[Any]
) -> PlayedGames:
    shape = solution.shape
    ages = board_ages(boards, shape)
    scores, num_moves = np.zeros_like(ages), np.zeros_like(ages)
    is_on = np.ones(len(boards), dtype=np.bool_)
    # Ascending age: a spawn leads to age n+2 or n+4, so no game comes back to a layer.
    for age in range(int(ages.min()), shape.top_age + 1, 2):
        here = np.flatnonzero(is_on & (ages == age))
        moved, rewards = moves(boards[here], shape)
        legal = moved != boards[here, None]
        can_move = legal.any(axis=1)
        is_on[here[~can_move]] = False
        here, moved, rewards, legal = (a[can_move] for a in (here, moved, rewards, legal))
        if not len(here):
            continue
        drawn = draws(seed, age, len(boards))[here]
        taken = policy(boards[here], legal, rewards, drawn)[:, None]
        afterstates = np.take_along_axis(moved, taken, axis=1)[:, 0]
        earned = np.take_along_axis(rewards, taken, axis=1)[:, 0]
        boards[here] = spawn(afterstates, shape, drawn, solution.spawn4)
        ages[here] = board_ages(boards[here], shape)
        scores[here] += earned
        num_moves[here] += 1
        bar.set_postfix_str(f"age {age}, {len(here):,} games", refresh=False)
        bar.update(int(earned.sum()))
    return PlayedGames(scores, largest_exponents(boards, shape), num_moves)


def expected_value(solution: Solution, start: GivenBoard | None) -> float | None:
    """v* of the start board, or of a random start; None where a policy table has it not."""
    value = solution.start_values["random"] if start is None else solution.query(start).value
    return None if math.isnan(value) else value


def summarize(
    solution: Solution, games: PlayedGames, seed: int, *, policy: str, start: GivenBoard | None
) -> dict[str, Any]:
    """Mean outcome beside v*, scores and tiles of games, as one JSON object.

    `standard_errors_off` is how far the mean of optimal play is from v*, None for other policies.
    The outcome of a game is what the objective makes of it: the score, or 1 if it reached the tile.
    """
    exponent = solution.objective.exponent
    outcomes = games.exponents >= exponent if exponent else games.scores
    outcome = _mean(outcomes)
    value = expected_value(solution, start)
    error = outcome["standard_error"]
    off = None
    if policy == "optimal" and value is not None and error:
        off = (outcome["mean"] - value) / error
    return {
        "shape": solution.shape.name,
        "objective": solution.objective.name,
        "unit": solution.objective.unit,
        "policy": policy,
        "start": "random" if start is None else format_board(start.rows),
        "seed": seed,
        "games": len(outcomes),
        **outcome,
        "value": value,
        "standard_errors_off": off,
        "score": {
            **_mean(games.scores),
            "lowest": int(games.scores.min()),
            "median": float(np.median(games.scores)),
            "highest": int(games.scores.max()),
        },
        "moves": float(games.num_moves.mean()),
        "tiles": _tiles(games.exponents),
        "histogram": _histogram(games.scores),
    }


def _mean(outcomes: NDArray[Any]) -> dict[str, float]:
    spread = float(outcomes.std(ddof=1)) if len(outcomes) > 1 else 0.0
    return {"mean": float(outcomes.mean()), "standard_error": spread / len(outcomes) ** 0.5}


def _tiles(exponents: NDArray[np.int64]) -> list[dict[str, Any]]:
    reached = [(e, exponents >= e) for e in range(exponents.min(), exponents.max() + 1)]
    return [
        {
            "tile": 2 ** int(exponent),
            "games": int(games.sum()),
            "share": float(games.mean()),
            "standard_error": _mean(games)["standard_error"],
        }
        for exponent, games in reached
    ]


def _histogram(scores: NDArray[np.int64]) -> list[dict[str, int]]:
    """Games by score, in bins [from, to) of a round width."""
    span = int(scores.max() - scores.min()) + 1
    rounds = [digit * 10**power for power in range(1, 9) for digit in (1, 2, 5)]
    width = next(r for r in rounds if r * HISTOGRAM_BINS >= span)
    first = int(scores.min()) // width
    counts = np.bincount(scores // width - first)
    return [
        {"from": (first + i) * width, "to": (first + i + 1) * width, "games": int(count)}
        for i, count in enumerate(counts)
    ]
