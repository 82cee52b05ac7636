"""Boards as people write them, as arrays of tiles, and packed into 48-bit codes."""

from __future__ import annotations

import json
import numbers
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import BoardError, ImpossibleBoard
from .shape import Shape

_EMPTY = {".", "0", "_"}


@dataclass(frozen=True)
class GivenBoard:
    """A board of a solution's shape, as somebody wrote it.

    rows : tile numbers row by row, 0 for an empty cell
    is_transposed : whether the rows given are the columns of the solution's shape
    """

    rows: tuple[tuple[int, ...], ...]
    is_transposed: bool

    @property
    def oriented(self) -> NDArray[np.int64]:
        """The tiles in the orientation of the shape."""
        tiles = np.array(self.rows, dtype=np.int64)
        return tiles.T if self.is_transposed else tiles


def parse_board(board: str | ArrayLike, shape: Shape) -> GivenBoard:
    """Read a board from text or from nested lists of tile numbers.

    Text: cells divided by blanks or commas, rows by ``/`` or new lines, ``.``, ``0`` or ``_`` for
    an empty cell; or a JSON list (of lists). Rows that are marked may lie in either orientation
    of a shape that is not square; unmarked cells follow the shape, row by row.
    Raises BoardError, naming the cell; ImpossibleBoard where a tile is too large for the shape.

    >>> from .shape import SHAPES
    >>> parse_board("2 . 4 / . . 2", SHAPES["2x3"]).rows
    ((2, 0, 4), (0, 0, 2))
    """
    rows = _text_rows(board) if isinstance(board, str) else _listed_rows(board)
    num_cells = sum(len(row) for row in rows)
    if num_cells != shape.num_cells:
        raise BoardError(
            f"{num_cells} {'cell' if num_cells == 1 else 'cells'} given; "
            f"a {shape.name} board has {shape.num_cells}"
        )
    if len(rows) == 1:
        cells = rows[0]
        width = shape.num_columns
        rows = [cells[start : start + width] for start in range(0, len(cells), width)]
    lengths = [len(row) for row in rows]
    given = (len(rows), lengths[0])
    if len(set(lengths)) > 1:
        raise BoardError(f"rows of different lengths: {', '.join(map(str, lengths))} cells")
    if given not in ((shape.num_rows, shape.num_columns), (shape.num_columns, shape.num_rows)):
        raise BoardError(f"the board given is {given[0]}x{given[1]}, the solution {shape.name}")
    tiles = tuple(
        tuple(_tile(cell, i, j, shape) for j, cell in enumerate(row)) for i, row in enumerate(rows)
    )
    return GivenBoard(tiles, given != (shape.num_rows, shape.num_columns))


def _text_rows(text: str) -> list[list[Any]]:
    text = text.strip()
    if text.startswith("["):
        try:
            return _listed_rows(json.loads(text))
        except (ValueError, RecursionError) as error:
            raise BoardError(f"not a JSON list of rows: {error}") from None
    lines = re.split(r"[/\n]", text)
    return [row for row in (re.findall(r"[^\s,]+", line) for line in lines) if row] or [[]]


def _listed_rows(board: Any) -> list[list[Any]]:
    if isinstance(board, np.ndarray):
        board = board.tolist()
    if not isinstance(board, (list, tuple)):
        raise BoardError("a board is a text or a list of rows of tile numbers")
    board = [row.tolist() if isinstance(row, np.ndarray) else row for row in board]
    if not any(isinstance(row, (list, tuple)) for row in board):
        return [board]
    for i, row in enumerate(board):
        if not isinstance(row, (list, tuple)):
            raise BoardError(f"row {i + 1}: {_shown(row)} is not a list of tile numbers")
    return [list(row) for row in board]


def _shown(cell: Any) -> str:
    if isinstance(cell, numbers.Integral) and abs(int(cell)) >= 10**30:
        return "a number of many digits"  # repr refuses thousands of them
    try:
        text = repr(cell)
    except RecursionError:
        text = f"a nested {type(cell).__name__}"
    return text if len(text) <= 40 else text[:37] + "..."


def _tile(cell: Any, row: int, column: int, shape: Shape) -> int:
    """The number of a tile, checked; 0 for an empty cell."""
    where = f"row {row + 1}, column {column + 1}"
    if isinstance(cell, str):
        if cell in _EMPTY:
            return 0
        # No int() of endless digits: no tile has more than five.
        tile = int(cell) if re.fullmatch(r"[0-9]{1,9}", cell) else -1
    elif isinstance(cell, bool) or not isinstance(cell, numbers.Integral):
        tile = -1
    else:
        tile = int(cell)
    if tile == 0:
        return 0
    if tile < 2 or tile & (tile - 1):
        raise BoardError(f"{where}: {_shown(cell)} is not a tile (2, 4, 8, ...) nor empty (.)")
    if tile > 2**shape.max_exponent:
        raise ImpossibleBoard(
            f"{where}: tile {_shown(cell)} cannot occur on a {shape.name} board; "
            f"the largest is {2**shape.max_exponent}"
        )
    return tile


def pack_boards(tiles: NDArray[np.int64], shape: Shape) -> NDArray[np.uint64]:
    """Codes of boards given as tile numbers: int64[n, rows, columns] -> uint64[n].

    Raises BoardError for the first board and cell that holds no possible tile.
    """
    flat = tiles.reshape(len(tiles), shape.num_cells)
    is_tile = (flat >= 2) & (flat <= 2**shape.max_exponent) & (flat & (flat - 1) == 0)
    bad = np.argwhere(~is_tile & (flat != 0))
    if len(bad):
        number, cell = (int(i) for i in bad[0])
        try:
            _tile(int(flat[number, cell]), *divmod(cell, shape.num_columns), shape)
        except BoardError as error:
            raise type(error)(f"board {number}, {error}") from None
    exponents = tile_exponents(flat).astype(np.uint64)
    codes = np.zeros(len(tiles), dtype=np.uint64)
    for cell, shift in enumerate(shape.cell_shifts):
        codes |= exponents[:, cell] << np.uint64(shift)
    return codes


def tile_exponents(tiles: NDArray[np.int64]) -> NDArray[np.int64]:
    """Exponents of tile numbers, 0 for an empty cell."""
    return np.bitwise_count(np.maximum(tiles - 1, 0)).astype(np.int64)


def unpack_boards(codes: NDArray[np.uint64], shape: Shape) -> NDArray[np.int64]:
    """Tile numbers of packed boards: uint64[n] -> int64[n, rows, columns]."""
    shifts = np.array(shape.cell_shifts, dtype=np.uint64)
    exponents = (codes[:, None] >> shifts & np.uint64(15)).astype(np.int64)
    tiles = np.where(exponents == 0, 0, np.int64(1) << exponents)
    return tiles.reshape(len(codes), shape.num_rows, shape.num_columns)


def format_board(tiles: Any) -> str:
    """A board of tile numbers as one line, ``2 . / . 4``."""
    return " / ".join(" ".join(str(tile) if tile else "." for tile in row) for row in tiles)
