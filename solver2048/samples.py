"""Random members of layers, and boards as the slow rules take them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from .board import tile_exponents, unpack_boards
from .rules import Board
from .shape import Shape

SEARCHED_WORDS = 1 << 8
"""Up to so many words of a bitmap are searched for members; of more, some are picked blindly."""


def random_members(
    rng: np.random.Generator, bitmap: NDArray[np.uint64], count: int
) -> NDArray[np.uint64]:
    """About `count` members of a bitmap, all if there are no more; of a large one, one a word."""
    if len(bitmap) <= SEARCHED_WORDS:
        words = np.ascontiguousarray(bitmap)
        members = np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little"))
        chosen = rng.choice(members, min(count, len(members)), replace=False)
        return chosen.astype(np.uint64)
    words = np.unique(rng.integers(len(bitmap), size=4 * count))
    words = words[bitmap[words] != 0]
    chosen = rng.choice(words, min(count, len(words)), replace=False)
    bits = np.unpackbits(bitmap[chosen].view(np.uint8).reshape(-1, 8), axis=1, bitorder="little")
    # The greatest of as many random numbers: one of the bits that are set, all alike.
    places = np.argmax(bits * rng.random(bits.shape), axis=1)
    slots: NDArray[np.uint64] = chosen.astype(np.uint64) << np.uint64(6) | places.astype(np.uint64)
    return slots


def holds(bitmap: NDArray[np.uint64], slots: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Whether each slot is a member of a bitmap."""
    bits = bitmap[slots >> np.uint64(6)] >> (slots & np.uint64(63)) & np.uint64(1)
    is_member: NDArray[np.bool_] = bits == 1
    return is_member


def rule_boards(shape: Shape, codes: NDArray[np.uint64]) -> list[Board]:
    """Packed boards as rows of exponents."""
    exponents = tile_exponents(unpack_boards(codes, shape)).tolist()
    return [tuple(tuple(row) for row in board) for board in exponents]


def rule_codes(shape: Shape, boards: Iterable[Board]) -> NDArray[np.uint64]:
    """Boards as rows of exponents, packed; nothing is checked."""
    shifts = shape.cell_shifts
    codes = []
    for board in boards:
        cells = [cell for row in board for cell in row]
        codes.append(sum(cell << shift for cell, shift in zip(cells, shifts, strict=True)))
    return np.array(codes, dtype=np.uint64)
