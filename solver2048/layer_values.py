"""Afterstate values on disk: a band of ages in one array, each age in the order of its set."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .backward import StateValues
from .cache import Cache
from .errors import NotSolved, SolutionDamaged
from .keeper import BandKeeper, Keeper
from .layer import Band
from .layer_sets import MAX_OPEN_LAYERS, OPEN_BYTES, LayerSets, StoredBand, check_parents
from .objective import Objective
from .records import OBJECTIVE, SETS
from .store import Store
from .stored_array import ArrayToWrite, StoredArray
from .value_format import ValueFormat, parse_value_format
from .workers import Workers

NAME = "afterstates"


@dataclass(frozen=True)
class ValueKeeper(Keeper):
    """Keeps the values of all afterstates, in a format."""

    format: ValueFormat
    is_repaired = True

    @property
    def facts(self) -> dict[str, Any]:
        return {"objective": self.problem.objective.name, "values": self.format.name}

    def begin(self, sets: LayerSets, band: Band, workers: Workers) -> ValueBandKeeper:
        return ValueBandKeeper(sets, band, self.kind, self.format)

    def bounds(self, store: Store) -> dict[str, Any]:
        """How values are stored, the largest of them, and how far what is stored can be off."""
        largest = Values(LayerSets(store), self.problem.objective).max_value
        return {
            "values": self.format.name,
            "max_value": largest,
            "rounding_bound": float(self.format.rounding_bound(largest)),
        }


class ValueBandKeeper(BandKeeper):
    """Collects the values of a band's layers, in any order of ages, as stored."""

    def __init__(self, sets: LayerSets, band: Band, kind: str, value_format: ValueFormat) -> None:
        self._band, self._kind = band, kind
        self._format = value_format
        self._parent = {f"{SETS}/{band.name}": sets.store.manifest_digest(SETS, band)}
        sizes = [sets.layer_counts(age).afterstate_members for age in band.ages]
        stops = np.cumsum(sizes).tolist()
        self._ranges = {
            age: (stop - size, stop)
            for age, size, stop in zip(band.ages, sizes, stops, strict=True)
        }
        self._items = np.empty(stops[-1], dtype=value_format.dtype)
        self.num_bytes = self._items.nbytes
        self._max: dict[int, float] = {}

    def add(self, layer: StateValues, afterstates: StateValues, stored: StoredBand) -> None:
        age = int(layer.index.age)
        start, stop = self._ranges[age]
        items = self._items[start:stop]
        for part, positions in stored.index_order(age, NAME, afterstates.states):
            items[part] = self._format.encode(afterstates.values[positions])
        self._max[age] = float(afterstates.values.max(initial=0.0))

    def commit(self, store: Store) -> None:
        layers = [
            {"age": age, "values": list(self._ranges[age]), "max": self._max[age]}
            for age in self._band.ages
        ]
        record = {"values": self._format.name, "layers": layers, "parents": self._parent}
        arrays = {NAME: ArrayToWrite("values", self._items, self._format.missing)}
        store.write_band(self._kind, self._band, arrays, record)


def stored_objectives(store: Store) -> list[str]:
    """Names of the objectives of values or policies, finished or not. Raises SolutionDamaged."""
    names = []
    for directory in store.objective_kinds():
        record = store.read_record(f"{directory}/{OBJECTIVE}")
        if record is None:
            raise SolutionDamaged(f"{store.path / directory / OBJECTIVE} is missing")
        names.append(str(record.get("objective")))
    return names


class _ValuedLayer(NamedTuple):
    """Where the values of a layer lie in its band's array, and the largest of them."""

    start: int
    stop: int
    max: float


def no_values(store: Store) -> NotSolved:
    """The error of what needs values where a policy table lies."""
    return NotSolved(
        f"{store.location} is a policy table: it holds best actions (query, play, simulate; "
        "best_action and policy in Python) and no values: those are in the solution it was made of"
    )


class Values:
    """The stored values of one objective, by age. Safe for several threads.

    result : what the finished objective says, None before
    """

    def __init__(self, sets: LayerSets, objective: Objective) -> None:
        self._sets = sets
        self._store = sets.store
        self.objective = objective
        self.kind = objective.values_kind
        if self._store.keep == "policy":
            raise no_values(self._store)
        record = self._store.record(self.kind, OBJECTIVE)
        if record is None:
            there = ", ".join(stored_objectives(self._store)) or "none yet: forward pass only"
            raise NotSolved(
                f"{self._store.path} has no values for the objective {objective.name} "
                f"(there are: {there}); `solver2048 solve {sets.shape.name} --objective "
                f"{objective.name} --out {self._store.path}` computes them"
            )
        self.format = parse_value_format(str(record.get("values")), objective.max_value(sets.shape))
        self._arrays: Cache[Band, StoredArray] = Cache(OPEN_BYTES, lambda array: array.nbytes)
        self._layers: Cache[Band, dict[int, _ValuedLayer]] = Cache(MAX_OPEN_LAYERS, len)
        self.result = self._store.result(self.kind)

    @property
    def bands(self) -> list[Band]:
        """The bands whose values are stored, upward."""
        return [band for band in self._sets.bands if self._read_layers(band)]

    @functools.cached_property
    def max_value(self) -> float:
        """The largest value stored, 0 if there is none."""
        if self.result:
            return float(self.result["max_value"])
        layers = (self._read_layers(band).values() for band in self._sets.bands)
        return max((layer.max for of_band in layers for layer in of_band), default=0.0)

    def _read_layers(self, band: Band) -> dict[int, _ValuedLayer]:
        """The layers of a band by age; none if its values are not stored."""
        manifest = self._store.manifest(self.kind, band)
        if manifest is None and self.result:
            raise SolutionDamaged(f"{self.kind}/{band.name}: the band is missing")
        layers = {}
        for record in manifest["layers"] if manifest else ():
            age, (start, stop) = int(record["age"]), map(int, record["values"])
            if stop - start != self._sets.layer_counts(age).afterstate_members:
                raise SolutionDamaged(f"age {age}: {stop - start} values for another set")
            layers[age] = _ValuedLayer(start, stop, float(record["max"]))
        return layers

    def check_parents(self, band: Band) -> None:
        """Make sure that a band's values belong to the sets stored. Raises SolutionDamaged."""
        check_parents(self._store, self.kind, band)

    def read_band(self, band: Band) -> NDArray[Any]:
        """All values of a band as stored, past the cache. Raises SolutionDamaged."""
        return self._open(band).read()

    def places(self, age: int) -> tuple[int, int]:
        """Where an age's values begin and end among those of its band."""
        layer = self._layer(age)
        return layer.start, layer.stop

    def take(self, age: int, positions: NDArray[np.int64]) -> NDArray[np.float64]:
        """Values of the afterstates at the given positions of their layer's set."""
        start = self._layer(age).start  # first: it knows what is not solved yet
        return self.format.decode(self._array(age).take(positions + start))

    def read(self, age: int) -> NDArray[Any]:
        """All values of a layer, as stored, in the order of its set."""
        layer = self._layer(age)
        return self._array(age)[layer.start : layer.stop]

    def _layer(self, age: int) -> _ValuedLayer:
        band = self._sets.band_of(age)
        layers = self._layers.find(band, lambda: self._read_layers(band))
        if age not in layers:
            raise NotSolved(f"age {age} has no values yet; `solve` goes on where it stopped")
        return layers[age]

    def _array(self, age: int) -> StoredArray:
        band = self._sets.band_of(age)
        return self._arrays.find(band, lambda: self._open(band))

    def _open(self, band: Band) -> StoredArray:
        self.check_parents(band)
        return self._store.open_array(self.kind, band, NAME, self.format.missing)
