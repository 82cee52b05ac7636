"""A solve that keeps the start values alone: spans of bands, the topmost first, each dropped after.

The forward pass leaves on the disk what the budget holds, see `solver2048.scratch`. The backward
pass goes over the bands on top and drops them behind it; then the next span is enumerated again
from the seed below it, and so on down to the start boards.
"""

from __future__ import annotations

from .backward import Problem
from .backward_pass import backward_pass, is_valued, read_checkpoint
from .bands import bands_of
from .errors import NoSolution
from .forward_pass import forward_pass
from .kept_records import COUNTS, drop_band, record_name
from .layer_sets import LayerSets
from .layer_values import stored_objectives
from .objective import parse_objective
from .options import SolveOptions
from .progress_log import ProgressLog
from .records import RESULT, SETS
from .shape import Shape
from .store import Store
from .workers import Workers


def start_pass(
    store: Store,
    problem: Problem,
    max_age: int,
    options: SolveOptions,
    workers: Workers,
    log: ProgressLog | None = None,
) -> bool:
    """Find an objective's start values; returns whether there was anything to do.

    Only the start values, counts and statistics are there in the end. Another objective enumerates
    everything again. Up to an age below the top age, boards are enumerated and counted alone.
    """
    shape, kind = problem.shape, problem.objective.values_kind
    store.write_record("run.json", {**store.read_run(), "disk": options.disk})
    if max_age < shape.top_age:
        is_counted = LayerSets(store).max_age >= max_age - max_age % 2
        return not is_counted and forward_pass(store, shape, max_age, options, workers, log)
    _refuse_two_at_once(store, shape, problem.objective.name)
    has_worked = False
    while not _has_values(store, shape, kind):
        _solve_span(store, problem, options, workers, log)
        has_worked = True
    for band in bands_of(shape):  # one whose counts were lost is enumerated again
        if not (store.path / record_name(COUNTS, band)).exists():
            forward_pass(store, shape, band.last, options, workers, log)
    stored = [band for band in bands_of(shape) if store.is_done(SETS, band)]
    for band in stored:
        drop_band(store, band)
    store.checkpoint(kind).drop()
    if (store.path / SETS).exists():
        store.discard(SETS)
    return has_worked or bool(stored)


def _has_values(store: Store, shape: Shape, kind: str) -> bool:
    is_finished = store.read_record(f"{kind}/{RESULT}") is not None
    return is_finished and all(is_valued(store, kind, band) for band in bands_of(shape))


def _refuse_two_at_once(store: Store, shape: Shape, name: str) -> None:
    """Two objectives would drop each other's sets."""
    for other in stored_objectives(store):
        kind = parse_objective(other, shape).values_kind
        if other != name and store.read_record(f"{kind}/{RESULT}") is None:
            raise NoSolution(
                f"{store.path} is not finished with the objective {other}; finish it first, or "
                f"solve {name} into another directory"
            )


def _solve_span(
    store: Store,
    problem: Problem,
    options: SolveOptions,
    workers: Workers,
    log: ProgressLog | None,
) -> None:
    """Bring the values down over the sets that are stored, or else enumerated again, below them."""
    shape = problem.shape
    # Their ages alone: the values themselves take gigabytes while others are enumerated.
    known = set(read_checkpoint(store, problem))
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
    backward_pass(store, problem, None, options, workers, until=bands[number], log=log)
