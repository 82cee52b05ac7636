"""Whole layers as arrays, part by part."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .board import unpack_boards
from .layer_index import build_layer_index, member_boards
from .lookup import Codes, Lookup
from .shape import Shape

PART_WORDS = 1 << 11
"""Words of a bitmap in a part: up to 131,072 boards, of 150 bytes or so each."""


@dataclass(frozen=True)
class LayerPart:
    """Some states of an age; actions in the order of `ACTIONS`.

    boards : int64[n, rows, columns], tile numbers, 0 for an empty cell; one board of the four
        that the flips make of one another
    values : float64[n]; action_values : float64[n, 4], NaN where an action is illegal
    rewards : float64[n, 4], 0 where an action is illegal
    afterstate_values : float64[n, 4], NaN where an action is illegal
    best : bool[n, 4], the best actions, ties within the stored precision included
    """

    boards: NDArray[np.int64]
    values: NDArray[np.float64]
    action_values: NDArray[np.float64]
    rewards: NDArray[np.float64]
    afterstate_values: NDArray[np.float64]
    best: NDArray[np.bool_]


@dataclass(frozen=True)
class AfterstatePart:
    """Some afterstates of an age: int64[n, rows, columns] and float64[n]."""

    boards: NDArray[np.int64]
    values: NDArray[np.float64]


def state_parts(lookup: Lookup, age: int) -> Iterator[LayerPart]:
    """All states of an age, in index order. Raises NotSolved, SolutionDamaged."""
    layer = lookup.whole_layer(age)
    for codes in _part_codes(lookup.shape, age, layer.states):
        answers = lookup.answer_states(age, layer, codes)
        yield LayerPart(unpack_boards(codes, lookup.shape), *answers[:5])


def afterstate_parts(lookup: Lookup, age: int) -> Iterator[AfterstatePart]:
    """All afterstates of an age, in index order. Raises NotSolved, SolutionDamaged."""
    layer = lookup.whole_layer(age)
    start = 0
    for codes in _part_codes(lookup.shape, age, layer.afterstates[::2]):
        stop = start + len(codes)
        values = lookup.decode_values(layer.values[start:stop])
        yield AfterstatePart(unpack_boards(codes, lookup.shape), values)
        start = stop


def _part_codes(shape: Shape, age: int, bitmap: NDArray[np.uint64]) -> Iterator[Codes]:
    """Packed boards of the members of a bitmap, in parts that are not empty."""
    index = build_layer_index(shape, age)
    for start in range(0, len(bitmap), PART_WORDS):
        codes = member_boards(shape, index, bitmap, start, min(start + PART_WORDS, len(bitmap)))
        if len(codes):
            yield codes
