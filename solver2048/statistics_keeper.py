"""What a solve keeps that stores no values: of every band, the statistics of its states."""

from __future__ import annotations

from typing import Any

from .backward import StateValues
from .bands import bands_of
from .keeper import BandKeeper, Keeper
from .kept_records import UNSTORED, read_kept, record_name
from .layer import Band
from .layer_sets import LayerSets, StoredBand
from .layer_statistics import collect_statistics
from .store import Store
from .workers import Workers


class StatisticsKeeper(Keeper):
    """Keeps no values but those of the start boards, and statistics."""

    has_arrays = False

    @property
    def facts(self) -> dict[str, Any]:
        return {"objective": self.problem.objective.name, "values": UNSTORED}

    def begin(self, sets: LayerSets, band: Band, workers: Workers) -> StatisticsBandKeeper:
        return StatisticsBandKeeper(self, sets, band, workers)

    def bounds(self, store: Store) -> dict[str, Any]:
        """The largest value; nothing is rounded."""
        kept = [read_kept(store, self.kind, band) for band in bands_of(self.problem.shape)]
        largest = max(layer["max"] for record in kept if record for layer in record["layers"])
        return {"values": UNSTORED, "max_value": largest, "rounding_bound": 0.0}


class StatisticsBandKeeper(BandKeeper):
    """Collects the statistics of a band's layers."""

    def __init__(
        self, keeper: StatisticsKeeper, sets: LayerSets, band: Band, workers: Workers
    ) -> None:
        self._kind, self._problem = keeper.kind, keeper.problem
        self._sets, self._band, self._workers = sets, band, workers
        self._layers: list[dict[str, Any]] = []

    def add(self, layer: StateValues, afterstates: StateValues, stored: StoredBand) -> None:
        age = int(layer.index.age)
        labelled = self._sets.layer_counts(age).states_labelled
        noted = collect_statistics(self._problem, layer, afterstates, labelled, self._workers)
        largest = float(afterstates.values.max(initial=0.0))
        self._layers.append({"age": age, "max": largest, "statistics": vars(noted)})

    def commit(self, store: Store) -> None:
        store.write_record(
            record_name(self._kind, self._band),
            {
                "kind": self._kind,
                "band": [self._band.first, self._band.last],
                "identity": store.kind_identity(self._kind),
                "layers": self._layers[::-1],
            },
        )
