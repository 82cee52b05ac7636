"""Afterstate values on disk: a band of ages in one array, each age in the order of its set."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .bands import bands_of
from .errors import NotSolved, SolutionDamaged
from .layer import Band
from .layer_sets import LayerSets, StoredBand, check_parents
from .objective import Objective
from .records import OBJECTIVE, RESULT, SETS
from .store import Store
from .stored_array import ArrayToWrite, StoredArray
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

    @property
    def num_bytes(self) -> int:
        """Size of the values before they are compressed."""
        return int(self._items.nbytes)

    def commit(self, store: Store, kind: str) -> None:
        """Write the band."""
        layers = [
            {"age": age, "values": list(self._ranges[age]), "max": self._max[age]}
            for age in self._band.ages
        ]
        record = {"values": self._format.name, "layers": layers, "parents": self._parent}
        arrays = {NAME: ArrayToWrite("values", self._items, self._format.missing)}
        store.write_band(kind, self._band, arrays, record)


def stored_objectives(store: Store) -> list[str]:
    """Names of the objectives with values, finished or not. Raises SolutionDamaged."""
    names = []
    for directory in store.value_kinds():
        record = store.read_record(f"{directory}/{OBJECTIVE}")
        if record is None:
            raise SolutionDamaged(f"{store.path / directory / OBJECTIVE} is missing")
        names.append(str(record.get("objective")))
    return names


class Values:
    """The stored values of one objective, by age."""

    def __init__(self, sets: LayerSets, objective: Objective) -> None:
        self._store = sets.store
        self.objective = objective
        self.kind = objective.values_kind
        record = self._store.read_record(f"{self.kind}/{OBJECTIVE}")
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
            self.bands.append(band)
            for layer in manifest["layers"]:
                start, stop = (int(i) for i in layer["values"])
                age = int(layer["age"])
                if stop - start != sets.layer_counts(age).afterstate_members:
                    raise SolutionDamaged(f"age {age}: {stop - start} values for another set")
                self._places[age] = (band, start, stop)
                self.max_value = max(self.max_value, float(layer["max"]))
        self.result = self._store.read_record(f"{self.kind}/{RESULT}")
        identity = self._store.kind_identity(self.kind)
        if self.result and self.result.get("identity") != identity:
            raise SolutionDamaged(f"{self.kind}/{RESULT} is of another solution")
        missing = set(bands_of(sets.shape)) - set(self.bands)
        if self.result and missing:
            raise SolutionDamaged(f"{self.kind}/{min(missing).name}: the band is missing")

    def check_parents(self, band: Band) -> None:
        """Make sure that a band's values belong to the sets stored. Raises SolutionDamaged."""
        check_parents(self._store, self.kind, band)

    def read_band(self, band: Band) -> NDArray[Any]:
        """All values of a band as stored, past the cache. Raises SolutionDamaged."""
        self.check_parents(band)
        return self._store.open_array(self.kind, band, NAME, self.format.missing).read()

    def places(self, age: int) -> tuple[int, int]:
        """Where an age's values begin and end among those of its band."""
        _, start, stop = self._places[age]
        return start, stop

    def take(self, age: int, positions: NDArray[np.int64]) -> NDArray[np.float64]:
        """Values of the afterstates at the given positions of their layer's set."""
        array, start, _ = self._layer(age)
        return self.format.decode(array.take(positions + start))

    def read(self, age: int) -> NDArray[Any]:
        """All values of a layer, as stored, in the order of its set."""
        array, start, stop = self._layer(age)
        return array[start:stop]

    def _layer(self, age: int) -> tuple[StoredArray, int, int]:
        """The array that holds the values of an age, and where they begin and end."""
        if age not in self._places:
            raise NotSolved(f"age {age} has no values yet; `solve` goes on where it stopped")
        band, start, stop = self._places[age]
        if band not in self._arrays:
            self.check_parents(band)
            self._arrays[band] = self._store.open_array(self.kind, band, NAME, self.format.missing)
        return self._arrays[band], start, stop
