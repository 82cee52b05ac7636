"""What play maximises: the score, or the probability of ever holding a tile.

An objective is a *potential* that adds up over rows, a *floor* and the mean gain of potential by
a spawn. With ``w = v + potential(board)`` one backward pass serves every objective::

    w(state)      = max(floor(state), max over legal moves of w(afterstate))
    w(afterstate) = mean over spawns of w(state) - spawn gain

Score: the potential is ``sum of (k - 1) 2^k``, by which a merge gains exactly its reward, a 2 gains
nothing and a 4 gains 4. A terminal state's value is 0, so its floor is its potential.
Tile: no potential; the floor is 1 for a board that holds the tile and 0 for all others.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .options import parse_tile_exponent
from .shape import Shape
from .tables import build_tables, row_cells

# Values are computed in float64: two that differ by less than this share of the largest possible
# value are the same number, rounded along different ways.
ARITHMETIC_ALLOWANCE = 2.0**-43


@dataclass(frozen=True)
class Objective:
    """The score (`exponent` = 0) or the tile ``2^exponent``."""

    exponent: int = 0

    @property
    def name(self) -> str:
        """As users write it."""
        return f"tile:{2**self.exponent}" if self.exponent else "score"

    @property
    def directory(self) -> str:
        """As the store names it."""
        return self.name.replace(":", "-")

    @property
    def values_kind(self) -> str:
        """Where the store keeps its values."""
        return f"values/{self.directory}"

    @property
    def policy_kind(self) -> str:
        """Where the store keeps its policy."""
        return f"policy/{self.directory}"

    @property
    def unit(self) -> str:
        return "probability" if self.exponent else "expected score"

    @property
    def floor_cap(self) -> float:
        """The floor of a board is the sum of its rows' floors, at most this."""
        return 1.0 if self.exponent else np.inf

    def spawn_gain(self, spawn4: float) -> float:
        """Mean gain of potential by a spawn."""
        return 0.0 if self.exponent else 4.0 * spawn4

    def max_value(self, shape: Shape) -> int:
        """A bound on every value."""
        return 1 if self.exponent else shape.max_score

    def arithmetic_allowance(self, shape: Shape) -> float:
        """How far two float64 values that are equal can be apart, rounded along different ways."""
        return ARITHMETIC_ALLOWANCE * self.max_value(shape)

    def floors(self, shape: Shape) -> NDArray[np.float64]:
        """Floor of every row, by ordinal."""
        if not self.exponent:
            return self.potentials(shape)
        cells = row_cells(build_tables(shape).rows.astype(np.int64))
        return np.asarray((cells >= self.exponent).any(axis=1), dtype=np.float64)

    def potentials(self, shape: Shape) -> NDArray[np.float64]:
        """Potential of every row, by ordinal."""
        if self.exponent:
            return np.zeros(len(build_tables(shape).rows))
        return merge_potentials(shape)

    def row_potentials(self, shape: Shape) -> NDArray[np.float64]:
        """The same by row, float64[2^16]; 0 where there is none such."""
        by_row = np.zeros(1 << 16)
        by_row[build_tables(shape).rows] = self.potentials(shape)
        return by_row


@functools.cache
def merge_potentials(shape: Shape) -> NDArray[np.float64]:
    """``sum of (k - 1) 2^k`` over the tiles ``2^k`` of every row, by ordinal.

    A move's reward is what the potential of the whole board gains.
    """
    cells = row_cells(build_tables(shape).rows.astype(np.int64))
    potentials: NDArray[np.float64] = np.where(cells > 0, (cells - 1) * 2.0**cells, 0.0).sum(axis=1)
    return potentials


def parse_objective(text: str, shape: Shape) -> Objective:
    """``score`` or ``tile:N``; a tile that the board cannot hold is refused."""
    return Objective(parse_tile_exponent(text, shape))
