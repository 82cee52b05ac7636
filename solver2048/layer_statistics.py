"""Statistics of a layer: the values of its states, and how much their actions differ.

All means and shares are over *labelled boards*: every member of a set counts as often as it has
different images under the flips. That is the same for square boards and others. Sums are taken
over ranges of a fixed size and added by `math.fsum`, so that they do not depend on threads.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elias_fano.ranked import select_into

from .backward import Problem, StateValues
from .kernels.actions import action_values_into
from .kernels.moves import moves_into
from .kernels.statistics import compare_actions_into, sum_state_values
from .layer_index import LayerIndex, member_boards, slot_boards
from .objective import merge_potentials
from .shape import Shape
from .tables import build_tables, row_cells
from .value_format import ValueFormat, parse_value_format
from .workers import Workers

ALL = slice(None)

SUMMED_SLOTS = 1 << 18
COMPARED_WORDS = 1 << 10

# Comparing all actions takes longer than all else of a pass, which does it for a sample.
SAMPLE_MEMBERS, SAMPLE_SHARE, MAX_SAMPLE = 1 << 9, 1 / 512, 1 << 16


@dataclass(frozen=True)
class LayerStatistics:
    """What the states of a layer say together, over labelled boards.

    state_mean, state_min, state_max : values of the states
    largest_tile : among the states
    compared : members whose actions were compared; a random sample, or all
    gap_mean : best less second best action value, over boards with two legal actions or more; None
        if there are none
    single_share, tied_share : of boards with one legal action, and with several best actions
    """

    state_mean: float
    state_min: float
    state_max: float
    largest_tile: int
    compared: int
    gap_mean: float | None
    single_share: float
    tied_share: float


class States(NamedTuple):
    """States of a layer with all that their actions say.

    codes : uint64[n]
    action_values, afterstate_values : float64[n, 4], actions of the packed board, NaN where illegal
    values : float64[n]
    gaps : float64[n], best less second best; NaN with fewer than two legal actions
    num_legal, images, largest : uint8[n], legal actions, images under the flips, exponent of the
        largest tile
    """

    codes: NDArray[np.uint64]
    action_values: NDArray[np.float64]
    afterstate_values: NDArray[np.float64]
    values: NDArray[np.float64]
    gaps: NDArray[np.float64]
    num_legal: NDArray[np.uint8]
    images: NDArray[np.uint8]
    largest: NDArray[np.uint8]


@dataclass(frozen=True)
class ValuedLayer:
    """The afterstates of a layer with their values v, as stored in a format.

    afterstates : ranked bitmap; values : float64[number of afterstates], in index order
    """

    index: LayerIndex
    afterstates: NDArray[np.uint64]
    values: NDArray[np.float64]
    format: ValueFormat

    @functools.cached_property
    def largest_bound(self) -> float:
        """How far any stored value of the layer can be from the one computed."""
        return float(self.format.rounding_bound(self.values.max(initial=0.0)))

    def describe(self, problem: Problem, codes: NDArray[np.uint64]) -> States:
        """All that the actions of some of the layer's states say."""
        shape, objective = problem.shape, problem.objective
        tables = build_tables(shape)
        count = len(codes)
        slots = np.empty((count, 4), dtype=np.uint64)
        found, rewards = np.empty((count, 4)), np.empty((count, 4))
        action_values_into(tables, self.index, self.afterstates, self.values, codes, slots, found)
        if objective.exponent:
            rewards[:], floors = 0.0, objective.floors(shape)
        else:
            moves_into(tables, merge_potentials(shape), codes, slots, rewards)
            floors = np.zeros(len(tables.rows))
        values, gaps = np.empty(count), np.empty(count)
        num_legal, images, largest = (np.empty(count, dtype=np.uint8) for _ in range(3))
        action_values = rewards + found
        compare_actions_into(
            tables, floors, objective.floor_cap, row_exponents(shape), codes,
            action_values, values, gaps, num_legal, images, largest,
        )  # fmt: skip
        return States(codes, action_values, found, values, gaps, num_legal, images, largest)

    def best_actions(
        self, problem: Problem, states: States, chosen: NDArray[np.intp] | slice = ALL
    ) -> NDArray[np.bool_]:
        """bool[n, 4]: the best actions of some states, ties for all that is stored included."""
        return self.format.best_actions(
            states.action_values[chosen],
            states.afterstate_values[chosen],
            problem.objective.arithmetic_allowance(problem.shape),
        )

    def is_tied(self, problem: Problem, states: States) -> NDArray[np.bool_]:
        """bool[n]: whether a state has several best actions."""
        allowance = problem.objective.arithmetic_allowance(problem.shape)
        # Most are not even near: only of the others every value's own bound is asked for.
        tied: NDArray[np.bool_] = states.gaps <= 2 * (self.largest_bound + allowance)
        near = np.flatnonzero(tied)
        tied[near] = self.best_actions(problem, states, near).sum(axis=1) > 1
        return tied


class _Sums(NamedTuple):
    """Sums over some states, weighted by their images."""

    compared: int
    boards: int
    values: float
    least: float
    greatest: float
    largest: int
    gap_boards: int
    gaps: float
    single: int
    tied: int


@functools.cache
def row_exponents(shape: Shape) -> NDArray[np.uint8]:
    """Exponent of the largest tile of every row, by ordinal."""
    cells = row_cells(build_tables(shape).rows.astype(np.int64))
    exponents: NDArray[np.uint8] = cells.max(axis=1).astype(np.uint8)
    return exponents


def layer_statistics(
    problem: Problem, layer: ValuedLayer, states: NDArray[np.uint64], workers: Workers
) -> LayerStatistics:
    """Statistics of all states of a layer, given by their bitmap; every action is compared."""

    def add(start: int, stop: int) -> _Sums:
        codes = member_boards(problem.shape, layer.index, states, start, stop)
        return _sum(problem, layer, layer.describe(problem, codes))

    sums = workers.run_pieces(len(states), COMPARED_WORDS, add)
    boards = sum(part.boards for part in sums)
    return LayerStatistics(
        state_mean=math.fsum(part.values for part in sums) / boards,
        state_min=min(part.least for part in sums),
        state_max=max(part.greatest for part in sums),
        largest_tile=1 << max(part.largest for part in sums),
        **_compared(sums),
    )


def collect_statistics(
    problem: Problem,
    layer: StateValues,
    afterstates: StateValues,
    num_labelled: int,
    workers: Workers,
) -> LayerStatistics:
    """Statistics of a layer just computed: of values exact, of actions by a sample of the states.

    layer : the states' ``w``; afterstates : the afterstates' values v
    num_labelled : labelled boards among the states
    """
    tables = build_tables(problem.shape)
    potentials = problem.objective.potentials(problem.shape)
    exponents = row_exponents(problem.shape)
    class_exponents = np.maximum.reduceat(exponents, tables.class_start.astype(np.int64))

    def add(start: int, stop: int) -> tuple[float, float, float, int]:
        found: tuple[float, float, float, int] = sum_state_values(
            tables, layer.index, potentials, exponents, class_exponents, layer.states,
            layer.values, np.uint64(start), np.uint64(stop),
        )  # fmt: skip
        return found

    sums = workers.run_pieces(int(layer.index.num_slots), SUMMED_SLOTS, add)
    totals, least, greatest, largest = zip(*sums, strict=True)
    in_full = parse_value_format("float64", 0)
    valued = ValuedLayer(afterstates.index, afterstates.states, afterstates.values, in_full)
    slots = sampled_slots(np.random.default_rng([int(layer.index.age), 2]), layer.states,
                          _sample_size(len(layer.values)))  # fmt: skip
    sampled = valued.describe(problem, slot_boards(problem.shape, layer.index, slots))
    return LayerStatistics(
        state_mean=math.fsum(totals) / num_labelled,
        state_min=min(least),
        state_max=max(greatest),
        largest_tile=1 << int(max(largest)),
        **_compared([_sum(problem, valued, sampled)]),
    )


def sampled_slots(
    rng: np.random.Generator, ranks: NDArray[np.uint64], count: int
) -> NDArray[np.uint64]:
    """Slots of `count` members of a ranked bitmap, all alike, rising; of all if there are fewer."""
    num_members = int(ranks[-1])
    if count < num_members:
        positions = np.sort(rng.choice(num_members, count, replace=False))
    else:
        positions = np.arange(num_members)
    slots = np.empty(len(positions), dtype=np.uint64)
    select_into(ranks, positions.astype(np.uint64), slots)
    return slots


def _sample_size(num_members: int) -> int:
    return min(max(SAMPLE_MEMBERS, int(SAMPLE_SHARE * num_members)), MAX_SAMPLE)


def _sum(problem: Problem, layer: ValuedLayer, states: States) -> _Sums:
    images = states.images
    several = states.num_legal > 1
    return _Sums(
        compared=len(images),
        boards=int(images.sum(dtype=np.int64)),
        values=float((images * states.values).sum()),
        least=float(states.values.min(initial=np.inf)),
        greatest=float(states.values.max(initial=-np.inf)),
        largest=int(states.largest.max(initial=0)),
        gap_boards=int(images[several].sum(dtype=np.int64)),
        gaps=float((images[several] * states.gaps[several]).sum()),
        single=int(images[states.num_legal == 1].sum(dtype=np.int64)),
        tied=int(images[layer.is_tied(problem, states)].sum(dtype=np.int64)),
    )


def _compared(sums: Iterable[_Sums]) -> dict[str, Any]:
    """What is known of actions by the sums of some states."""
    parts = list(sums)
    boards = sum(part.boards for part in parts)
    gap_boards = sum(part.gap_boards for part in parts)
    return {
        "compared": sum(part.compared for part in parts),
        "gap_mean": math.fsum(part.gaps for part in parts) / gap_boards if gap_boards else None,
        "single_share": sum(part.single for part in parts) / boards,
        "tied_share": sum(part.tied for part in parts) / boards,
    }
