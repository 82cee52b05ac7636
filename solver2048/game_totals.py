"""What games come to, added up age by age: lengths, scores, largest tiles, states met."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .game import NUM_EXPONENTS, largest_exponents
from .kernels.actions import ILLEGAL
from .kernels.games import add_scores
from .layer_index import LayerIndex, board_slots, transposed_boards
from .samples import holds
from .shape import Shape


@dataclass(frozen=True)
class GameLayer:
    """Boards of one age that games meet, and the games of each.

    bitmap : in index order
    codes : uint64[boards], packed
    games : float64[boards, columns], the probability of a game that has the board, by the number
        of 4s spawned so far; in one column if scores do not fit
    """

    index: LayerIndex
    bitmap: NDArray[np.uint64]
    codes: NDArray[np.uint64]
    games: NDArray[np.float64]


@dataclass(frozen=True)
class AgeOfGames:
    """What games do at one age; probabilities of a game from a random start.

    A game has an age at most once as a state to move: how often it does on the average, its
    *visits*, is the probability that it ever has it. A spawned 4 passes an age over.

    visits : that a game ever has the age
    ended : that it is over at the age
    survival : that it gets to the age or beyond it
    states, states_met : states of the age, and those that games can meet, modulo all symmetries
    """

    age: int
    visits: float
    ended: float
    survival: float
    states: int
    states_met: int


@dataclass(frozen=True)
class Games:
    """What comes of games under optimal play from a random start.

    meta : shape, rules, objective and value format
    value : v* of a random start, by the solve
    ages : upward
    tiles : by its number, the probability that it is the largest tile at the end
    scores : by score, its probability; None if it did not fit into memory
    mean_moves, mean_score : of a game
    """

    meta: dict[str, Any]
    value: float
    ages: list[AgeOfGames]
    tiles: dict[int, float]
    scores: dict[int, float] | None
    mean_moves: float
    mean_score: float

    @property
    def num_states(self) -> int:
        """States modulo all symmetries."""
        return sum(row.states for row in self.ages)

    @property
    def num_states_met(self) -> int:
        """Those that optimal play can meet."""
        return sum(row.states_met for row in self.ages)

    def tile_at_least(self) -> dict[int, float]:
        """By tile, the probability of ever holding it or a larger one."""
        return dict(zip(self.tiles, tail_sums(list(self.tiles.values())), strict=True))

    def score_at_least(self, score: int) -> float:
        """The probability of that score or more. ValueError if scores are not known."""
        if self.scores is None:
            raise ValueError("the distribution of scores did not fit into memory")
        return math.fsum(p for value, p in self.scores.items() if value >= score)


def tail_sums(values: Sequence[float]) -> list[float]:
    """The sum of every value and all after it, each exactly rounded.

    >>> tail_sums([0.5, 0.25, 0.25])
    [1.0, 0.5, 0.25]
    """
    return [math.fsum(values[i:]) for i in range(len(values))]


class GameTotals:
    """Adds up what games come to, age by age upward.

    Within a layer sums are numpy's, pairwise and in a fixed order; over layers they are compensated
    or exactly rounded.
    """

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._rows: list[tuple[int, float, float, int, int]] = []
        self._tiles: list[NDArray[np.float64]] = []
        self._potentials: list[float] = []
        self._scores = np.zeros(shape.max_score // 4 + 1)
        self._lost = np.zeros_like(self._scores)

    def add(self, states: GameLayer, slots: NDArray[np.uint64], num_states: int) -> None:
        """Add the states of an age that games meet.

        slots : where their actions lead, `ILLEGAL` where a game is over
        num_states : all states of the age, modulo all symmetries
        """
        games = states.games.sum(axis=1)
        over = np.flatnonzero(slots == ILLEGAL)
        exponents = [
            (states.codes[over] >> np.uint64(shift) & np.uint64(15)).astype(np.int64)
            for shift in self._shape.cell_shifts
        ]
        largest = largest_exponents(states.codes[over], self._shape)
        self._tiles.append(np.bincount(largest, games[over], NUM_EXPONENTS).astype(float))
        potentials = np.sum([np.maximum(e - 1, 0) << e for e in exponents], axis=0)
        self._potentials.append(float((potentials * games[over]).sum()))
        scores = np.zeros_like(self._scores)
        add_scores((potentials // 4).astype(np.uint64), states.games[over], scores)
        self._add_scores(scores)
        self._rows.append(
            (int(states.index.age), float(games.sum()), float(games[over].sum()), num_states,
             _count_classes(self._shape, states))
        )  # fmt: skip

    def _add_scores(self, scores: NDArray[np.float64]) -> None:
        # Knuth's two-sum: what rounding takes from each sum is kept, and added at the end.
        total = self._scores + scores
        part = total - self._scores
        self._lost += (self._scores - (total - part)) + (scores - part)
        self._scores = total

    def finish(self, meta: dict[str, Any], value: float, has_scores: bool) -> Games:
        """The games, all ages added.

        has_scores : whether all layers had columns by the number of 4s
        """
        ages, visits, ended, states, met = (list(c) for c in zip(*self._rows, strict=True))
        rows = zip(ages, visits, ended, tail_sums(ended), states, met, strict=True)
        tiles = {2**e: math.fsum(t) for e, t in enumerate(zip(*self._tiles, strict=True))}
        scores = self._scores + self._lost
        moves = math.fsum(visits) - math.fsum(ended)
        # The last age is twice the 2s and four times the 4s, and all but two of them follow moves.
        fours = math.fsum(a * p for a, p in zip(ages, ended, strict=True)) / 2 - (moves + 2)
        return Games(
            meta=meta,
            value=value,
            ages=[AgeOfGames(*row) for row in rows],
            tiles={tile: p for tile, p in tiles.items() if p > 0},
            scores={4 * int(i): float(scores[i]) for i in np.flatnonzero(scores)}
            if has_scores else None,
            mean_moves=moves,
            mean_score=math.fsum(self._potentials) - 4 * fours,
        )  # fmt: skip


def _count_classes(shape: Shape, layer: GameLayer) -> int:
    """Boards of a layer modulo all symmetries; its members are modulo the flips."""
    if not shape.is_square:
        return len(layer.codes)
    slots = board_slots(shape, layer.index, layer.codes)
    others = board_slots(shape, layer.index, transposed_boards(shape, layer.codes))
    # A class with both its members here counts by the lesser of them.
    return int(np.sum((slots <= others) | ~holds(layer.bitmap, others)))
