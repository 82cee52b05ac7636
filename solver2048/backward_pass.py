"""The backward pass: the values of all bands from the top age down, resumable by bands."""

from __future__ import annotations

import functools
import math
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elias_fano.ranked import rank_bitmap

from .background import BackgroundWriter, RunTimer
from .backward import Problem, StateValues, start_values, value_layer
from .bands import bands_of, kept_checkpoints
from .board import format_board, unpack_boards
from .forward import START_AGES, start_boards
from .kept_records import UNSTORED, StatisticsBuilder, drop_band, read_kept, record_name
from .layer import Band, LayerCounts
from .layer_index import build_layer_index
from .layer_sets import LayerSets, StoredBand
from .layer_statistics import collect_statistics
from .layer_values import ValueBandBuilder, Values
from .objective import Objective
from .options import SolveOptions
from .progress import Progress
from .progress_log import ProgressLog
from .records import OBJECTIVE, RESULT
from .self_check import SelfCheck
from .store import Store
from .value_format import ValueFormat
from .workers import Workers

# Work of a layer, in nanoseconds of one core as measured on 4x3.
SLOT_WORK, STATE_WORK, AFTERSTATE_WORK = 0.5, 32.0, 19.0


def backward_pass(
    store: Store,
    problem: Problem,
    value_format: ValueFormat | None,
    options: SolveOptions,
    workers: Workers,
    until: Band | None = None,
    log: ProgressLog | None = None,
) -> bool:
    """Compute and store the values of all bands, from the last checkpoint if there is one.

    `until` is the last band wanted of a pass that is not to be finished now. Without a format no
    values are stored, only their statistics; sets that are not needed any more are dropped, and
    the pass ends with a checkpoint. Returns whether there was anything to do.
    """
    objective = problem.objective
    kind = objective.values_kind
    format_name = value_format.name if value_format else UNSTORED
    store.create_kind(kind, {"objective": objective.name, "values": format_name})
    missing = [b for b in bands_of(problem.shape) if not is_valued(store, kind, b)]
    is_finished = store.read_record(f"{kind}/{RESULT}") is not None
    if value_format is None:
        _value_bands(
            store, problem, None, until or bands_of(problem.shape)[0], options, workers, log
        )
        return True
    if missing or not is_finished:
        lowest = min(missing) if is_finished else until or bands_of(problem.shape)[0]
        _value_bands(store, problem, value_format, lowest, options, workers, log)
    if until and not is_finished:
        return bool(missing)
    has_catalogue = not store.finish_kind(kind, bands_of(problem.shape))
    return bool(missing) or not is_finished or not has_catalogue


def is_valued(store: Store, kind: str, band: Band) -> bool:
    """Whether the values of a band, or what stays of them, are stored."""
    return (store.path / record_name(kind, band)).is_file() or store.is_done(kind, band)


class _Descent:
    """Values and stores bands, downward from the last checkpoint; what is above is known by then.

    starts : values of the start boards met, by code
    """

    def __init__(
        self,
        sets: LayerSets,
        problem: Problem,
        value_format: ValueFormat | None,
        options: SolveOptions,
        workers: Workers,
        log: ProgressLog | None,
    ) -> None:
        self._sets, self._store, self._problem = sets, sets.store, problem
        self._format, self._options, self._workers = value_format, options, workers
        self._log = log
        self._kind = problem.objective.values_kind
        self._kept = kept_checkpoints(problem.shape) if value_format else ()
        self._check = SelfCheck(problem.shape, options.check, workers.num_threads)
        self._window = _read_window(sets, problem)
        self._last_checkpoint = time.monotonic()
        self.starts: dict[int, float] = {}

    def run(self, lowest: Band) -> None:
        """Value the bands down to the lowest wanted."""
        sets, options, log = self._sets, self._options, self._log
        below = min(self._window, default=self._problem.shape.top_age + 2)
        bands = [band for band in reversed(sets.bands) if lowest.first <= band.first < below]
        works = {counts.age: layer_work(counts) for counts in sets.counts()}
        if log:
            left = sum(work for age, work in works.items() if age < below)
            log.begin("backward", left, sum(works.values()))
        with (
            RunTimer(self._store, f"{self._problem.objective.directory}_backward_seconds") as timer,
            Progress(
                f"{self._problem.shape.name} backward",
                sum(works[age] for band in bands for age in band.ages),
                enabled=options.show_progress,
                on_layer=log.advance if log else None,
            ) as progress,
            BackgroundWriter() as writer,
            ThreadPoolExecutor(1) as reader,
        ):
            reading = reader.submit(sets.read_band, bands[0])
            for number, band in enumerate(bands):
                stored = reading.result()
                below_it = bands[number + 1 : number + 2]
                if options.overlaps and below_it:
                    reading = reader.submit(sets.read_band, *below_it)
                is_new = not is_valued(self._store, self._kind, band)
                builder = self._builder(band)
                if is_new:
                    self._store.check_space(self._kind, band, builder.num_bytes)
                self._value(band, stored, builder, works, progress)
                del stored
                if is_new:
                    writer.submit(functools.partial(builder.commit, self._store, self._kind))
                del builder
                if not options.overlaps:
                    writer.finish()
                    if below_it:
                        reading = reader.submit(sets.read_band, *below_it)
                self._save(band, writer, is_last=not below_it)
                timer.save()
            writer.finish()

    def _builder(self, band: Band) -> ValueBandBuilder | StatisticsBuilder:
        if self._format:
            return ValueBandBuilder(self._sets, band, self._format)
        return StatisticsBuilder(band)

    def _value(
        self,
        band: Band,
        stored: StoredBand,
        builder: ValueBandBuilder | StatisticsBuilder,
        works: dict[int, float],
        progress: Progress,
    ) -> None:
        """Compute, check and collect the values of a band."""
        problem, window = self._problem, self._window
        for age in reversed(band.ages):
            afterstates = rank_bitmap(stored.bitmap(age, "afterstates"))
            layer, values = value_layer(
                problem, age, rank_bitmap(stored.bitmap(age, "states")), afterstates, window,
                self._workers,
            )  # fmt: skip
            below = StateValues(layer.index, afterstates, values)
            self._check.backward(problem, layer, below, window)
            builder.add(age, values, stored, afterstates)
            if isinstance(builder, StatisticsBuilder):  # where values stay, `stats` reads them
                labelled = self._sets.layer_counts(age).states_labelled
                noted = collect_statistics(problem, layer, below, labelled, self._workers)
                builder.note(age, noted)
            # 2 GB in the largest layers, while the next is computed.
            del values, afterstates, below
            window[age] = layer
            window.pop(age + 4, None)
            self.starts |= start_values(problem, layer)
            progress.advance(age, works[age], len(layer.values))

    def _save(self, band: Band, writer: BackgroundWriter, *, is_last: bool) -> None:
        """Write a checkpoint after a band where one is due, or to be kept for `repair`."""
        # None from the start boards on: their values would be lost to a resumed run.
        if band.first <= max(START_AGES.values()):
            return
        if band in self._kept:
            self._write_checkpoint(band.first)
        is_due = time.monotonic() - self._last_checkpoint >= self._options.checkpoint_seconds
        if is_due or (is_last and not self._format):
            writer.finish()
            self._write_checkpoint(None)
            self._last_checkpoint = time.monotonic()
            if self._log:
                self._log.saved(band.first)
            if not self._format:
                _drop_above(self._sets, max(self._window))

    def _write_checkpoint(self, kept_age: int | None) -> None:
        values = {age: layer.values for age, layer in self._window.items()}
        self._store.checkpoint(self._kind, kept_age).write(values)


def _value_bands(
    store: Store,
    problem: Problem,
    value_format: ValueFormat | None,
    lowest: Band,
    options: SolveOptions,
    workers: Workers,
    log: ProgressLog | None,
) -> None:
    """Compute and store the values of the bands down to the lowest wanted, and the result."""
    kind = problem.objective.values_kind
    sets = LayerSets(store)
    descent = _Descent(sets, problem, value_format, options, workers, log)
    descent.run(lowest)
    if lowest.first > min(START_AGES.values()):
        return
    if store.read_record(f"{kind}/{RESULT}") is None:
        result = _result(sets, problem, value_format, descent.starts)
        store.write_record(f"{kind}/{RESULT}", result)
    store.checkpoint(kind).drop()


def _drop_above(sets: LayerSets, age: int) -> None:
    """Drop the bands that no pass needs which goes on from a checkpoint up to an age."""
    for band in sets.bands:
        if band.first > age:
            drop_band(sets.store, band)


def layer_work(counts: LayerCounts) -> float:
    """Expected work of a layer in the backward pass, in nanoseconds of one core."""
    return (
        SLOT_WORK * counts.num_slots
        + STATE_WORK * counts.state_members
        + AFTERSTATE_WORK * counts.afterstate_members
    )


def read_checkpoint(store: Store, problem: Problem) -> dict[int, NDArray[np.float64]]:
    """The state values to go on from, by age; none if the pass has to start at the top.

    They are those of the lowest checkpoint above every band that has no values.
    """
    shape, kind = problem.shape, problem.objective.values_kind
    if store.read_record(f"{kind}/{OBJECTIVE}") is None:
        return {}
    missing = max((b.last for b in bands_of(shape) if not is_valued(store, kind, b)), default=0)
    kept = [b.first for b in reversed(kept_checkpoints(shape)) if b.first > missing]
    for age in (None, *kept):
        checkpoint = store.checkpoint(kind, age).read()
        if min(checkpoint, default=0) > missing:
            return checkpoint
    return {}


def _read_window(sets: LayerSets, problem: Problem) -> dict[int, StateValues]:
    """The window of a backward pass that was stopped; empty if it has to start at the top."""
    checkpoint = read_checkpoint(sets.store, problem)
    window = {}
    for band in sets.bands:
        if checkpoint.keys().isdisjoint(band.ages):
            continue
        stored = sets.read_band(band)
        for age in checkpoint.keys() & set(band.ages):
            states = rank_bitmap(stored.bitmap(age, "states"))
            window[age] = StateValues(build_layer_index(sets.shape, age), states, checkpoint[age])
    return window


def _result(
    sets: LayerSets,
    problem: Problem,
    value_format: ValueFormat | None,
    starts: dict[int, float],
) -> dict[str, Any]:
    """What a finished objective says: start values in full, and the bound of what is stored."""
    return {
        "identity": sets.store.kind_identity(problem.objective.values_kind),
        "objective": problem.objective.name,
        "spawn4": problem.spawn4,
        **_bounds(sets, problem.objective, value_format),
        **start_record(problem, starts),
    }


def start_record(problem: Problem, starts: dict[int, float]) -> dict[str, Any]:
    """Values of the start boards, of their classes and of a random start, from those by code."""
    shape, p4 = problem.shape, problem.spawn4
    classes = {}
    for name, age in START_AGES.items():
        of_class = [starts[int(code)] for code in start_boards(shape, age)]
        classes[name] = math.fsum(of_class) / len(of_class)
    shares = {"2,2": (1 - p4) ** 2, "2,4": 2 * p4 * (1 - p4), "4,4": p4**2}
    codes = np.array(sorted(starts), dtype=np.uint64)
    boards = unpack_boards(codes, shape)
    return {
        "start_classes": classes,
        "random_start": math.fsum(shares[name] * classes[name] for name in classes),
        "start_boards": {
            format_board(board): starts[int(code)]
            for board, code in zip(boards, codes, strict=True)
        },
    }


def _bounds(
    sets: LayerSets, objective: Objective, value_format: ValueFormat | None
) -> dict[str, Any]:
    """How values are stored, the largest of them, and how far what is stored can be off."""
    if value_format is None:
        kept = [read_kept(sets.store, objective.values_kind, b) for b in bands_of(sets.shape)]
        largest = max(layer["max"] for record in kept if record for layer in record["layers"])
        return {"values": UNSTORED, "max_value": largest, "rounding_bound": 0.0}
    largest = Values(sets, objective).max_value
    return {
        "values": value_format.name,
        "max_value": largest,
        "rounding_bound": float(value_format.rounding_bound(largest)),
    }
