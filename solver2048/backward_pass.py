"""The backward pass: all bands valued from the top age down, and the values of start boards."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .backward import Problem
from .bands import bands_of
from .board import format_board, unpack_boards
from .descent import Descent, is_kept
from .forward import START_AGES, start_boards
from .keeper import Keeper
from .layer import Band
from .layer_sets import LayerSets
from .options import SolveOptions
from .progress_log import NO_LOG, PassLog
from .records import RESULT
from .store import Store
from .workers import Workers


def backward_pass(
    store: Store,
    keeper: Keeper,
    options: SolveOptions,
    workers: Workers,
    *,
    source: Store | None = None,
    until: Band | None = None,
    log: PassLog = NO_LOG,
) -> bool:
    """Compute the values of all bands, from the last checkpoint if there is one, and keep them.

    source : where the sets are, if in another store
    until : the last band wanted of a pass that is not to be finished now
    Sets that are not needed any more are dropped where the store does so; the pass then ends with
    a checkpoint. Returns whether there was anything to do.
    """
    kind, bands = keeper.kind, bands_of(keeper.problem.shape)
    store.create_kind(kind, keeper.facts)
    missing = [band for band in bands if not is_kept(store, kind, band)]
    is_finished = store.is_finished(kind)
    has_worked = bool(missing) or not is_finished
    wanted = min(missing) if missing and is_finished else bands[0]
    lowest = max(until or bands[0], wanted)
    if has_worked:
        descent = Descent(LayerSets(source or store), store, keeper, options, workers, log)
        descent.run(lowest)
    if lowest > wanted:
        return has_worked
    if not is_finished:
        store.write_record(f"{kind}/{RESULT}", _result(store, keeper, descent.starts))
    store.checkpoint(kind).drop()
    if keeper.has_arrays:
        has_worked |= store.finish_kind(kind, bands)
    return has_worked


def _result(store: Store, keeper: Keeper, starts: dict[int, float]) -> dict[str, Any]:
    """What a finished objective says: start values in full, and the bound of what is stored."""
    return {
        "identity": store.kind_identity(keeper.kind),
        "objective": keeper.problem.objective.name,
        "spawn4": keeper.problem.spawn4,
        **keeper.bounds(store),
        **start_record(keeper.problem, starts),
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
