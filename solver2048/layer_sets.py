"""Layers as sets on disk: partitioned Elias–Fano sets of IDs, a band of ages in one array."""

from __future__ import annotations

import bisect
import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elias_fano import DamagedSet, PartitionedEliasFano
from elias_fano.interface import WordSource

from .backward import Problem
from .band_builder import NAMES
from .bands import bands_of
from .cache import Cache
from .errors import NotSolved, SolutionDamaged, UsageError
from .ids import Ids, Part, directory_words, make_ids
from .kept_records import COUNTS, read_kept
from .layer import Band, LayerCounts
from .objective import parse_objective
from .records import SETS
from .shape import SHAPES, Shape
from .store import Store
from .stored_array import StoredArray

MAX_OPEN_LAYERS = 4096
"""Layers whose counts are kept."""

OPEN_BYTES = 32 << 20
"""Of directories of sets to keep, and of chunk tables."""

SMALL_WORDS = 1 << 15
"""A set up to this long is read at once; it is that of a chunk."""


class _Part:
    """A part of a word source."""

    def __init__(self, source: WordSource, start: int, stop: int) -> None:
        self._source, self._start, self._stop = source, start, stop

    def __len__(self) -> int:
        return self._stop - self._start

    def __getitem__(self, index: slice) -> NDArray[np.uint64]:
        start, stop, _ = index.indices(len(self))
        return self._source[self._start + start : self._start + stop]


def _open_bytes(stored: PartitionedEliasFano) -> int:
    # Its directory, and the search tree over it.
    return 16 * directory_words(len(stored))


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
    """The shape a store holds, whose bands it knows then. Raises NoSolution, SolutionDamaged."""
    name = store.identity().get("shape")
    if name not in SHAPES:
        raise SolutionDamaged(f"{store.location} holds a board of unknown shape {name!r}")
    shape = SHAPES[name]
    store.bands = bands_of(shape)
    return shape


def stored_problem(store: Store, objective: str) -> Problem:
    """What the values of an objective solve. Raises NoSolution, SolutionDamaged, UsageError."""
    shape = stored_shape(store)
    return Problem(shape, parse_objective(objective, shape), float(store.identity()["spawn4"]))


def _stored_ids(store: Store, shape: Shape) -> Ids:
    """The IDs a store's sets hold. Raises SolutionDamaged."""
    try:
        return make_ids(str(store.identity().get("ids")), shape)
    except UsageError as error:
        raise SolutionDamaged(f"{store.location}: {error}") from None


class _Census(NamedTuple):
    """What there is of a solution, by a look at every band."""

    bands: list[Band]
    dropped: list[Band]
    dropped_bytes: dict[str, int]
    records: dict[int, dict[str, Any]]
    gaps: list[Band]


class LayerSets:
    """The stored sets of a solution, by age; of `among` alone if bands are given.

    Where the sets have a catalogue, all bands are there and each is read when it is asked for. Else
    the first question takes a look at all of them, and what is stored later is not seen. Safe for
    several threads.

    ids : what its sets hold
    """

    def __init__(self, store: Store, among: Iterable[Band] | None = None) -> None:
        self.store = store
        self.shape: Shape = stored_shape(store)
        self.ids: Ids = _stored_ids(store, self.shape)
        self._among = None if among is None else list(among)
        self._layers: Cache[Band, dict[int, dict[str, Any]]] = Cache(MAX_OPEN_LAYERS, len)
        self._arrays: Cache[tuple[Band, str], StoredArray] = Cache(OPEN_BYTES, lambda a: a.nbytes)
        self._opened: Cache[tuple[int, str], PartitionedEliasFano] = Cache(OPEN_BYTES, _open_bytes)

    @functools.cached_property
    def _census(self) -> _Census | None:
        """What there is, None if everything is."""
        among = self._among
        drops_sets = self.store.drops_sets
        if among is None and not drops_sets and self.store.has_catalogue(SETS):
            return None
        census = _Census([], [], {}, {}, [])
        missing = []
        for band in self.store.bands if among is None else among:
            manifest = self.store.manifest(SETS, band)
            if manifest is not None:
                census.bands.append(band)
                census.records.update((int(r["age"]), r) for r in manifest["layers"])
            elif not (drops_sets and self._add_dropped(census, band)):
                missing.append(band)
        max_age = max(census.records, default=0)
        # Looked for again: a solve that goes on meanwhile adds bands in order.
        census.gaps.extend(
            band
            for band in missing
            if band.first < max_age and self.store.manifest(SETS, band) is None
        )
        return census

    def _add_dropped(self, census: _Census, band: Band) -> bool:
        record = read_kept(self.store, COUNTS, band)
        if record is not None:
            census.dropped.append(band)
            census.records.update((int(layer["age"]), layer) for layer in record["layers"])
            for name, size in record["bytes"].items():
                census.dropped_bytes[name] = census.dropped_bytes.get(name, 0) + size
        return record is not None

    @property
    def bands(self) -> Sequence[Band]:
        """The stored bands, upward; the last may be cut short."""
        return self._census.bands if self._census else self.store.bands

    @property
    def dropped(self) -> list[Band]:
        """Bands of which only the counts are there."""
        return self._census.dropped if self._census else []

    @property
    def dropped_bytes(self) -> dict[str, int]:
        """Bytes that each part of the dropped bands took."""
        return self._census.dropped_bytes if self._census else {}

    @property
    def gaps(self) -> list[Band]:
        """Bands that are not there though one above them is."""
        return self._census.gaps if self._census else []

    @property
    def max_age(self) -> int:
        """The largest age stored, 0 if there is none."""
        return max(self._census.records, default=0) if self._census else self.shape.top_age

    def counts(self) -> list[LayerCounts]:
        """Counts of every stored age, upward."""
        if self._census:
            records = self._census.records
        else:
            records = {age: r for band in self.bands for age, r in self._read_layers(band).items()}
        return [LayerCounts.from_record(records[age]) for age in sorted(records)]

    def layer_counts(self, age: int) -> LayerCounts:
        """Counts of a stored age. Raises NotSolved, SolutionDamaged."""
        return LayerCounts.from_record(self._record(age))

    def band_of(self, age: int) -> Band:
        """The band of an age whose set is stored. Raises NotSolved, SolutionDamaged."""
        self._record(age)
        bands = self.bands
        number = bisect.bisect_right(bands, age, key=lambda band: band.first) - 1
        if number < 0 or age not in bands[number].ages:
            raise NotSolved(f"age {age}: only its counts were kept")
        return bands[number]

    def _record(self, age: int) -> dict[str, Any]:
        if self._census:
            records = self._census.records
        else:
            number = bisect.bisect_right(self.store.bands, age, key=lambda band: band.first) - 1
            band = self.store.bands[max(number, 0)]
            records = self._layers.find(band, lambda: self._read_layers(band))
        if age not in records:
            for band in self.gaps:
                if age in band.ages:
                    raise SolutionDamaged(f"age {age}: {SETS}/{band.name}, the band is missing")
            raise NotSolved(f"age {age} is not enumerated; ages up to {self.max_age} are")
        return records[age]

    def _read_layers(self, band: Band) -> dict[int, dict[str, Any]]:
        """The records of a band's layers by age."""
        manifest = self.store.manifest(SETS, band) or {"layers": []}
        return {int(record["age"]): record for record in manifest["layers"]}

    def open(self, age: int, name: str) -> PartitionedEliasFano:
        """The set of the states or afterstates of an age, read by partitions."""
        return self._opened.find((age, name), lambda: self._open(age, name))

    def _open(self, age: int, name: str) -> PartitionedEliasFano:
        band = self.band_of(age)
        array = self._arrays.find((band, name), lambda: self.store.open_array(SETS, band, name))
        start, stop = self._record(age)[f"{name}_words"]
        # All of a small set, or else its directory: one range of bytes.
        num_words = max(directory_words(self._num_members(age, name)), SMALL_WORDS)
        _ = array[start : min(start + num_words, stop)]
        return self._set(array, age, name)

    def _num_members(self, age: int, name: str) -> int:
        counts = self.layer_counts(age)
        return counts.state_members if name == "states" else counts.afterstate_members

    def read_band(self, band: Band) -> StoredBand:
        """All sets of a band, checked against the manifest's digests. Raises SolutionDamaged."""
        self.store.check_band(SETS, band)
        words = {name: self.store.open_array(SETS, band, name).read() for name in NAMES}
        return StoredBand(
            self.ids,
            {
                (age, name): self._set(words[name], age, name)
                for age in self._read_layers(band)
                for name in NAMES
            },
        )

    def _set(self, source: WordSource, age: int, name: str) -> PartitionedEliasFano:
        members = self._num_members(age, name)
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
