"""The budget of disk space of a solve that keeps no sets.

The sets stored are those of the bands on top, all of them, and below them *seeds*: the one or two
bands that hold two ages one after the other, from which everything above can be enumerated again.
The bands between two seeds are a *span*. Room is made by dropping the lowest band of those on top;
where the span it belongs to would be too large to lie on the disk at once when it is enumerated
again, with all seeds below it and the checkpoint, that band becomes a seed and a span begins.
So seeds are few, each span is as large as can be, and what stays on top is not enumerated again.
"""

from __future__ import annotations

from .bands import bands_of
from .errors import NoSpace
from .files import format_size
from .forward import START_AGES
from .kept_records import COUNTS, band_bytes, drop_band, kept_counts, read_kept
from .layer import Band, LayerCounts
from .records import SETS
from .shape import Shape
from .store import Store

CHECKPOINT_BYTES = 2 * 8
"""Of a state of two ages, in a checkpoint and in the one that takes its place."""

BAND_BYTES, AGE_BYTES = 6000, 450
"""What the metadata of a band takes at most, and of each of its ages."""


class Scratch:
    """Keeps what a solve has on the disk below a budget."""

    def __init__(self, store: Store, shape: Shape, budget: int) -> None:
        self._store = store
        self._budget = budget
        self._bands = bands_of(shape)
        self._stored: dict[Band, int] = {}
        self._dropped: dict[Band, int] = {}
        self._states: dict[int, int] = {}
        for band in self._bands:
            self.add(band)

    def add(self, band: Band) -> None:
        """Take note of a band that is stored, or was."""
        manifest = self._store.stored_manifest(SETS, band)
        record = read_kept(self._store, COUNTS, band)
        if manifest is not None:
            self._stored[band] = sum(band_bytes(self._store, band).values())
        if record is not None:
            self._dropped[band] = sum(record["bytes"].values())
        if found := manifest or record:
            self._note_states(kept_counts(found))

    def _note_states(self, layers: list[LayerCounts]) -> None:
        self._states |= {counts.age: counts.state_members for counts in layers}

    def make_room(self, band: Band, layers: list[LayerCounts], num_bytes: int) -> None:
        """Drop bands until one more fits: its counts, and its size before it is packed.

        Raises NoSpace if those that may be dropped are not enough.
        """
        self._note_states(layers)
        size = self._dropped.get(band, num_bytes + BAND_BYTES + AGE_BYTES * len(band.ages))
        reserve = self._checkpoint_bytes(band)
        while (needed := sum(self._stored.values()) + size + reserve) > self._budget:
            lowest = self._lowest_to_drop(band, reserve)
            if lowest is None:
                raise NoSpace(
                    f"ages {band.first} to {band.last}: sets to go on from and the checkpoint take "
                    f"{format_size(needed)}, the budget is {format_size(self._budget)}; ages up to "
                    f"{band.first - 2} are safe, the same command with a larger --disk goes on"
                )
            drop_band(self._store, lowest)
            self._dropped[lowest] = self._stored.pop(lowest)

    def _checkpoint_bytes(self, band: Band) -> int:
        """The most that checkpoints take while the values come down to a band."""
        pairs = (
            states + self._states.get(age + 2, 0)
            for age, states in self._states.items()
            if age <= band.last + 4
        )
        return CHECKPOINT_BYTES * max(pairs, default=0)

    def _lowest_to_drop(self, band: Band, reserve: int) -> Band | None:
        """The lowest band on top that is neither a seed nor needed for the band to come."""
        number = self._bands.index(band)
        bottom = number
        while bottom and self._bands[bottom - 1] in self._stored:
            bottom -= 1
        # The values of start boards are in no checkpoint: those bands stay.
        while bottom < number and self._bands[bottom].first <= max(START_AGES.values()):
            bottom += 1
        kept = sum(self._stored.get(below, 0) for below in self._bands[:bottom])
        span = self._span_below(bottom)
        # The states of a checkpoint's two ages are those of sets above the span.
        above = 2 * max(self._stored.values(), default=0)
        needed = number - _length_of_seed(self._bands, number - 1, -1)
        while bottom < needed:
            size = self._stored[self._bands[bottom]]
            if kept + span + size + above + reserve <= self._budget:
                return self._bands[bottom]
            seed = _length_of_seed(self._bands, bottom, 1)
            kept += sum(self._stored[b] for b in self._bands[bottom : bottom + seed])
            bottom += seed
            span = 0
        return None

    def _span_below(self, number: int) -> int:
        """Bytes that the dropped bands right below took."""
        span = 0
        while number and self._bands[number - 1] not in self._stored:
            number -= 1
            span += self._dropped.get(self._bands[number], 0)
        return span


def _length_of_seed(bands: tuple[Band, ...], number: int, step: int) -> int:
    """How many bands, from one on, hold two ages one after the other."""
    is_enough = len(bands[number].ages) > 1 or not 0 <= number + step < len(bands)
    return 1 if is_enough else 2
