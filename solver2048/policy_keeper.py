"""What a solve keeps that makes a policy table: of every band, the best actions of its states.

They are chosen from the values of the pass, in float64. Stored values would not be enough: two
actions that differ by less than their rounding would be taken for equal.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .backward import Problem, StateValues
from .keeper import BandKeeper, Keeper
from .kernels.policy import optimal_actions_into
from .layer import Band
from .layer_sets import LayerSets, StoredBand
from .options import EVERY_STATE
from .policy_bands import PolicyBandBuilder, map_members
from .store import Store
from .tables import build_tables
from .workers import Workers


class PolicyKeeper(Keeper):
    """Keeps one best action of every state, and no values but those of the start boards."""

    @property
    def kind(self) -> str:
        return self.problem.objective.policy_kind

    @property
    def facts(self) -> dict[str, Any]:
        return {"objective": self.problem.objective.name, "reach": EVERY_STATE}

    def begin(self, sets: LayerSets, band: Band, workers: Workers) -> PolicyBandKeeper:
        return PolicyBandKeeper(self, sets, band, workers)


class PolicyBandKeeper(BandKeeper):
    """Chooses the best actions of a band's layers, and stores them together."""

    def __init__(self, keeper: PolicyKeeper, sets: LayerSets, band: Band, workers: Workers) -> None:
        self._kind, self._problem = keeper.kind, keeper.problem
        self._workers = workers
        num_members = {age: sets.layer_counts(age).state_members for age in band.ages}
        self._builder = PolicyBandBuilder(keeper.problem.shape, band, num_members)
        self.num_bytes = self._builder.num_bytes

    def add(self, layer: StateValues, afterstates: StateValues, stored: StoredBand) -> None:
        masks = best_actions(self._problem, layer, afterstates, self._workers)
        self._builder.add(layer.index, layer.states, masks, self._workers)

    def commit(self, store: Store) -> None:
        self._builder.commit(store, self._kind, self._workers)


def best_actions(
    problem: Problem, layer: StateValues, afterstates: StateValues, workers: Workers
) -> NDArray[np.uint8]:
    """The best actions of a layer's states as masks, uint8[n] in index order, 0 if terminal.

    layer : of which the states alone are read; afterstates : their values v
    """
    shape, index = problem.shape, layer.index
    tables = build_tables(shape)
    potentials = problem.objective.row_potentials(shape)
    allowance = problem.objective.arithmetic_allowance(shape)
    masks = np.empty(int(layer.states[-1]), dtype=np.uint8)

    def choose(codes: NDArray[np.uint64], place: slice) -> None:
        moved = np.empty((len(codes), 4), dtype=np.uint64)
        optimal_actions_into(
            tables, index, potentials, allowance, afterstates.states, afterstates.values,
            codes, moved, np.empty_like(moved), np.empty(4), masks[place],
        )  # fmt: skip

    map_members(shape, index, layer.states, workers, choose)
    return masks
