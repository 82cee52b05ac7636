"""The tables of the paper's radix numbers, of one age; see `.ids`."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .kernels.radix import HEAD_SHIFT, MIRROR_HEAD_SHIFT, MIRROR_NUMBER_SHIFT, SUM_SHIFT
from .shape import Shape
from .tables import row_cells


class Radix(NamedTuple):
    """The radix IDs of one age, as kernels take them.

    base : one more than the largest exponent
    weight0, weight1 : place values of rows 0 and 1
    last_shift : bit position of the cell left out
    row_numbers : uint64[65536], by row code: the row as a number in the base, the same of the
        reversed row, then both without the last digit
    number_rows : uint32[base ** line_length], by number: row code and sum of the tiles
    """

    age: np.uint64
    base: np.uint64
    weight0: np.uint64
    weight1: np.uint64
    last_shift: np.uint64
    row_numbers: NDArray[np.uint64]
    number_rows: NDArray[np.uint32]


def radix_base(age: int) -> int:
    """One more than the largest exponent possible at an age.

    No cap by the shape: the top age is below ``2^(max_exponent + 1)``.
    """
    return age.bit_length()


@functools.lru_cache(maxsize=32)
def _build_radix(shape: Shape, base: int) -> Radix:
    """The tables of a base, for no age yet."""
    length = shape.line_length
    places = base ** np.arange(length - 1, -1, -1)
    numbers = np.arange(base**length)
    digits = numbers[:, None] // places % base
    rows = (digits << np.array([12, 8, 4, 0])[:length]).sum(axis=1)
    cells = row_cells(rows)
    sums = np.where(cells > 0, 1 << cells, 0).sum(axis=1)
    mirrors = (digits[:, ::-1] * places).sum(axis=1)
    row_numbers = np.zeros(1 << 16, dtype=np.uint64)
    row_numbers[rows] = _pack_numbers(numbers, mirrors, base)
    # On boards of two rows row 1 is empty: its number is 0, whatever its place value.
    weight1 = base ** (length - 1)
    weight0 = weight1 * base ** (length * (len(shape.packed_rows) - 2))
    return Radix(
        age=np.uint64(0),
        base=np.uint64(base),
        weight0=np.uint64(weight0),
        weight1=np.uint64(weight1),
        last_shift=np.uint64(min(shape.cell_shifts)),
        row_numbers=row_numbers,
        number_rows=(rows | sums << int(SUM_SHIFT)).astype(np.uint32),
    )


def _pack_numbers(
    numbers: NDArray[np.int64], mirrors: NDArray[np.int64], base: int
) -> NDArray[np.uint64]:
    """The words of `Radix.row_numbers`: 16 bits hold a number, as 14^4 is below 2^16."""
    packed: NDArray[np.uint64] = (
        numbers.astype(np.uint64)
        | mirrors.astype(np.uint64) << MIRROR_NUMBER_SHIFT
        | (numbers // base).astype(np.uint64) << HEAD_SHIFT
        | (mirrors // base).astype(np.uint64) << MIRROR_HEAD_SHIFT
    )
    return packed


def build_radix(shape: Shape, age: int) -> Radix:
    """The radix IDs of an age."""
    return _build_radix(shape, radix_base(age))._replace(age=np.uint64(age))
