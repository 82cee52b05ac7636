"""The game on arrays of packed boards: moves, spawns, starts, and the draws that decide them.

Draws are a function of (seed, age, game): a game meets every age at most once, so its fate depends
neither on the other games nor on the order or the batches in which they are played.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .kernels.moves import moves_into
from .objective import merge_potentials
from .shape import TRANSPOSED_ACTIONS, Shape
from .tables import build_tables

Codes = NDArray[np.uint64]
Draws = NDArray[np.float64]

CELL_DRAW, TILE_DRAW, ACTION_DRAW = range(3)
"""What the draws of an age decide: the spawn's cell, its tile, and the move of a random player."""

NUM_EXPONENTS = 16
"""Exponents that a cell of a packed board can hold."""

START_AGE = 0
"""The first two tiles are drawn as at this age and the next, which no board has."""


def draws(seed: int, age: int, num_games: int) -> Draws:
    """float64[num_games, 3], uniform in [0, 1): a game's are the same among any number of games.

    Philox, a counter-based generator, with the key (seed, age); seed < 2^64.
    """
    key = np.array([seed, age], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key)).random((num_games, 3))


def start_boards(shape: Shape, seed: int, num_games: int, spawn4: float) -> Codes:
    """The random start of each game, packed: two tiles on different cells."""
    boards = np.zeros(num_games, dtype=np.uint64)
    for tile in range(2):
        boards = spawn(boards, shape, draws(seed, START_AGE + tile, num_games), spawn4)
    return boards


def moves(boards: Codes, shape: Shape) -> tuple[Codes, NDArray[np.int64]]:
    """(boards moved, rewards), both [n, 4] in the order of `ACTIONS`.

    Where an action is illegal the board stays as it is.
    """
    moved = np.empty((len(boards), 4), dtype=np.uint64)
    rewards = np.empty((len(boards), 4))
    moves_into(build_tables(shape), merge_potentials(shape), boards, moved, rewards)
    if shape.is_transposed:
        moved, rewards = moved[:, TRANSPOSED_ACTIONS], rewards[:, TRANSPOSED_ACTIONS]
    return moved, rewards.astype(np.int64)


def spawn(afterstates: Codes, shape: Shape, drawn: Draws, spawn4: float) -> Codes:
    """The boards after a spawn in an empty cell, all alike; drawn : float64[n, >= 2]."""
    num_empty = np.zeros(len(afterstates), dtype=np.int64)
    empty = [is_empty(afterstates, shift) for shift in shape.cell_shifts]
    for cell in empty:
        num_empty += cell
    wanted = (drawn[:, CELL_DRAW] * num_empty).astype(np.int64)
    exponents = np.where(drawn[:, TILE_DRAW] < spawn4, np.uint64(2), np.uint64(1))
    boards = afterstates.copy()
    for shift, cell in zip(shape.cell_shifts, empty, strict=True):
        boards |= np.where(cell & (wanted == 0), exponents << np.uint64(shift), np.uint64(0))
        wanted -= cell
    return boards


def is_empty(boards: Codes, shift: int) -> NDArray[np.bool_]:
    """Whether the cell at a bit position of the code is empty, board by board."""
    cell: NDArray[np.bool_] = boards >> np.uint64(shift) & np.uint64(15) == 0
    return cell


def largest_exponents(boards: Codes, shape: Shape) -> NDArray[np.int64]:
    """The exponent of the largest tile of each board."""
    largest = np.zeros(len(boards), dtype=np.uint64)
    for shift in shape.cell_shifts:
        np.maximum(largest, boards >> np.uint64(shift) & np.uint64(15), out=largest)
    return largest.astype(np.int64)


def board_ages(boards: Codes, shape: Shape) -> NDArray[np.int64]:
    """The age of each board, the sum of its tiles."""
    ages = np.zeros(len(boards), dtype=np.int64)
    for shift in shape.cell_shifts:
        exponents = (boards >> np.uint64(shift) & np.uint64(15)).astype(np.int64)
        ages += (np.int64(1) << exponents) & ~np.int64(1)
    return ages
