"""Solving a board: the forward pass over all bands, then the backward pass, resumable by bands."""

from __future__ import annotations

import contextlib
import functools
import math
import os
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from elias_fano.ranked import rank_bitmap

from .backward import Problem, StateValues, start_values, value_layer
from .bands import bands_of, slots_per_age
from .board import format_board, unpack_boards
from .errors import NoSolution, PublishedMismatch, SolverError
from .forward import START_AGES, AfterstateLayer, Layer, enumerate_layer, start_boards
from .layer import Band, LayerCounts
from .layer_index import build_layer_index
from .layer_sets import KIND as SETS
from .layer_sets import BandBuilder, LayerSets
from .layer_values import ValueBandBuilder, Values
from .lock import DirectoryLock
from .objective import Objective, parse_objective
from .options import DEFAULT_SPAWN4, DEFAULT_VALUES, check_options
from .progress import Progress, peak_memory_bytes
from .records import OBJECTIVE, RESULT
from .shape import Shape, parse_shape
from .store import Store
from .value_format import ValueFormat, parse_value_format
from .workers import Workers

RULES = "2048"
"""Moves and spawns as in the game of that name: a spawn takes any empty cell alike."""

# Work of a layer, in nanoseconds of one core as measured on 4x3.
SLOT_WORK, STATE_WORK, AFTERSTATE_WORK = 0.5, 32.0, 19.0


@dataclass(frozen=True)
class SolveOptions:
    """What to solve and how; None takes what the directory has, else the default."""

    objective: str = "score"
    values: str | None = None
    spawn4: float | None = None
    threads: int | None = None
    max_age: int | None = None
    expected_counts: dict[int, int] = field(default_factory=dict)
    show_progress: bool = False
    checkpoint_seconds: float = 300.0


def solve(
    shape: Shape | str,
    path: str | os.PathLike[str],
    options: SolveOptions | None = None,
    *,
    lock: DirectoryLock | None = None,
) -> bool:
    """Solve a board into a directory, or go on where a solve of it was stopped.

    With `max_age` below the top age only the forward pass runs, up to that age. Bands that are
    stored are not written again. `lock` is one on `path` that is held already, if there is one.
    Returns whether there was anything to do.
    Raises the errors of `solver2048.errors`; whatever is raised, no finished band is lost.
    """
    options = options or SolveOptions()
    shape = parse_shape(shape) if isinstance(shape, str) else shape
    check_options(shape, objective=options.objective, values=options.values, spawn4=options.spawn4,
                  threads=options.threads, max_age=options.max_age)  # fmt: skip
    objective = parse_objective(options.objective, shape)
    max_age = shape.top_age if options.max_age is None else options.max_age

    store = Store(path)
    with lock or DirectoryLock(path):
        spawn4 = _settled_spawn4(store, options)
        store.create({"shape": shape.name, "rules": RULES, "spawn4": spawn4, "ids": "index"})
        store.clean()
        value_format = _settled_values(store, shape, objective, options)
        with Workers(options.threads) as workers:
            has_worked = _forward(store, shape, min(max_age, shape.top_age), options, workers)
            if max_age >= shape.top_age:
                problem = Problem(shape, objective, spawn4)
                has_worked |= _backward(store, problem, value_format, options, workers)
    return has_worked


def _settled_spawn4(store: Store, options: SolveOptions) -> float:
    if options.spawn4 is not None:
        return options.spawn4
    return float(store.identity()["spawn4"]) if store.exists() else DEFAULT_SPAWN4


def _settled_values(
    store: Store, shape: Shape, objective: Objective, options: SolveOptions
) -> ValueFormat:
    """The format of an objective's values: that of the directory once it has any."""
    kind = objective.values_kind
    record = store.read_record(f"{kind}/{OBJECTIVE}")
    if record is None:  # any of its bands says it too
        for manifest_name in store.record_names(f"{kind}/*/manifest.json")[:1]:
            record = store.read_record(manifest_name)
    name = options.values or (record["values"] if record else DEFAULT_VALUES)
    if record and record["values"] != name:
        raise NoSolution(
            f"{store.path} has {objective.name} solved with values {record['values']}; "
            f"you asked for {name}"
        )
    return parse_value_format(name, objective.max_value(shape))


class _Timer:
    """Adds the time since its last call to an entry of run.json, no part of the solution."""

    def __init__(self, store: Store, name: str) -> None:
        self._store, self._name = store, name
        self._last = time.monotonic()

    def __enter__(self) -> _Timer:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(SolverError):  # times are no reason to hide why a run ended
            self.save()

    def save(self) -> None:
        now = time.monotonic()
        record = self._store.read_run()
        record[self._name] = record.get(self._name, 0.0) + now - self._last
        record["peak_memory_bytes"] = max(record.get("peak_memory_bytes", 0), peak_memory_bytes())
        self._store.write_record("run.json", record)
        self._last = now


class _BackgroundWriter:
    """Runs one write at a time beside the computing; an error shows at the next call."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1)
        self._pending: Future[None] | None = None

    def __enter__(self) -> _BackgroundWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            self.finish()
        except Exception:
            if kind is None:
                raise
        finally:
            self._pool.shutdown()

    def submit(self, write: Callable[[], None]) -> None:
        self.finish()
        self._pending = self._pool.submit(write)

    def finish(self) -> None:
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.result()


# --- forward ----------------------------------------------------------------------------------


def _forward(
    store: Store, shape: Shape, max_age: int, options: SolveOptions, workers: Workers
) -> bool:
    """Enumerate and store the missing bands up to an age; returns whether there were any."""
    for counts in LayerSets(store).counts():
        _expect(counts, options)
    bands = [b for b in bands_of(shape) if b.first <= max_age and not _reaches(store, b, max_age)]
    if bands:
        _enumerate_bands(store, shape, bands, max_age, options, workers)
    if max_age == shape.top_age:
        return _finish_kind(store, SETS, shape) or bool(bands)
    return bool(bands)


def _reaches(store: Store, band: Band, max_age: int) -> bool:
    """Whether a band is stored up to an age; a band cut short may be."""
    manifest = store.stored_manifest(SETS, band)
    if manifest is None:
        return False
    return bool(manifest["is_complete"]) or int(manifest["layers"][-1]["age"]) + 2 > max_age


def _enumerate_bands(
    store: Store,
    shape: Shape,
    bands: list[Band],
    max_age: int,
    options: SolveOptions,
    workers: Workers,
) -> None:
    """Enumerate and store bands, upward; what is below each of them is stored by then."""
    slots = slots_per_age(shape)
    total_work = float(
        sum(slots[b.first // 2 : min(b.last, max_age) // 2 + 1].sum() for b in bands)
    )
    window: dict[int, AfterstateLayer] = {}
    reached = 0
    with (
        _Timer(store, "forward_seconds") as timer,
        Progress(f"{shape.name} forward", total_work, enabled=options.show_progress) as progress,
        _BackgroundWriter() as writer,
    ):
        for band in bands:
            if band.first != reached + 2:
                writer.finish()
                window = _read_window(LayerSets(store), band)
            ages = range(band.first, min(band.last, max_age) + 1, 2)
            # A set takes at most about a bit a slot.
            forecast = 2 * float(slots[ages[0] // 2 : ages[-1] // 2 + 1].sum()) / 8
            store.check_space(SETS, band, forecast)
            builder = BandBuilder()
            for age in ages:
                layer = enumerate_layer(shape, age, window, workers)
                _expect(layer.counts, options)
                builder.add(layer)
                _slide(window, layer, age)
                progress.advance(age, layer.counts.num_slots, layer.counts.states)
            reached = ages[-1]
            # The digest of the band before goes into this one's manifest.
            writer.finish()
            parents = {
                f"{SETS}/{below.name}": store.manifest_digest(SETS, below)
                for below in _bands_below(shape, band)
            }
            is_complete = band.last <= max_age
            writer.submit(functools.partial(builder.commit, store, band, is_complete, parents))
            timer.save()
        writer.finish()


def _finish_kind(store: Store, kind: str, shape: Shape) -> bool:
    """Write the catalogue of a kind whose bands are all stored, if it is not there yet."""
    if store.catalogue(kind) is not None:
        return False
    store.write_catalogue(kind, list(bands_of(shape)))
    return True


def _slide(window: dict[int, AfterstateLayer], layer: Layer, age: int) -> None:
    window[age] = AfterstateLayer(layer.index, layer.afterstates)
    window.pop(age - 4, None)


def _read_window(sets: LayerSets, band: Band) -> dict[int, AfterstateLayer]:
    """The afterstates of the two ages before a band, from the bands stored."""
    window = {}
    for below in _bands_below(sets.shape, band):
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


# --- backward ---------------------------------------------------------------------------------


def _backward(
    store: Store,
    problem: Problem,
    value_format: ValueFormat,
    options: SolveOptions,
    workers: Workers,
) -> bool:
    """Compute and store the values of all bands, from the last checkpoint if there is one.

    Returns whether there was anything to do.
    """
    objective = problem.objective
    kind = objective.values_kind
    store.create_kind(kind, {"objective": objective.name, "values": value_format.name})
    missing = [band for band in bands_of(problem.shape) if not store.is_done(kind, band)]
    is_finished = store.read_record(f"{kind}/{RESULT}") is not None
    if missing or not is_finished:
        lowest = min(missing) if is_finished else bands_of(problem.shape)[0]
        _value_bands(store, problem, value_format, lowest, options, workers)
    return _finish_kind(store, kind, problem.shape) or bool(missing)


def _value_bands(
    store: Store,
    problem: Problem,
    value_format: ValueFormat,
    lowest: Band,
    options: SolveOptions,
    workers: Workers,
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
    title = f"{problem.shape.name} backward"
    with (
        _Timer(store, f"{objective.directory}_backward_seconds") as timer,
        Progress(title, total_work, enabled=options.show_progress) as progress,
        _BackgroundWriter() as writer,
        ThreadPoolExecutor(1) as reader,
    ):
        reading = reader.submit(sets.read_band, bands[0])
        for number, band in enumerate(bands):
            stored = reading.result()
            if number + 1 < len(bands):
                reading = reader.submit(sets.read_band, bands[number + 1])
            builder = ValueBandBuilder(sets, band, value_format)
            is_new = not store.is_done(kind, band)
            if is_new:
                store.check_space(kind, band, builder.num_bytes)
            for age in reversed(band.ages):
                layer, values = value_layer(
                    problem, age, rank_bitmap(stored.bitmap(age, "states")),
                    rank_bitmap(stored.bitmap(age, "afterstates")), window, workers,
                )  # fmt: skip
                builder.add(age, values)
                del values  # 1.5 GB in the largest layers, while the next is computed
                window[age] = layer
                window.pop(age + 4, None)
                starts |= start_values(problem, layer)
                counts = sets.layer_counts(age)
                progress.advance(age, _work(counts), counts.states)
            if is_new:
                writer.submit(functools.partial(builder.commit, store, kind))
            # None from the start boards on: their values would be lost to a resumed run.
            is_early = band.first > max(START_AGES.values())
            if is_early and time.monotonic() - last_checkpoint >= options.checkpoint_seconds:
                writer.finish()
                store.checkpoint(kind).write({age: layer.values for age, layer in window.items()})
                last_checkpoint = time.monotonic()
            timer.save()
        writer.finish()
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
