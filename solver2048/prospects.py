"""What becomes of boards under the optimal policy, exactly: their distribution carried forward.

Boards that are equal are merged, so the work is the number of boards that the policy can come to,
not the number of ways there. Which of several best actions it takes: `.policies`.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .game import NUM_EXPONENTS, Codes, board_ages, is_empty, largest_exponents, moves
from .policies import best_actions
from .shape import Shape
from .solution import Solution


@dataclass(frozen=True)
class Boards:
    """Packed boards and the probability of each: uint64[n], float64[n]."""

    codes: Codes
    probabilities: NDArray[np.float64]

    def where(self, chosen: NDArray[np.bool_]) -> Boards:
        return Boards(self.codes[chosen], self.probabilities[chosen])


def merge(parts: list[Boards]) -> Boards:
    """Each board once, by rising code, with the sum of its probabilities."""
    codes, places = np.unique(np.concatenate([p.codes for p in parts]), return_inverse=True)
    weights = np.concatenate([p.probabilities for p in parts])
    # Without any board the counts are integers.
    sums = np.bincount(places, weights, minlength=len(codes)).astype(np.float64)
    return Boards(codes, sums)


def start_distribution(shape: Shape, spawn4: float) -> Boards:
    """The random start: two tiles on different cells."""
    boards = Boards(np.zeros(1, dtype=np.uint64), np.ones(1))
    for _ in range(2):
        boards = merge(list(_spawned(boards, shape, spawn4).values()))
    return boards


def tile_distribution(
    solution: Solution, boards: Boards, max_states: int
) -> NDArray[np.float64] | None:
    """float64[16]: by exponent, the probability that it is the largest tile's at the end.

    None if the policy can come to more than `max_states` states.
    """
    shape = solution.shape
    ages = board_ages(boards.codes, shape)
    layers: dict[int, list[Boards]] = defaultdict(list)
    for age in np.unique(ages).tolist():
        layers[age].append(boards.where(ages == age))
    at_end = np.zeros(NUM_EXPONENTS)
    num_states = 0
    # Ascending age: all that comes to a layer has come to it before it is left.
    for age in range(int(ages.min()), shape.top_age + 1, 2):
        if age not in layers:
            continue
        layer = merge(layers.pop(age))
        num_states += len(layer.codes)
        if num_states > max_states:
            return None
        is_over = _is_terminal(layer.codes, shape)
        over = layer.where(is_over)
        largest = largest_exponents(over.codes, shape)
        at_end += np.bincount(largest, over.probabilities, minlength=NUM_EXPONENTS)
        moved = _moved(solution, layer.where(~is_over))
        for exponent, spawned in _spawned(moved, shape, solution.spawn4).items():
            layers[age + 2**exponent].append(spawned)
    return at_end


def death_probabilities(
    solution: Solution, boards: Boards, num_spawns: int, max_boards: int
) -> list[float]:
    """Item k - 1: the probability that no action is left after k spawns or fewer.

    Shorter than `num_spawns` where more than `max_boards` boards are possible.
    """
    shape = solution.shape
    died = float(boards.probabilities[_is_terminal(boards.codes, shape)].sum())
    deaths = []
    for _ in range(num_spawns):
        moved = _moved(solution, boards.where(~_is_terminal(boards.codes, shape)))
        boards = merge(list(_spawned(moved, shape, solution.spawn4).values()))
        if len(boards.codes) > max_boards:
            break
        died += float(boards.probabilities[_is_terminal(boards.codes, shape)].sum())
        deaths.append(min(died, 1.0))
    return deaths


def _is_terminal(codes: Codes, shape: Shape) -> NDArray[np.bool_]:
    moved, _ = moves(codes, shape)
    is_terminal: NDArray[np.bool_] = (moved == codes[:, None]).all(axis=1)
    return is_terminal


def _moved(solution: Solution, boards: Boards) -> Boards:
    """The afterstates the policy makes of boards that are not terminal."""
    moved, _ = moves(boards.codes, solution.shape)
    taken = best_actions(solution, boards.codes)[:, None]
    afterstates = np.take_along_axis(moved, taken, axis=1)[:, 0]
    return merge([Boards(afterstates, boards.probabilities)])


def _spawned(afterstates: Boards, shape: Shape, spawn4: float) -> dict[int, Boards]:
    """All boards after a spawn, not merged, by the exponent of the tile."""
    empty = np.stack([is_empty(afterstates.codes, shift) for shift in shape.cell_shifts], axis=1)
    board, cell = np.nonzero(empty)
    codes = afterstates.codes[board]
    shifts = np.array(shape.cell_shifts, dtype=np.uint64)[cell]
    probabilities = (afterstates.probabilities / empty.sum(axis=1))[board]
    return {
        exponent: Boards(codes | np.uint64(exponent) << shifts, share * probabilities)
        for exponent, share in ((1, 1 - spawn4), (2, spawn4))
    }
