"""The backward pass: the values of one age after another, from the top age down.

Values of age n need only those of the ages n + 2 and n + 4::

    w(afterstate of n) = mean over spawns of w(states of n + 2 and n + 4) - spawn gain
    w(state of n)      = max(floor, max over moves of w(afterstate of n))

with ``w = v + potential`` as in `solver2048.objective`. Everything is float64 and every sum has a
fixed order, so that the values are the same to the bit for any number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .forward import SPAWN_EXPONENTS, start_boards
from .kernels.moves import TARGET_BUFFER
from .kernels.values import add_spawn_values, best_moves, positions_into, subtract_potential
from .layer_index import LayerIndex, board_slots, build_layer_index
from .objective import Objective
from .shape import Shape
from .tables import build_tables
from .workers import Workers


@dataclass(frozen=True)
class StateValues:
    """The values of a layer's states, as the window keeps them.

    states : ranked bitmap; values : float64[number of states], ``w`` in index order
    """

    index: LayerIndex
    states: NDArray[np.uint64]
    values: NDArray[np.float64]


@dataclass(frozen=True)
class Problem:
    """What a backward pass works for."""

    shape: Shape
    objective: Objective
    spawn4: float

    def spawn_probability(self, exponent: int) -> float:
        return self.spawn4 if exponent == 2 else 1.0 - self.spawn4


def value_layer(
    problem: Problem,
    age: int,
    state_ranks: NDArray[np.uint64],
    afterstate_ranks: NDArray[np.uint64],
    window: dict[int, StateValues],
    workers: Workers,
) -> tuple[StateValues, NDArray[np.float64]]:
    """Values of a layer: (its states' ``w``, its afterstates' values v), in index order.

    state_ranks, afterstate_ranks : ranked bitmaps of the layer
    window : state values by age; those of ``age + 2`` and ``age + 4`` are read where the layer has
        afterstates, and a missing one is a KeyError
    """
    shape, objective = problem.shape, problem.objective
    tables = build_tables(shape)
    index = build_layer_index(shape, age)
    num_slots = int(index.num_slots)
    values = afterstate_sums(problem, index, afterstate_ranks, window, workers)
    state_values = np.empty(int(state_ranks[-1]))
    floors, floor_cap = objective.floors(shape), objective.floor_cap
    potentials = objective.potentials(shape)

    def choose(start: np.uint64, stop: np.uint64) -> None:
        targets = np.empty(TARGET_BUFFER, dtype=np.uint64)
        positions = np.empty(TARGET_BUFFER, dtype=np.uint64)
        best_moves(
            tables, index, floors, floor_cap, state_ranks, afterstate_ranks, values, state_values,
            targets, positions, start, stop,
        )  # fmt: skip

    def take_potential_off(start: np.uint64, stop: np.uint64) -> None:
        subtract_potential(tables, index, potentials, afterstate_ranks, values, start, stop)

    workers.run((num_slots, choose))
    if not objective.exponent:
        workers.run((num_slots, take_potential_off))
    return StateValues(index, state_ranks, state_values), values


def afterstate_sums(
    problem: Problem,
    index: LayerIndex,
    afterstate_ranks: NDArray[np.uint64],
    window: dict[int, StateValues],
    workers: Workers,
) -> NDArray[np.float64]:
    """``w`` of a layer's afterstates, in index order; `window` as `value_layer` reads it."""
    tables = build_tables(problem.shape)
    values = np.full(int(afterstate_ranks[-1]), -problem.objective.spawn_gain(problem.spawn4))
    age = int(index.age)
    above = [(e, window[age + 2**e]) for e in SPAWN_EXPONENTS] if len(values) else []

    def average(start: np.uint64, stop: np.uint64) -> None:
        sums = np.empty(64)
        for exponent, layer in above:
            share = problem.spawn_probability(exponent)
            add_spawn_values(
                tables, index, layer.index, np.uint64(exponent), share, afterstate_ranks,
                layer.states, layer.values, values, sums, start, stop,
            )  # fmt: skip

    workers.run((int(index.num_slots), average))
    return values


def start_values(problem: Problem, layer: StateValues) -> dict[int, float]:
    """Value of every start board of a layer's age, by its code."""
    codes = start_boards(problem.shape, int(layer.index.age))
    slots = board_slots(problem.shape, layer.index, codes)
    positions = np.empty(len(slots), dtype=np.uint64)
    positions_into(layer.states, slots, positions)
    # Two tiles below 8: their potential is 4 for each 4.
    potentials = np.array(
        [0.0 if problem.objective.exponent else 4.0 * _num_fours(int(code)) for code in codes]
    )
    values = layer.values[positions] - potentials
    return dict(zip(codes.tolist(), values.tolist(), strict=True))


def _num_fours(code: int) -> int:
    return f"{code:x}".count("2")
