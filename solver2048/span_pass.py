"""A solve that keeps no sets: spans of bands, the topmost first, each dropped after.

The forward pass leaves on the disk what the budget holds, see `solver2048.scratch`. The backward
pass goes over the bands on top and drops them behind it; then the next span is enumerated again
from the seed below it, and so on down to the start boards.
"""

from __future__ import annotations

from .backward import Problem
from .backward_pass import backward_pass
from .bands import bands_of
from .descent import is_kept, read_checkpoint
from .errors import NoSolution
from .forward_pass import forward_pass
from .keeper import Keeper
from .kept_records import COUNTS, drop_band, record_name
from .layer_sets import LayerSets
from .options import SolveOptions
from .policy_keeper import PolicyKeeper
from .progress_log import NO_LOG, PassLog
from .records import OBJECTIVE, SETS
from .statistics_keeper import StatisticsKeeper
from .store import Store
from .workers import Workers


def keeper_of(keep: str, problem: Problem) -> Keeper:
    """What stays where no sets are kept."""
    return PolicyKeeper(problem) if keep == "policy" else StatisticsKeeper(problem)


def span_pass(
    store: Store,
    keeper: Keeper,
    max_age: int,
    options: SolveOptions,
    workers: Workers,
    log: PassLog = NO_LOG,
) -> bool:
    """Find an objective's start values, and what else is kept; returns whether there was any work.

    No sets are there in the end, and no values. Another objective enumerates everything again. Up
    to an age below the top age, boards are enumerated and counted alone.
    """
    shape = keeper.problem.shape
    store.write_record("run.json", {**store.read_run(), "disk": options.disk})
    if max_age < shape.top_age:
        is_counted = LayerSets(store).max_age >= max_age - max_age % 2
        return not is_counted and forward_pass(store, shape, max_age, options, workers, log)
    if other := _unfinished_other(store, keeper.kind):
        if _is_complete(store, keeper):
            return False  # the sets that lie here are the other's
        raise NoSolution(
            f"{store.path} is not finished with the objective {other}; finish it first, or "
            "solve this one into another directory"
        )
    store.create_kind(keeper.kind, keeper.facts)  # says whose the sets are that come to lie here
    has_worked = False
    while not _is_complete(store, keeper):
        _solve_span(store, keeper, options, workers, log)
        has_worked = True
    for band in bands_of(shape):  # one whose counts were lost is enumerated again
        if not (store.path / record_name(COUNTS, band)).exists():
            forward_pass(store, shape, band.last, options, workers, log)
    stored = [band for band in bands_of(shape) if store.is_done(SETS, band)]
    for band in stored:
        drop_band(store, band)
    store.checkpoint(keeper.kind).drop()
    if (store.path / SETS).exists():
        store.discard(SETS)
    has_worked |= keeper.has_arrays and store.finish_kind(keeper.kind, bands_of(shape))
    return has_worked or bool(stored)


def _is_complete(store: Store, keeper: Keeper) -> bool:
    bands = bands_of(keeper.problem.shape)
    is_finished = store.is_finished(keeper.kind)
    return is_finished and all(is_kept(store, keeper.kind, band) for band in bands)


def _unfinished_other(store: Store, kind: str) -> str | None:
    """The name of another objective that is begun: two would drop each other's sets."""
    for other in store.objective_kinds():
        if other != kind and not store.is_finished(other):
            return str((store.read_record(f"{other}/{OBJECTIVE}") or {}).get("objective", other))
    return None


def _solve_span(
    store: Store,
    keeper: Keeper,
    options: SolveOptions,
    workers: Workers,
    log: PassLog,
) -> None:
    """Bring the values down over the sets that are stored, or else enumerated again, below them."""
    shape = keeper.problem.shape
    # Their ages alone: the values themselves take gigabytes while others are enumerated.
    known = set(read_checkpoint(store, shape, keeper.kind))
    below = min(known, default=shape.top_age + 2)
    bands = bands_of(shape)
    top = max(band for band in bands if band.first < below)
    # The states that the checkpoint's values belong to come first.
    for band in bands:
        if band == top or not known.isdisjoint(band.ages):
            forward_pass(store, shape, band.last, options, workers, log)
    number = bands.index(top)
    while number and store.is_done(SETS, bands[number - 1]):
        number -= 1
    backward_pass(store, keeper, options, workers, until=bands[number], log=log)
