"""Solving a board: the forward pass over all bands, then the backward pass, resumable by bands."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

from .age_counts import AgeCounts, count_ages
from .backward import Problem
from .backward_pass import backward_pass
from .errors import NoSolution
from .forward_pass import forward_pass
from .ids import make_ids
from .keeper import Keeper
from .layer_values import ValueKeeper
from .lock import DirectoryLock
from .objective import parse_objective
from .options import (
    DEFAULT_DISK,
    DEFAULT_IDS,
    DEFAULT_SPAWN4,
    DEFAULT_VALUES,
    EVERY_STATE,
    KEEPS,
    SolveOptions,
    check_mode,
    check_options,
)
from .outlook import check_fits
from .progress_log import ProgressLog
from .records import OBJECTIVE, SETS
from .shape import Shape, parse_shape
from .span_pass import keeper_of, span_pass
from .store import Store
from .value_format import ValueFormat, parse_value_format
from .workers import Workers

RULES = "2048"
"""Moves and spawns as in the game of that name: a spawn takes any empty cell alike."""

KEEP_FACTS: dict[str, dict[str, str]] = {
    "solution": {},
    "start": {"keep": "start"},
    "policy": {"keep": "policy", "reach": EVERY_STATE},
}
"""What the directory of a solve says of what is kept in it."""


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
    A solve that is forecast not to fit the disk or `memory_bytes` raises NoSpace, unless `force`.
    Raises the errors of `solver2048.errors`; whatever is raised, no finished band is lost.
    """
    options = options or SolveOptions()
    shape = parse_shape(shape) if isinstance(shape, str) else shape
    check_options(shape, objective=options.objective, values=options.values, spawn4=options.spawn4,
                  threads=options.threads, max_age=options.max_age)  # fmt: skip
    check_mode(options)
    objective = parse_objective(options.objective, shape)
    max_age = shape.top_age if options.max_age is None else options.max_age

    store = Store(path)
    with lock or DirectoryLock(path):
        spawn4 = float(_settled(store, "spawn4", options.spawn4, DEFAULT_SPAWN4))
        ids = make_ids(str(_settled(store, "ids", options.ids, DEFAULT_IDS)), shape)
        facts = {"shape": shape.name, "rules": RULES, "spawn4": spawn4, "ids": ids.name}
        if store.exists():
            store.create(facts)  # whether this is the place comes before whether there is room
        counts = count_ages(shape, max_age, expected=options.expected_counts)
        keep = _settled_keep(store, options)
        facts |= KEEP_FACTS[keep]
        options = dataclasses.replace(options, keep=keep)
        check_mode(options)  # again, of what the directory is for
        if keep != "solution":
            options = _settled_disk(store, options)
        keeper = _keeper(store, Problem(shape, objective, spawn4), options)
        outlook = check_fits(store, keeper.kind, counts, ids.name, options)
        options = dataclasses.replace(options, overlaps=outlook.overlaps)
        store.create(facts)
        store.clean()
        with ProgressLog(store.path, outlook.seconds) as log, Workers(options.threads) as workers:
            return _run_passes(store, keeper, counts, options, workers, log)


def _run_passes(
    store: Store,
    keeper: Keeper,
    counts: AgeCounts,
    options: SolveOptions,
    workers: Workers,
    log: ProgressLog,
) -> bool:
    """Enumerate the ages counted, and value all if these are all; whether there was any work."""
    if store.drops_sets:
        return span_pass(store, keeper, counts.max_age, options, workers, log)
    # Finished sets stay finished, also where one of them was lost.
    reach = counts.shape.top_age if store.has_catalogue(SETS) else counts.max_age
    has_worked = forward_pass(store, counts.shape, reach, options, workers, log)
    if counts.is_complete:
        has_worked |= backward_pass(store, keeper, options, workers, log=log)
    return has_worked


def _keeper(store: Store, problem: Problem, options: SolveOptions) -> Keeper:
    """What stays of the solve."""
    if options.keep == "solution":
        return ValueKeeper(problem, _settled_values(store, problem, options))
    return keeper_of(str(options.keep), problem)


def _settled(store: Store, name: str, asked: object, default: object) -> Any:
    """An option that the directory was made with: as asked, else the directory's, else default."""
    if asked is not None:
        return asked
    return store.identity().get(name) if store.exists() else default


def _settled_keep(store: Store, options: SolveOptions) -> str:
    """What stays of the solve: as asked, if that is what the directory is for."""
    if not store.exists():
        return options.keep or KEEPS[0]
    found = store.keep
    if options.keep not in (None, found):
        raise NoSolution(
            f"{store.path} is solved with keep {found}; you asked for {options.keep}: choose "
            "another directory"
        )
    return found


def _settled_disk(store: Store, options: SolveOptions) -> SolveOptions:
    """The options with a budget: as asked, else that of the last run, else the default."""
    disk = options.disk or int(store.read_run().get("disk", DEFAULT_DISK))
    return dataclasses.replace(options, disk=disk)


def _settled_values(store: Store, problem: Problem, options: SolveOptions) -> ValueFormat:
    """The format of an objective's values: that of the directory once it has any."""
    objective = problem.objective
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
    return parse_value_format(name, objective.max_value(problem.shape))
