"""Boards as a solution is asked about them: checked, packed, or refused."""

from __future__ import annotations

from typing import NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .board import GivenBoard, format_board, pack_boards
from .errors import BoardError, NotSolved, UnreachableBoard
from .kernels.answers import FINE, IMPOSSIBLE_AGE, MALFORMED, NOT_ENUMERATED
from .shape import Shape


def as_tiles(boards: ArrayLike, shape: Shape) -> NDArray[np.int64]:
    """Boards as an array of the shape that they must have, its numbers not checked."""
    try:
        tiles = np.asarray(boards)
    except ValueError as error:  # rows of different lengths
        raise BoardError(f"boards are no array: {error}") from None
    expected = (shape.num_rows, shape.num_columns)
    if tiles.ndim != 3 or tiles.shape[1:] != expected or tiles.dtype.kind not in "iu":
        raise BoardError(
            f"boards must be integers of shape (n, {expected[0]}, {expected[1]}), "
            f"not {tiles.dtype} of shape {tiles.shape}"
        )
    return np.ascontiguousarray(tiles, dtype=np.int64)


def pack_board(given: GivenBoard, shape: Shape) -> tuple[int, int]:
    """Code and age of a board, in the orientation of the shape."""
    # In plain integers: for one board arrays take several times as long.
    rows = zip(*given.rows, strict=True) if given.is_transposed else given.rows
    code = age = 0
    shifts = iter(shape.cell_shifts)
    for row in rows:
        for tile in row:
            shift = next(shifts)
            if tile:
                code |= (tile.bit_length() - 1) << shift
                age += tile
    return code, age


def refuse_first(
    tiles: NDArray[np.int64], faults: NDArray[np.uint8], shape: Shape, max_age: int
) -> NoReturn:
    """Raise what is wrong with the first malformed board, or else with the first of all."""
    if (faults == MALFORMED).any():
        pack_boards(tiles, shape)
    first = int(np.flatnonzero(faults != FINE)[0])
    refuse(tiles[first], int(faults[first]), shape, max_age)


def refuse(tiles: NDArray[np.int64], fault: int, shape: Shape, max_age: int) -> NoReturn:
    """Raise what is wrong with a well-formed board.

    fault : one of `kernels.answers`; max_age : the largest age enumerated
    """
    shown = f"board {format_board(tiles.tolist())}"
    if fault == NOT_ENUMERATED:
        raise NotSolved(
            f"{shown} has age {tiles.sum()}; ages up to {max_age} are enumerated so far"
        )
    if fault == IMPOSSIBLE_AGE:
        raise UnreachableBoard(
            f"{shown} can never occur: its tiles add up to {tiles.sum()}, "
            f"and those of a {shape.name} game to 4 ... {shape.top_age}"
        )
    raise UnreachableBoard(f"{shown} can never occur in a game")
