"""The forward pass: the states and afterstates of one age after another.

The states of an age are the spawns of a 2 on the afterstates of the age 2 below and of a 4 on
those of the age 4 below, and the start boards; its afterstates are their moves. Three layers are
in memory at a time.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elias_fano.bits import empty_bitmap

from .kernels.members import count_diagonal, count_members, count_missing_images
from .kernels.moves import TARGET_BUFFER, mark_moves
from .kernels.slots import mark_slots
from .kernels.spawns import mark_spawns
from .layer import LayerCounts
from .layer_index import LayerIndex, board_slots, build_layer_index
from .shape import Shape
from .tables import build_tables
from .workers import Job, Workers

SPAWN_EXPONENTS = (1, 2)

START_AGES = {"2,2": 4, "2,4": 6, "4,4": 8}
"""Age of each class of start boards, named by their two tiles."""


@dataclass(frozen=True)
class Layer:
    """All boards of one age: uint64[ceil(slots / 64)], bitmaps in index order."""

    index: LayerIndex
    states: NDArray[np.uint64]
    afterstates: NDArray[np.uint64]
    counts: LayerCounts


@dataclass(frozen=True)
class AfterstateLayer:
    """What the window keeps of a layer: uint64[ceil(slots / 64)], a bitmap in index order."""

    index: LayerIndex
    afterstates: NDArray[np.uint64]


@functools.cache
def start_boards(shape: Shape, age: int) -> NDArray[np.uint64]:
    """Codes of all start boards of an age, two tiles on two cells each once; none above age 8."""
    boards = [
        first << shift | second << other
        for shift, other in itertools.combinations(shape.cell_shifts, 2)
        for first, second in itertools.product(SPAWN_EXPONENTS, repeat=2)
        if 2**first + 2**second == age
    ]
    return np.array(boards, dtype=np.uint64)


@functools.cache
def _diagonal_boards(shape: Shape) -> dict[int, NDArray[np.uint64]]:
    """By age, the codes of a square board that a transpose or quarter turn leaves as they are.

    Every board whose class modulo the flips a transpose leaves alone has one of these as a flip.
    """
    size = shape.num_rows
    cells = [(i, j) for i in range(size) for j in range(size)]

    def boards(orbit_of: Callable[[int, int], tuple[int, int]]) -> NDArray[np.uint64]:
        representatives = {cell: orbit_of(*cell) for cell in cells}
        orbits = sorted(set(representatives.values()))
        codes = np.zeros(1, dtype=np.uint64)
        for orbit in orbits:
            spread = sum(
                1 << shape.cell_shift(*cell) for cell in cells if representatives[cell] == orbit
            )
            exponents = np.arange(shape.max_exponent + 1, dtype=np.uint64)
            codes = (codes[:, None] | exponents * np.uint64(spread)).reshape(-1)
        return codes

    def quarter_turns(i: int, j: int) -> tuple[int, int]:
        end = size - 1
        return min((i, j), (j, end - i), (end - i, end - j), (end - j, i))

    codes = np.concatenate([boards(lambda i, j: (min(i, j), max(i, j))), boards(quarter_turns)])
    ages = np.zeros(len(codes), dtype=np.int64)
    for shift in shape.cell_shifts:
        exponents = (codes >> np.uint64(shift) & np.uint64(15)).astype(np.int64)
        ages += np.where(exponents == 0, 0, 1 << exponents)
    order = np.argsort(ages, kind="stable")
    starts = np.flatnonzero(np.diff(ages[order], prepend=-1))
    return {int(ages[group[0]]): codes[group] for group in np.split(order, starts[1:])}


def enumerate_layer(
    shape: Shape, age: int, window: dict[int, AfterstateLayer], workers: Workers
) -> Layer:
    """The layer of an age from the afterstates of the two ages below.

    window : afterstates by age; those of ``age - 2`` and ``age - 4`` are read, KeyError without
    """
    tables = build_tables(shape)
    index = build_layer_index(shape, age)
    num_slots = int(index.num_slots)
    states = mark_states(shape, index, window, workers)
    afterstates = empty_bitmap(num_slots)

    def move(start: np.uint64, stop: np.uint64) -> int:
        targets = np.empty(TARGET_BUFFER, dtype=np.uint64)
        return int(mark_moves(tables, index, states, afterstates, targets, start, stop))

    terminal_members = sum(workers.run((num_slots, move)))
    counts = _count_layer(shape, index, states, afterstates, terminal_members)
    return Layer(index, states, afterstates, counts)


def mark_states(
    shape: Shape, index: LayerIndex, window: dict[int, AfterstateLayer], workers: Workers
) -> NDArray[np.uint64]:
    """Bitmap of the states of an age: start boards, and spawns on `window`'s afterstates."""
    age = int(index.age)
    states = empty_bitmap(int(index.num_slots))
    mark_slots(board_slots(shape, index, start_boards(shape, age)), states)
    workers.run(
        *(
            _spawn_job(shape, window[age - 2**exponent], index, exponent, states)
            for exponent in SPAWN_EXPONENTS
            if age - 2**exponent >= min(START_AGES.values())
        )
    )
    return states


def slide(window: dict[int, AfterstateLayer], layer: AfterstateLayer) -> None:
    """Take the layer of the next age into a window, and the one not needed any more out of it."""
    age = int(layer.index.age)
    window[age] = layer
    window.pop(age - 4, None)


def _spawn_job(
    shape: Shape,
    below: AfterstateLayer,
    index: LayerIndex,
    exponent: int,
    states: NDArray[np.uint64],
) -> Job:
    """Marking the states that a spawn on a lower layer's afterstates leads to."""
    tables = build_tables(shape)
    tile = np.uint64(exponent)

    def spawn(start: np.uint64, stop: np.uint64) -> None:
        mark_spawns(tables, below.index, index, tile, below.afterstates, states, start, stop)

    return int(below.index.num_slots), spawn


def _count_layer(
    shape: Shape,
    index: LayerIndex,
    states: NDArray[np.uint64],
    afterstates: NDArray[np.uint64],
    terminal_members: int,
) -> LayerCounts:
    """Counts of a layer; the sets hold boards modulo the flips, the counts are modulo all.

    Classes modulo the transpose too are half of (members + members the transpose leaves alone).
    """
    tables = build_tables(shape)
    members = [int(count_members(bitmap)) for bitmap in (states, afterstates)]
    labelled = [
        4 * count - int(count_missing_images(tables, index, bitmap))
        for count, bitmap in zip(members, (states, afterstates), strict=True)
    ]
    classes = [*members, terminal_members]
    if shape.is_square:
        codes = _diagonal_boards(shape).get(int(index.age), np.empty(0, dtype=np.uint64))
        slots, first = np.unique(board_slots(shape, index, codes), return_index=True)
        fixed = count_diagonal(tables, slots, codes[first], states, afterstates)
        classes = [
            (count + int(num_fixed)) // 2 for count, num_fixed in zip(classes, fixed, strict=True)
        ]
    return LayerCounts(
        age=int(index.age),
        states=classes[0],
        states_labelled=labelled[0],
        afterstates=classes[1],
        afterstates_labelled=labelled[1],
        terminal=classes[2],
        state_members=members[0],
        afterstate_members=members[1],
        num_slots=int(index.num_slots),
    )
