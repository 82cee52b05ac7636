"""What stays of the values of a backward pass: the interface of all that it may be."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from .backward import Problem, StateValues
from .layer import Band
from .layer_sets import LayerSets, StoredBand
from .store import Store
from .workers import Workers


class BandKeeper(ABC):
    """Takes the layers of a band, downward, and stores what stays of them.

    num_bytes : the most that it will store
    """

    num_bytes: int = 0

    @abstractmethod
    def add(self, layer: StateValues, afterstates: StateValues, stored: StoredBand) -> None:
        """Take a layer: the ``w`` of its states, the v of its afterstates, its band's sets."""

    @abstractmethod
    def commit(self, store: Store) -> None:
        """Write the band; runs beside the computing of the next."""


@dataclass(frozen=True)
class Keeper(ABC):
    """Makes the keepers of all bands.

    has_arrays : whether bands are stored as arrays, with a catalogue in the end
    is_repaired : whether checkpoints are kept from which a lost band is computed again
    """

    problem: Problem
    has_arrays: ClassVar[bool] = True
    is_repaired: ClassVar[bool] = False

    @property
    def kind(self) -> str:
        """Where the store keeps it."""
        return self.problem.objective.values_kind

    @property
    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """What the record of the objective says of it."""

    @abstractmethod
    def begin(self, sets: LayerSets, band: Band, workers: Workers) -> BandKeeper:
        """The keeper of a band whose sets are stored."""

    def bounds(self, store: Store) -> dict[str, Any]:
        """What the result says of the values stored, once all are."""
        return {}
