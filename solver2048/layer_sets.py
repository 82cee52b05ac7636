"""Layers as sets on disk: partitioned Elias–Fano sets of IDs, a band of ages in one array."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elias_fano import DamagedSet, PartitionedEliasFano
from elias_fano.interface import WordSource

from .bands import bands_of
from .errors import NotSolved, SolutionDamaged, UsageError
from .forward import Layer
from .ids import Ids, Part, make_ids
from .kept_records import COUNTS, read_kept
from .layer import Band, LayerCounts
from .records import SETS
from .shape import SHAPES, Shape
from .store import Store
from .stored_array import ArrayToWrite

NAMES = ("states", "afterstates")

MAX_OPEN_SETS = 256


class BandBuilder:
    """Collects the sets of a band's layers, upward, for `Store.write_band`."""

    def __init__(self, ids: Ids) -> None:
        self._ids = ids
        self._words: dict[str, list[NDArray[np.uint64]]] = {name: [] for name in NAMES}
        self._num_words = dict.fromkeys(NAMES, 0)
        self._records: list[dict[str, Any]] = []

    def add(self, layer: Layer) -> None:
        record: dict[str, Any] = dict(vars(layer.counts))
        for name, bitmap in zip(NAMES, (layer.states, layer.afterstates), strict=True):
            words = self._ids.encode(layer.index, bitmap)
            start = self._num_words[name]
            record[f"{name}_words"] = [start, start + len(words)]
            self._num_words[name] += len(words)
            self._words[name].append(words)
        self._records.append(record)

    @property
    def counts(self) -> list[LayerCounts]:
        """Counts of the layers so far."""
        return [LayerCounts.from_record(record) for record in self._records]

    @property
    def num_bytes(self) -> int:
        """Size of the sets before they are compressed."""
        return 8 * sum(self._num_words.values())

    def commit(self, store: Store, band: Band, is_complete: bool, parents: dict[str, str]) -> None:
        """Write the band; `is_complete` unless it was cut short of its last age."""
        arrays = {name: ArrayToWrite("words", _joined(self._words[name])) for name in NAMES}
        record = {"is_complete": is_complete, "layers": self._records, "parents": parents}
        store.write_band(SETS, band, arrays, record)


def _joined(pieces: list[NDArray[np.uint64]]) -> NDArray[np.uint64]:
    # A band of one layer, the largest there are, is not copied.
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)


class _Part:
    """A part of a word source."""

    def __init__(self, source: WordSource, start: int, stop: int) -> None:
        self._source, self._start, self._stop = source, start, stop

    def __len__(self) -> int:
        return self._stop - self._start

    def __getitem__(self, index: slice) -> NDArray[np.uint64]:
        start, stop, _ = index.indices(len(self))
        return self._source[self._start + start : self._start + stop]


def check_parents(store: Store, kind: str, band: Band) -> None:
    """Make sure that the bands a band was made from are the ones stored. Raises SolutionDamaged."""
    for parent in wrong_parents(store, kind, band):
        raise SolutionDamaged(f"{kind}/{band.name} was made from another {parent}")


def wrong_parents(store: Store, kind: str, band: Band) -> Iterator[str]:
    """Names of the stored bands that are not the ones a band was made from."""
    manifest = store.manifest(kind, band)
    for parent, digest in (manifest["parents"] if manifest else {}).items():
        parent_kind, name = parent.rsplit("/", 1)
        first, last = (int(age) for age in name.split("-"))
        if store.manifest_digest(parent_kind, Band(first, last)) != digest:
            yield parent


class StoredBand:
    """All sets of a band in memory."""

    def __init__(self, ids: Ids, sets: dict[tuple[int, str], PartitionedEliasFano]) -> None:
        self._ids = ids
        self._sets = sets

    def bitmap(self, age: int, name: str) -> NDArray[np.uint64]:
        """Bitmap of the states or afterstates of an age. Raises SolutionDamaged."""
        try:
            return self._ids.bitmap(age, self._sets[age, name])
        except DamagedSet as error:
            raise SolutionDamaged(f"age {age}, {name}: {error}") from None

    def index_order(
        self, age: int, name: str, ranks: NDArray[np.uint64]
    ) -> Iterator[tuple[slice, Part]]:
        """Parts of a set, upward, each with where its members lie in index order.

        ranks : the ranked bitmap of the set, in index order
        """
        return self._ids.index_order(age, self._sets[age, name], ranks)


def stored_shape(store: Store) -> Shape:
    """The shape a store holds. Raises NoSolution, SolutionDamaged."""
    name = store.identity().get("shape")
    if name not in SHAPES:
        raise SolutionDamaged(f"{store.path} holds a board of unknown shape {name!r}")
    return SHAPES[name]


def _stored_ids(store: Store, shape: Shape) -> Ids:
    """The IDs a store's sets hold. Raises SolutionDamaged."""
    try:
        return make_ids(str(store.identity().get("ids")), shape)
    except UsageError as error:
        raise SolutionDamaged(f"{store.path}: {error}") from None


class LayerSets:
    """The stored sets of a solution, by age; of `among` alone if bands are given.

    ids : what its sets hold
    bands : the stored bands, upward; the last may be cut short
    dropped : bands of which only the counts are there
    gaps : bands that are not there though one above them is
    """

    def __init__(self, store: Store, among: Iterable[Band] | None = None) -> None:
        self.store = store
        self.shape: Shape = stored_shape(store)
        self.ids: Ids = _stored_ids(store, self.shape)
        self.bands: list[Band] = []
        self.dropped: list[Band] = []
        self.dropped_bytes: dict[str, int] = {}
        self._records: dict[int, dict[str, Any]] = {}
        self._band_of: dict[int, Band] = {}
        self._arrays: dict[tuple[Band, str], WordSource] = {}
        self._opened: dict[tuple[int, str], PartitionedEliasFano] = {}
        missing = []
        may_be_dropped = store.keeps_start_alone
        for band in bands_of(self.shape) if among is None else among:
            manifest = store.manifest(SETS, band)
            if manifest is None:
                if not (may_be_dropped and self._add_dropped(band)):
                    missing.append(band)
                continue
            self.bands.append(band)
            for record in manifest["layers"]:
                self._records[int(record["age"])] = record
                self._band_of[int(record["age"])] = band
        # Looked for again: a solve that goes on meanwhile adds bands in order.
        self.gaps = [
            band
            for band in missing
            if band.first < self.max_age and store.manifest(SETS, band) is None
        ]

    def _add_dropped(self, band: Band) -> bool:
        record = read_kept(self.store, COUNTS, band)
        if record is not None:
            self.dropped.append(band)
            self._records |= {int(layer["age"]): layer for layer in record["layers"]}
            for name, size in record["bytes"].items():
                self.dropped_bytes[name] = self.dropped_bytes.get(name, 0) + size
        return record is not None

    @property
    def max_age(self) -> int:
        """The largest age stored, 0 if there is none."""
        return max(self._records, default=0)

    def counts(self) -> list[LayerCounts]:
        """Counts of every stored age, upward."""
        return [LayerCounts.from_record(self._records[age]) for age in sorted(self._records)]

    def layer_counts(self, age: int) -> LayerCounts:
        return LayerCounts.from_record(self._record(age))

    def _record(self, age: int) -> dict[str, Any]:
        if age not in self._records:
            for band in self.gaps:
                if age in band.ages:
                    raise SolutionDamaged(f"age {age}: {SETS}/{band.name}, the band is missing")
            raise NotSolved(f"age {age} is not enumerated; ages up to {self.max_age} are")
        return self._records[age]

    def open(self, age: int, name: str) -> PartitionedEliasFano:
        """The set of the states or afterstates of an age, read by partitions."""
        key = (age, name)
        if key not in self._opened:
            self._record(age)
            if age not in self._band_of:
                raise NotSolved(f"age {age}: only its counts were kept")
            source = self._array(self._band_of[age], name)
            if len(self._opened) >= MAX_OPEN_SETS:
                self._opened.clear()
            self._opened[key] = self._set(source, age, name)
        return self._opened[key]

    def _array(self, band: Band, name: str) -> WordSource:
        key = (band, name)
        if key not in self._arrays:
            if len(self._arrays) >= MAX_OPEN_SETS:
                self._arrays.clear()
            self._arrays[key] = self.store.open_array(SETS, band, name)
        return self._arrays[key]

    def read_band(self, band: Band) -> StoredBand:
        """All sets of a band, checked against the manifest's digests. Raises SolutionDamaged."""
        self.store.check_band(SETS, band)
        words = {name: self.store.open_array(SETS, band, name).read() for name in NAMES}
        return StoredBand(
            self.ids,
            {
                (age, name): self._set(words[name], age, name)
                for age in band.ages
                if age in self._band_of
                for name in NAMES
            },
        )

    def _set(self, source: WordSource, age: int, name: str) -> PartitionedEliasFano:
        counts = self.layer_counts(age)
        members = counts.state_members if name == "states" else counts.afterstate_members
        try:
            stored = PartitionedEliasFano(_Part(source, *self._record(age)[f"{name}_words"]))
        except DamagedSet as error:
            raise SolutionDamaged(f"age {age}, {name}: {error}") from None
        universe = self.ids.universe(age)
        if (len(stored), stored.universe) != (members, universe):
            raise SolutionDamaged(
                f"age {age}, {name}: the set has {len(stored)} members below {stored.universe}, "
                f"expected {members} below {universe}"
            )
        return stored
