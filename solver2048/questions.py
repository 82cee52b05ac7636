"""Boards as a solution is asked about them: checked, packed, or refused."""

from __future__ import annotations

from typing import NamedTuple, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .board import GivenBoard, format_board, pack_boards
from .errors import BoardError, NotSolved, UnreachableBoard
from .kernels.answers import (
    FINE,
    IMPOSSIBLE_AGE,
    MALFORMED,
    NOT_ENUMERATED,
    order_by_age_into,
    pack_tiles_into,
)
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


class Packed(NamedTuple):
    """n boards packed: codes, ages, and one of the faults of `kernels.answers` each."""

    codes: NDArray[np.uint64]
    ages: NDArray[np.int64]
    faults: NDArray[np.uint8]
    num_faults: int


def pack_tiles(tiles: NDArray[np.int64], shape: Shape, max_age: int) -> Packed:
    """Pack boards of tile numbers, int64[n, rows, columns]; max_age : the largest enumerated."""
    n = len(tiles)
    packed = Packed(
        np.empty(n, np.uint64), np.empty(n, np.int64), np.empty(n, np.uint8), num_faults=0
    )
    num_faults = pack_tiles_into(
        np.array(shape.cell_shifts, dtype=np.uint64), np.uint64(shape.max_exponent),
        shape.top_age, max_age, tiles.reshape(n, shape.num_cells), *packed[:3],
    )  # fmt: skip
    return packed._replace(num_faults=int(num_faults))


def order_by_age(packed: Packed, shape: Shape) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The boards without fault by age, in time linear in their number: (order, stops).

    ``order[stops[h - 1] : stops[h]]`` are those of age ``2 h``, in the order given.
    """
    order = np.empty(len(packed.codes), dtype=np.int64)
    stops = np.zeros(shape.top_age // 2 + 2, dtype=np.int64)
    order_by_age_into(packed.ages, packed.faults, stops, order)
    return order, stops


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
