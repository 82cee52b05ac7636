"""Supported board shapes, their names, and where their cells lie in a packed board.

A packed board (*code*) has three rows of four 4-bit exponents, 48 bits:
``row0 << 32 | row1 << 16 | row2``, the first cell of a row in its highest four bits. Smaller
boards leave cells unused: boards of two rows use rows 0 and 2, boards of three columns the first
three cells of a row. A 4x3 board lies transposed, its four-cell lines as rows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .errors import UsageError

ACTIONS = ("up", "down", "left", "right")
"""The actions, in the order in which every interface lists them."""

TRANSPOSED_ACTIONS = (2, 3, 0, 1)
"""For each action, the number of the one that does the same on the transposed board."""


@dataclass(frozen=True)
class Shape:
    """A board of `num_rows` x `num_columns` cells, as users see and name it."""

    num_rows: int
    num_columns: int

    @property
    def name(self) -> str:
        return f"{self.num_rows}x{self.num_columns}"

    @property
    def num_cells(self) -> int:
        return self.num_rows * self.num_columns

    @property
    def is_square(self) -> bool:
        return self.num_rows == self.num_columns

    @property
    def max_exponent(self) -> int:
        """Exponent of the largest tile: every other cell holds the chain down to a spawned 4."""
        return self.num_cells + 1

    @property
    def top_age(self) -> int:
        """Sum of the full chain 4, 8, ..., 2^max_exponent: no board is older."""
        return (4 << self.num_cells) - 4

    @property
    def max_score(self) -> int:
        """A bound on every score: the potential of the chain that the top age consists of."""
        return sum((exponent - 1) << exponent for exponent in range(2, self.max_exponent + 1))

    @property
    def is_transposed(self) -> bool:
        """Whether packed rows are the columns of the board as named."""
        return self.num_rows > 3

    @property
    def packed_actions(self) -> tuple[int, ...]:
        """For each action, the number of the one that does the same on the packed board."""
        return TRANSPOSED_ACTIONS if self.is_transposed else (0, 1, 2, 3)

    @property
    def line_length(self) -> int:
        """Number of cells used in a packed row."""
        return self.num_rows if self.is_transposed else self.num_columns

    @property
    def packed_rows(self) -> tuple[int, ...]:
        """The packed rows in use."""
        num_lines = self.num_columns if self.is_transposed else self.num_rows
        return (0, 2) if num_lines == 2 else (0, 1, 2)

    def cell_shift(self, row: int, column: int) -> int:
        """Bit position of a cell's exponent in the code."""
        line, cell = (column, row) if self.is_transposed else (row, column)
        return 44 - 16 * self.packed_rows[line] - 4 * cell

    @property
    def cell_shifts(self) -> tuple[int, ...]:
        """Bit positions of all cells, row by row."""
        return tuple(
            self.cell_shift(row, column)
            for row in range(self.num_rows)
            for column in range(self.num_columns)
        )


SHAPES = {f"{rows}x{columns}": Shape(rows, columns) for rows, columns in
          [(2, 2), (2, 3), (2, 4), (3, 3), (4, 3)]}  # fmt: skip


def parse_shape(text: str) -> Shape:
    """The supported shape named ROWSxCOLUMNS; a transposed name means the same game.

    >>> parse_shape("3x4").name
    '4x3'
    """
    match = re.fullmatch(r"\s*(\d{1,3})\s*[x×X*]\s*(\d{1,3})\s*", text)
    if match:
        rows, columns = int(match[1]), int(match[2])
        shape = SHAPES.get(f"{rows}x{columns}") or SHAPES.get(f"{columns}x{rows}")
        if shape:
            return shape
    raise UsageError(
        f"shape {text!r} is not supported; supported are {', '.join(SHAPES)} and their transposes"
    )
