"""Afterstate values on disk: a band of ages in one array, each age in the order of its set."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .bands import bands_of
from .errors import NotSolved, SolutionDamaged
from .layer import Band
from .layer_sets import KIND as SETS
from .layer_sets import LayerSets, StoredBand, check_parents
from .objective import Objective
from .store import ArrayToWrite, Store
from .stored_array import StoredArray
from .value_format import ValueFormat, parse_value_format

NAME = "afterstates"


class ValueBandBuilder:
    """Collects the values of a band's layers, in any order of ages, for `Store.write_band`."""

    def __init__(self, sets: LayerSets, band: Band, value_format: ValueFormat) -> None:
        self._band = band
        self._format = value_format
        self._parent = {f"{SETS}/{band.name}": sets.store.manifest_digest(SETS, band)}
        sizes = [sets.layer_counts(age).afterstate_members for age in band.ages]
        stops = np.cumsum(sizes).tolist()
        self._ranges = {
            age: (stop - size, stop)
            for age, size, stop in zip(band.ages, sizes, stops, strict=True)
        }
        self._items = np.empty(stops[-1], dtype=value_format.dtype)
        self._max: dict[int, float] = {}

    def add(
        self,
        age: int,
        values: NDArray[np.float64],
        stored: StoredBand,
        ranks: NDArray[np.uint64],
    ) -> None:
        """Add a layer's values, in index order.

        stored, ranks : its band's sets, and the ranked bitmap of its afterstates
        """
        start, stop = self._ranges[age]
        items = self._items[start:stop]
        for part, positions in stored.index_order(age, NAME, ranks):
            items[part] = self._format.encode(values[positions])
        self._max[age] = float(values.max(initial=0.0))

    def commit(self, store: Store, kind: str, spawn4: float) -> None:
        """Write the band, made for this probability of a 4."""
        layers = [
            {"age": age, "values": list(self._ranges[age]), "max": self._max[age]}
            for age in self._band.ages
        ]
        record = {
            "values": self._format.name,
            "spawn4": spawn4,
            "layers": layers,
            "parents": self._parent,
        }
        arrays = {NAME: ArrayToWrite("values", self._items, self._format.missing)}
        store.write_band(kind, self._band, arrays, record)


def stored_objectives(store: Store) -> list[str]:
    """Names of the objectives with values, finished or not. Raises SolutionDamaged."""
    names = []
    for directory in store.record_names("values/*"):
        record = store.read_record(f"{directory}/objective.json")
        if record is None:
            raise SolutionDamaged(f"{store.path / directory}/objective.json is missing")
        names.append(str(record.get("objective")))
    return names


class Values:
    """The stored values of one objective, by age."""

    def __init__(self, sets: LayerSets, objective: Objective) -> None:
        self._store = sets.store
        spawn4 = self._store.identity()["spawn4"]
        self.objective = objective
        self.kind = objective.values_kind
        record = self._store.read_record(f"{self.kind}/objective.json")
        if record is None:
            there = ", ".join(stored_objectives(self._store)) or "none yet: forward pass only"
            raise NotSolved(
                f"{self._store.path} has no values for the objective {objective.name} "
                f"(there are: {there}); `solver2048 solve {sets.shape.name} --objective "
                f"{objective.name} --out {self._store.path}` computes them"
            )
        self.format = parse_value_format(str(record.get("values")), objective.max_value(sets.shape))
        self._arrays: dict[Band, StoredArray] = {}
        self._places: dict[int, tuple[Band, int, int]] = {}
        self.bands: list[Band] = []
        self.max_value = 0.0
        for band in sets.bands:
            manifest = self._store.manifest(self.kind, band)
            if manifest is None:
                continue
            if manifest["spawn4"] != spawn4:
                raise SolutionDamaged(f"{self.kind}/{band.name} is of p(4) = {manifest['spawn4']}")
            if manifest["values"] != self.format.name:
                raise SolutionDamaged(
                    f"{self.kind}/{band.name} has values {manifest['values']}, the others "
                    f"{self.format.name}"
                )
            self.bands.append(band)
            for layer in manifest["layers"]:
                start, stop = (int(i) for i in layer["values"])
                age = int(layer["age"])
                if stop - start != sets.layer_counts(age).afterstate_members:
                    raise SolutionDamaged(f"age {age}: {stop - start} values for another set")
                self._places[age] = (band, start, stop)
                self.max_value = max(self.max_value, float(layer["max"]))
        self.result = self._store.read_record(f"{self.kind}/result.json")
        if self.result and (self.result["spawn4"], self.result["values"]) != (
            spawn4,
            self.format.name,
        ):
            raise SolutionDamaged(f"{self.kind}/result.json is of another solution")
        missing = set(bands_of(sets.shape)) - set(self.bands)
        if self.result and missing:
            raise SolutionDamaged(
                f"{self.kind}/{min(missing).name}: the band is missing; `solve` computes it again"
            )

    def check_parents(self, band: Band) -> None:
        """Make sure that a band's values belong to the sets stored. Raises SolutionDamaged."""
        check_parents(self._store, self.kind, band)

    def take(self, age: int, positions: NDArray[np.int64]) -> NDArray[np.float64]:
        """Values of the afterstates at the given positions of their layer's set."""
        if age not in self._places:
            raise NotSolved(f"age {age} has no values yet; `solve` goes on where it stopped")
        band, start, _ = self._places[age]
        if band not in self._arrays:
            self.check_parents(band)
            self._arrays[band] = self._store.open_array(self.kind, band, NAME, self.format.missing)
        return self.format.decode(self._arrays[band].take(positions + start))
