"""The backward pass: the values of all bands from the top age down, resumable by bands."""

from __future__ import annotations

import functools
import math
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from elias_fano.ranked import rank_bitmap

from .background import BackgroundWriter, RunTimer
from .backward import Problem, StateValues, start_values, value_layer
from .bands import bands_of
from .board import format_board, unpack_boards
from .forward import START_AGES, start_boards
from .layer import Band, LayerCounts
from .layer_index import build_layer_index
from .layer_sets import LayerSets
from .layer_values import ValueBandBuilder, Values
from .options import SolveOptions
from .progress import Progress
from .progress_log import ProgressLog
from .records import RESULT
from .store import Store
from .value_format import ValueFormat
from .workers import Workers

# Work of a layer, in nanoseconds of one core as measured on 4x3.
SLOT_WORK, STATE_WORK, AFTERSTATE_WORK = 0.5, 32.0, 19.0


def backward_pass(
    store: Store,
    problem: Problem,
    value_format: ValueFormat,
    options: SolveOptions,
    workers: Workers,
    until: Band | None = None,
    log: ProgressLog | None = None,
) -> bool:
    """Compute and store the values of all bands, from the last checkpoint if there is one.

    `until` is the last band wanted of a pass that is not to be finished now.
    Returns whether there was anything to do.
    """
    objective = problem.objective
    kind = objective.values_kind
    store.create_kind(kind, {"objective": objective.name, "values": value_format.name})
    missing = [band for band in bands_of(problem.shape) if not store.is_done(kind, band)]
    is_finished = store.read_record(f"{kind}/{RESULT}") is not None
    if missing or not is_finished:
        lowest = min(missing) if is_finished else until or bands_of(problem.shape)[0]
        _value_bands(store, problem, value_format, lowest, options, workers, log)
    if until and not is_finished:
        return bool(missing)
    has_catalogue = not store.finish_kind(kind, bands_of(problem.shape))
    return bool(missing) or not is_finished or not has_catalogue


def _value_bands(
    store: Store,
    problem: Problem,
    value_format: ValueFormat,
    lowest: Band,
    options: SolveOptions,
    workers: Workers,
    log: ProgressLog | None,
) -> None:
    """Compute and store the values of the bands down to the lowest wanted, and the result."""
    objective = problem.objective
    kind = objective.values_kind
    sets = LayerSets(store)
    window = _read_checkpoint(sets, problem, kind)
    first_known = min(window, default=problem.shape.top_age + 2)
    bands = [band for band in reversed(sets.bands) if lowest.first <= band.first < first_known]
    starts: dict[int, float] = {}
    last_checkpoint = time.monotonic()
    total_work = sum(_work(sets.layer_counts(age)) for band in bands for age in band.ages)
    if log:
        whole = sum(_work(counts) for counts in sets.counts())
        log.begin("backward", whole - total_work, whole)
    title = f"{problem.shape.name} backward"
    with (
        RunTimer(store, f"{objective.directory}_backward_seconds") as timer,
        Progress(
            title, total_work, enabled=options.show_progress, on_layer=log.advance if log else None
        ) as progress,
        BackgroundWriter() as writer,
        ThreadPoolExecutor(1) as reader,
    ):
        reading = reader.submit(sets.read_band, bands[0])
        for number, band in enumerate(bands):
            stored = reading.result()
            if options.overlaps and number + 1 < len(bands):
                reading = reader.submit(sets.read_band, bands[number + 1])
            builder = ValueBandBuilder(sets, band, value_format)
            is_new = not store.is_done(kind, band)
            if is_new:
                store.check_space(kind, band, builder.num_bytes)
            for age in reversed(band.ages):
                afterstates = rank_bitmap(stored.bitmap(age, "afterstates"))
                layer, values = value_layer(
                    problem, age, rank_bitmap(stored.bitmap(age, "states")), afterstates, window,
                    workers,
                )  # fmt: skip
                builder.add(age, values, stored, afterstates)
                # 2 GB in the largest layers, while the next is computed.
                del values, afterstates
                window[age] = layer
                window.pop(age + 4, None)
                starts |= start_values(problem, layer)
                counts = sets.layer_counts(age)
                progress.advance(age, _work(counts), counts.states)
            if is_new:
                writer.submit(functools.partial(builder.commit, store, kind))
            if not options.overlaps:
                writer.finish()
                del stored, builder
                if number + 1 < len(bands):
                    reading = reader.submit(sets.read_band, bands[number + 1])
            # None from the start boards on: their values would be lost to a resumed run.
            is_early = band.first > max(START_AGES.values())
            if is_early and time.monotonic() - last_checkpoint >= options.checkpoint_seconds:
                writer.finish()
                store.checkpoint(kind).write({age: layer.values for age, layer in window.items()})
                last_checkpoint = time.monotonic()
                if log:
                    log.saved(band.first)
            timer.save()
        writer.finish()
    if lowest.first > min(START_AGES.values()):
        return
    if store.read_record(f"{kind}/{RESULT}") is None:
        result = _result(sets, problem, value_format, starts, Values(sets, objective))
        store.write_record(f"{kind}/{RESULT}", result)
    store.checkpoint(kind).drop()


def _work(counts: LayerCounts) -> float:
    """Expected work of a layer in the backward pass, in nanoseconds of one core."""
    return (
        SLOT_WORK * counts.num_slots
        + STATE_WORK * counts.state_members
        + AFTERSTATE_WORK * counts.afterstate_members
    )


def _read_checkpoint(sets: LayerSets, problem: Problem, kind: str) -> dict[int, StateValues]:
    """The window of a backward pass that was stopped; empty if it has to start at the top.

    That is so too where a band above the checkpoint has been lost.
    """
    checkpoint = sets.store.checkpoint(kind).read()
    above = [band for band in sets.bands if band.last >= min(checkpoint, default=0)]
    if not checkpoint or not all(sets.store.is_done(kind, band) for band in above):
        return {}
    window = {}
    for band in above:
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
    value_format: ValueFormat,
    starts: dict[int, float],
    values: Values,
) -> dict[str, Any]:
    """What a finished objective says: start values in full, and the bound of what is stored."""
    shape = problem.shape
    classes = {}
    for name, age in START_AGES.items():
        of_class = [starts[int(code)] for code in start_boards(shape, age)]
        classes[name] = math.fsum(of_class) / len(of_class)
    p4 = problem.spawn4
    shares = {"2,2": (1 - p4) ** 2, "2,4": 2 * p4 * (1 - p4), "4,4": p4**2}
    codes = np.array(sorted(starts), dtype=np.uint64)
    boards = unpack_boards(codes, shape)
    return {
        "identity": sets.store.kind_identity(problem.objective.values_kind),
        "objective": problem.objective.name,
        "spawn4": p4,
        "values": value_format.name,
        "max_value": values.max_value,
        "rounding_bound": float(value_format.rounding_bound(values.max_value)),
        "start_classes": classes,
        "random_start": math.fsum(shares[name] * classes[name] for name in classes),
        "start_boards": {
            format_board(board): starts[int(code)]
            for board, code in zip(boards, codes, strict=True)
        },
    }
