"""The backward pass that keeps actions alone: values live only in the window of three ages.

Stored values are not enough to choose from: two actions that differ by less than their rounding
would be taken for equal. So the values are computed again, in float64, from the sets.
"""

from __future__ import annotations

import functools
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from elias_fano.ranked import rank_bitmap

from .background import BackgroundWriter, RunTimer
from .backward import Problem, StateValues, start_values, value_layer
from .backward_pass import layer_work, start_record
from .bands import bands_of
from .forward import START_AGES
from .layer import Band
from .layer_index import build_layer_index
from .layer_sets import LayerSets
from .options import SolveOptions
from .policy_bands import PolicyBandBuilder, best_actions, policy_kind
from .progress import Progress
from .records import RESULT
from .store import Store
from .workers import Workers


def policy_pass(
    sets: LayerSets, store: Store, problem: Problem, options: SolveOptions, workers: Workers
) -> bool:
    """Store the best action of every state of complete sets, in a store of its own or in theirs.

    Goes on from the last checkpoint if there is one. Returns whether there was anything to do.
    """
    kind = policy_kind(problem.objective)
    store.create_kind(kind, {"objective": problem.objective.name, "reach": "all"})
    bands = bands_of(problem.shape)
    if store.read_record(f"{kind}/{RESULT}") is None or not all(
        store.is_done(kind, band) for band in bands
    ):
        _choose_bands(sets, store, problem, options, workers)
        store.finish_kind(kind, bands)
        return True
    return store.finish_kind(kind, bands)


def _choose_bands(
    sets: LayerSets, store: Store, problem: Problem, options: SolveOptions, workers: Workers
) -> None:
    """Choose and store the actions of all bands that are not stored, and the start values."""
    shape, kind = problem.shape, policy_kind(problem.objective)
    window = _read_window(sets, store, problem)
    bands = [b for b in reversed(sets.bands) if b.first < min(window, default=shape.top_age + 2)]
    starts: dict[int, float] = {}
    saved = time.monotonic()
    total = sum(layer_work(sets.layer_counts(age)) for band in bands for age in band.ages)
    with (
        RunTimer(store, f"{kind.replace('/', '_')}_seconds") as timer,
        Progress(f"{shape.name} policy", total, enabled=options.show_progress) as progress,
        BackgroundWriter() as writer,
        ThreadPoolExecutor(1) as reader,
    ):
        reading = reader.submit(sets.read_band, bands[0])
        for number, band in enumerate(bands):
            stored = reading.result()
            if number + 1 < len(bands):
                reading = reader.submit(sets.read_band, bands[number + 1])
            builder = PolicyBandBuilder(shape, band, _num_members(sets, band))
            is_new = not store.is_done(kind, band)
            for age in reversed(band.ages):
                states = rank_bitmap(stored.bitmap(age, "states"))
                afterstates = rank_bitmap(stored.bitmap(age, "afterstates"))
                layer, values = value_layer(problem, age, states, afterstates, window, workers)
                if is_new:
                    masks = best_actions(
                        shape, problem.objective, layer.index, states, afterstates, values, workers
                    )
                    builder.add(age, states, masks)
                window[age] = layer
                window.pop(age + 4, None)
                starts |= start_values(problem, layer)
                counts = sets.layer_counts(age)
                progress.advance(age, layer_work(counts), counts.states)
            if is_new:
                arrays, record = builder.encode(workers)
                writer.submit(functools.partial(store.write_band, kind, band, arrays, record))
            # None from the start boards on: their values would be lost to a resumed run.
            is_due = time.monotonic() - saved >= options.checkpoint_seconds
            if is_due and band.first > max(START_AGES.values()):
                writer.finish()
                store.checkpoint(kind).write({age: layer.values for age, layer in window.items()})
                saved = time.monotonic()
            timer.save()
        writer.finish()
    store.write_record(f"{kind}/{RESULT}", _result(store, problem, starts))
    store.checkpoint(kind).drop()


def _num_members(sets: LayerSets, band: Band) -> dict[int, int]:
    return {age: sets.layer_counts(age).state_members for age in band.ages}


def _read_window(sets: LayerSets, store: Store, problem: Problem) -> dict[int, StateValues]:
    """The window of a pass that was stopped; empty if it has to start at the top."""
    kind = policy_kind(problem.objective)
    checkpoint = store.checkpoint(kind).read()
    lowest = min(checkpoint, default=problem.shape.top_age)
    if not all(store.is_done(kind, b) for b in bands_of(problem.shape) if b.last >= lowest):
        return {}
    window = {}
    for band in sets.bands:
        for age in checkpoint.keys() & set(band.ages):
            states = rank_bitmap(sets.read_band(band).bitmap(age, "states"))
            window[age] = StateValues(build_layer_index(sets.shape, age), states, checkpoint[age])
    return window


def _result(store: Store, problem: Problem, starts: dict[int, float]) -> dict[str, Any]:
    return {
        "identity": store.kind_identity(policy_kind(problem.objective)),
        "objective": problem.objective.name,
        "spawn4": problem.spawn4,
        **start_record(problem, starts),
    }
