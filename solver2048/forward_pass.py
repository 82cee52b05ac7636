"""The forward pass: all bands of sets upward; a lost one is made again from the two below it."""

from __future__ import annotations

import functools

from .age_counts import count_ages
from .background import BackgroundWriter, RunTimer
from .band_builder import BandBuilder
from .bands import bands_of, slots_per_age
from .errors import PublishedMismatch, SelfCheckFailed
from .forward import AfterstateLayer, enumerate_layer, slide
from .layer import Band, LayerCounts
from .layer_index import build_layer_index
from .layer_sets import LayerSets
from .options import DEFAULT_DISK, SolveOptions
from .progress import Progress
from .progress_log import AGAIN, NO_LOG, PassLog
from .rates import FORWARD
from .records import SETS
from .scratch import Scratch
from .self_check import SelfCheck
from .shape import Shape
from .store import Store
from .workers import Workers


def forward_pass(
    store: Store,
    shape: Shape,
    max_age: int,
    options: SolveOptions,
    workers: Workers,
    log: PassLog = NO_LOG,
) -> bool:
    """Enumerate and store the missing bands up to an age; returns whether there were any.

    Where sets are not kept, bands are dropped on the way to stay within the budget,
    and those below that an age does not come from are not missing.
    """
    drops_sets = store.drops_sets
    bands = [b for b in bands_of(shape) if b.first <= max_age]
    if drops_sets:
        bands = bands[_first_missing(store, shape, bands, max_age) :]
    else:
        bands = [band for band in bands if not _reaches(store, band, max_age)]
    if bands or options.expected_counts:
        sets = LayerSets(store)
        for counts in sets.counts():
            _expect(counts, options)
        _Enumeration(sets, max_age, options, workers, log).run(bands)
    if max_age == shape.top_age and not drops_sets:
        return store.finish_kind(SETS, bands_of(shape)) or bool(bands)
    return bool(bands)


def _reaches(store: Store, band: Band, max_age: int) -> bool:
    """Whether a band is stored up to an age; a band cut short may be."""
    manifest = store.stored_manifest(SETS, band)
    if manifest is None:
        return False
    return bool(manifest["is_complete"]) or int(manifest["layers"][-1]["age"]) + 2 > max_age


def _first_missing(store: Store, shape: Shape, bands: list[Band], max_age: int) -> int:
    """Number of the band from which on to enumerate so that the last one is stored.

    The nearest below for which the bands that it comes from are stored.
    """
    number = len(bands)
    if _reaches(store, bands[-1], max_age):
        return number
    number -= 1
    while not all(store.is_done(SETS, below) for below in _bands_below(shape, bands[number])):
        number -= 1
    return number


class _Enumeration:
    """Enumerates and stores bands, upward; what is below each of them is stored by then."""

    def __init__(
        self,
        sets: LayerSets,
        max_age: int,
        options: SolveOptions,
        workers: Workers,
        log: PassLog,
    ) -> None:
        self._sets, self._store, self._shape = sets, sets.store, sets.shape
        self._max_age, self._options, self._workers = max_age, options, workers
        self._log = log
        counts = count_ages(sets.shape, max_age, expected=options.expected_counts)
        works = FORWARD.kernels.of(counts).tolist()
        self._work = dict(zip(counts.ages.tolist(), works, strict=True))
        self._slots = slots_per_age(sets.shape)
        self._check = SelfCheck(sets.shape, options.check, workers.num_threads)
        self._window: dict[int, AfterstateLayer] = {}
        self._scratch: Scratch | None = None

    def run(self, bands: list[Band]) -> None:
        if not bands:
            return
        is_again = bands[0] in self._sets.dropped
        if not is_again:
            record = {**self._store.read_run(), "max_age": self._max_age}
            self._store.write_record("run.json", record)
        if self._store.drops_sets:
            budget = self._options.disk or DEFAULT_DISK
            self._scratch = Scratch(self._store, self._shape, budget)
        name = "again_seconds" if is_again else "forward_seconds"
        title = f"{self._shape.name} forward" + (", again" if is_again else "")
        work = sum(self._work[age] for band in bands for age in self._ages(band))
        self._begin(bands, AGAIN if is_again else "forward")
        with (
            RunTimer(self._store, name) as timer,
            Progress(
                title,
                work,
                enabled=self._options.show_progress,
                on_layer=self._log.advance,
            ) as progress,
            BackgroundWriter() as writer,
        ):
            for band in bands:
                self._store_band(band, writer, progress)
                timer.save()
            writer.finish()
            self._log.saved(max(self._window))

    def _store_band(self, band: Band, writer: BackgroundWriter, progress: Progress) -> None:
        """Enumerate a band, and have it written beside the next."""
        if band.first - 2 not in self._window:
            writer.finish()
            below = LayerSets(self._store, _bands_below(self._shape, band))
            self._window = _read_window(below, band)
        builder = self._enumerate(band, progress)
        # The digest of the band before goes into this one's manifest.
        writer.finish()
        if band.first > 4:
            self._log.saved(band.first - 2)
        if self._scratch:
            self._expect_again(band, builder)
            self._scratch.make_room(band, builder.counts, builder.num_bytes)
        writer.submit(functools.partial(self._commit, band, builder))
        if not self._options.overlaps:
            writer.finish()

    def _begin(self, bands: list[Band], name: str) -> None:
        """Bands of the pass that are not stored are left; of one again, those below as well."""
        left = bands
        if name == AGAIN:
            left = [band for band in self._sets.dropped if band.first <= bands[-1].first]
        work = sum(self._work[age] for band in left for age in self._ages(band))
        self._log.begin(name, work, sum(self._work.values()), alike="forward")

    def _ages(self, band: Band) -> range:
        return range(band.first, min(band.last, self._max_age) + 1, 2)

    def _slots_of(self, ages: range) -> int:
        return int(self._slots[ages[0] // 2 : ages[-1] // 2 + 1].sum())

    def _enumerate(self, band: Band, progress: Progress) -> BandBuilder:
        """Enumerate, check and collect the layers of a band."""
        # A set takes at most about a bit a slot.
        self._store.check_space(SETS, band, 2 * self._slots_of(self._ages(band)) / 8)
        builder = BandBuilder(self._sets.ids)
        for age in self._ages(band):
            layer = enumerate_layer(self._shape, age, self._window, self._workers)
            _expect(layer.counts, self._options)
            self._check.forward(layer, self._window)
            builder.add(layer)
            slide(self._window, AfterstateLayer(layer.index, layer.afterstates))
            progress.advance(age, self._work[age], layer.counts.states)
            del layer  # its states, while the next are enumerated
        return builder

    def _expect_again(self, band: Band, builder: BandBuilder) -> None:
        """A band that is enumerated again has the counts that it had."""
        for counts in builder.counts if band in self._sets.dropped else ():
            before = self._sets.layer_counts(counts.age)
            if counts != before:
                raise SelfCheckFailed(
                    f"age {counts.age}: {counts.states:,} states enumerated again, "
                    f"{before.states:,} before, or other counts differ; all bands below are safe"
                )

    def _commit(self, band: Band, builder: BandBuilder) -> None:
        parents = {
            f"{SETS}/{below.name}": self._store.manifest_digest(SETS, below)
            for below in _bands_below(self._shape, band)
        }
        builder.commit(self._store, band, band.last <= self._max_age, parents)
        if self._scratch:
            self._scratch.add(band)


def _read_window(sets: LayerSets, band: Band) -> dict[int, AfterstateLayer]:
    """The afterstates of the two ages before a band, from the sets of those bands alone."""
    window = {}
    for below in sets.bands:
        stored = sets.read_band(below)
        for age in (band.first - 4, band.first - 2):
            if age in below.ages:
                bitmap = stored.bitmap(age, "afterstates")
                window[age] = AfterstateLayer(build_layer_index(sets.shape, age), bitmap)
    return window


def _bands_below(shape: Shape, band: Band) -> list[Band]:
    """The bands that hold the two ages before a band, which its layers come from."""
    bands = bands_of(shape)
    number = bands.index(band)
    # A band has at least one age: the two ages are in the two bands before.
    return [b for b in bands[max(number - 2, 0) : number] if b.last >= band.first - 4]


def _expect(counts: LayerCounts, options: SolveOptions) -> None:
    expected = options.expected_counts.get(counts.age)
    if expected is not None and expected != counts.states:
        raise PublishedMismatch(
            f"age {counts.age}: {counts.states:,} states, expected {expected:,}; "
            "all bands before are safe"
        )
