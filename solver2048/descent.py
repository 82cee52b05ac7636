"""The values of all bands from the top age down, resumable by bands; a keeper takes them."""

from __future__ import annotations

import functools
import time

import numpy as np
from numpy.typing import NDArray

from elias_fano.ranked import rank_bitmap

from .background import BackgroundWriter, ReadAhead, RunTimer
from .backward import StateValues, start_values, value_layer
from .bands import bands_of, kept_checkpoints
from .forward import START_AGES
from .keeper import BandKeeper, Keeper
from .kept_records import drop_band, record_name
from .layer import Band, LayerCounts
from .layer_index import build_layer_index
from .layer_sets import LayerSets, StoredBand
from .options import SolveOptions
from .progress import Progress
from .progress_log import PassLog
from .records import OBJECTIVE
from .self_check import SelfCheck
from .shape import Shape
from .store import Store
from .workers import Workers

# Work of a layer, in nanoseconds of one core as measured on 4x3.
SLOT_WORK, STATE_WORK, AFTERSTATE_WORK = 0.5, 32.0, 19.0


def is_kept(store: Store, kind: str, band: Band) -> bool:
    """Whether what stays of a band is stored."""
    return (store.path / record_name(kind, band)).is_file() or store.is_done(kind, band)


class Descent:
    """Values and stores bands, downward from the last checkpoint; what is above is known by then.

    sets : all that is valued; those of another store stay as they are
    starts : values of the start boards met, by code
    """

    def __init__(
        self,
        sets: LayerSets,
        store: Store,
        keeper: Keeper,
        options: SolveOptions,
        workers: Workers,
        log: PassLog,
    ) -> None:
        self._sets, self._store, self._keeper = sets, store, keeper
        self._problem, self._options, self._workers = keeper.problem, options, workers
        self._log = log
        self._drops_sets = sets.store.drops_sets
        self._kept = kept_checkpoints(sets.shape) if keeper.is_repaired else ()
        self._check = SelfCheck(sets.shape, options.check, workers.num_threads)
        self._window = _read_window(sets, store, keeper.kind)
        self._last_checkpoint = time.monotonic()
        self._works = {counts.age: layer_work(counts) for counts in sets.counts()}
        self.starts: dict[int, float] = {}

    def run(self, lowest: Band) -> None:
        """Value the bands down to the lowest wanted."""
        sets, name = self._sets, self._problem.objective.directory
        below = min(self._window, default=self._problem.shape.top_age + 2)
        bands = [band for band in reversed(sets.bands) if lowest.first <= band.first < below]
        if not bands:
            return
        left = sum(work for age, work in self._works.items() if age < below)
        self._log.begin("backward", left, sum(self._works.values()))
        with (
            RunTimer(self._store, f"{name}_backward_seconds") as timer,
            Progress(
                f"{self._problem.shape.name} backward",
                sum(self._works[age] for band in bands for age in band.ages),
                enabled=self._options.show_progress,
                on_layer=self._log.advance,
            ) as progress,
            BackgroundWriter() as writer,
            ReadAhead(sets.read_band, bands, overlaps=self._options.overlaps) as stored_bands,
        ):
            for band in bands:
                self._keep(band, stored_bands, writer, progress)
                self._save(band, writer, is_last=band == bands[-1])
                timer.save()
            writer.finish()

    def _keep(
        self,
        band: Band,
        stored_bands: ReadAhead[Band, StoredBand],
        writer: BackgroundWriter,
        progress: Progress,
    ) -> None:
        """Value a band, and have what stays of it written beside the next."""
        is_new = not is_kept(self._store, self._keeper.kind, band)
        kept = self._keeper.begin(self._sets, band, self._workers) if is_new else None
        if kept:
            self._store.check_space(self._keeper.kind, band, kept.num_bytes)
        self._value(band, stored_bands.next(), kept, progress)
        if kept:
            writer.submit(functools.partial(kept.commit, self._store))
        if not self._options.overlaps:
            writer.finish()

    def _value(
        self, band: Band, stored: StoredBand, kept: BandKeeper | None, progress: Progress
    ) -> None:
        """Compute and check the values of a band, and keep of them what stays."""
        problem, window = self._problem, self._window
        for age in reversed(band.ages):
            ranks = rank_bitmap(stored.bitmap(age, "afterstates"))
            layer, values = value_layer(
                problem, age, rank_bitmap(stored.bitmap(age, "states")), ranks, window,
                self._workers,
            )  # fmt: skip
            afterstates = StateValues(layer.index, ranks, values)
            self._check.backward(problem, layer, afterstates, window)
            if kept:
                kept.add(layer, afterstates, stored)
            # 2 GB in the largest layers, while the next is computed.
            del values, afterstates, ranks
            window[age] = layer
            window.pop(age + 4, None)
            self.starts |= start_values(problem, layer)
            progress.advance(age, self._works[age], len(layer.values))

    def _save(self, band: Band, writer: BackgroundWriter, *, is_last: bool) -> None:
        """Write a checkpoint after a band where one is due, or to be kept for `repair`."""
        # None from the start boards on: their values would be lost to a resumed run.
        if band.first <= max(START_AGES.values()):
            return
        if band in self._kept:
            self._write_checkpoint(band.first)
        is_due = time.monotonic() - self._last_checkpoint >= self._options.checkpoint_seconds
        if is_due or (is_last and self._drops_sets):
            writer.finish()
            self._write_checkpoint(None)
            self._last_checkpoint = time.monotonic()
            self._log.saved(band.first)
            if self._drops_sets:
                self._drop_above(max(self._window))

    def _write_checkpoint(self, kept_age: int | None) -> None:
        values = {age: layer.values for age, layer in self._window.items()}
        self._store.checkpoint(self._keeper.kind, kept_age).write(values)

    def _drop_above(self, age: int) -> None:
        """Drop the bands that no pass needs which goes on from a checkpoint up to an age."""
        for band in self._sets.bands:
            if band.first > age:
                drop_band(self._sets.store, band)


def layer_work(counts: LayerCounts) -> float:
    """Expected work of a layer in the backward pass, in nanoseconds of one core."""
    return (
        SLOT_WORK * counts.num_slots
        + STATE_WORK * counts.state_members
        + AFTERSTATE_WORK * counts.afterstate_members
    )


def read_checkpoint(store: Store, shape: Shape, kind: str) -> dict[int, NDArray[np.float64]]:
    """The state values to go on from, by age; none if the pass has to start at the top.

    They are those of the lowest checkpoint above every band of which nothing is kept.
    """
    if store.read_record(f"{kind}/{OBJECTIVE}") is None:
        return {}
    missing = max((b.last for b in bands_of(shape) if not is_kept(store, kind, b)), default=0)
    kept = [b.first for b in reversed(kept_checkpoints(shape)) if b.first > missing]
    for age in (None, *kept):
        checkpoint = store.checkpoint(kind, age).read()
        if min(checkpoint, default=0) > missing:
            return checkpoint
    return {}


def _read_window(sets: LayerSets, store: Store, kind: str) -> dict[int, StateValues]:
    """The window of a backward pass that was stopped; empty if it has to start at the top."""
    checkpoint = read_checkpoint(store, sets.shape, kind)
    window = {}
    for band in sets.bands:
        if checkpoint.keys().isdisjoint(band.ages):
            continue
        stored = sets.read_band(band)
        for age in checkpoint.keys() & set(band.ages):
            states = rank_bitmap(stored.bitmap(age, "states"))
            window[age] = StateValues(build_layer_index(sets.shape, age), states, checkpoint[age])
    return window
