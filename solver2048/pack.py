"""Policy tables made from a solution's sets, or from a complete policy table.

Where only the states of optimal play are wanted of a solution, its complete policy lies in the new
table's scratch meanwhile.
"""

from __future__ import annotations

import dataclasses
import os

from .age_counts import count_ages
from .backward import Problem
from .backward_pass import backward_pass
from .bands import bands_of
from .errors import NoSolution, NotSolved, SolutionDamaged, UsageError
from .kept_records import keep_counts
from .layer_sets import LayerSets, stored_problem, stored_shape
from .lock import DirectoryLock, check_source
from .options import EVERY_STATE, REACHES, SolveOptions
from .outlook import check_pack_fits
from .policy import PolicyTable
from .policy_keeper import PolicyKeeper
from .policy_reach import is_reached, reach_pass
from .progress_log import PassLog, ProgressLog
from .records import COMPLETE
from .store import Store
from .workers import Workers


def pack_policy(
    path: str | os.PathLike[str],
    out: str | os.PathLike[str],
    options: SolveOptions | None = None,
    *,
    reach: str = EVERY_STATE,
    lock: DirectoryLock | None = None,
) -> bool:
    """Make a policy table in `out`, or go on with one that was stopped.

    path : a solution, of which all sets are needed, or, for `reach` "optimal", a policy table
    options : as those of a solve; what the solution has settled is not read
    A table that is forecast not to fit the disk or `memory_bytes` raises NoSpace, unless `force`.
    Returns whether there was anything to do. Raises the errors of `solver2048.errors`.
    """
    options = options or SolveOptions()
    if reach not in REACHES:
        raise UsageError(f"reach {reach!r} is none of {', '.join(REACHES)}")
    check_source(path, out)
    source, store = Store(path), Store(out)
    problem = stored_problem(source, options.objective)
    kind = problem.objective.policy_kind
    with lock or DirectoryLock(out):
        _check_complete(source, problem, reach)
        counts = count_ages(problem.shape, enumerated=LayerSets(source).counts())
        outlook = check_pack_fits(source, store, kind, counts, reach, options)
        options = dataclasses.replace(options, overlaps=outlook.overlaps)
        _begin(source, store, reach)
        with ProgressLog(store.path, outlook.seconds) as log, Workers(options.threads) as workers:
            if reach == EVERY_STATE:
                keeper = PolicyKeeper(problem)
                return backward_pass(store, keeper, options, workers, source=source, log=log)
            return _pack_met(source, store, problem, options, workers, log)


def _check_complete(source: Store, problem: Problem, reach: str) -> None:
    """Raise NotSolved, NoSolution unless the source has all that the table is made from."""
    if source.keep == "policy":
        if reach == EVERY_STATE:
            raise NoSolution(f"{source.path} is a policy table already")
        table = PolicyTable(source, problem.shape, problem.objective)
        if table.result is None or table.reach != EVERY_STATE:
            raise NotSolved(f"{source.path} is no complete policy table")
        return
    sets = LayerSets(source)
    if source.keep == "start" or sets.gaps or sets.max_age < sets.shape.top_age:
        raise NotSolved(f"{source.path} has not the sets of all ages; finish its solve first")


def _pack_met(
    source: Store, store: Store, problem: Problem, options: SolveOptions, workers: Workers,
    log: PassLog,
) -> bool:  # fmt: skip
    """Make the table of the states that optimal play meets, from the one of all states."""
    kind = problem.objective.policy_kind
    has_worked = not is_reached(store, problem)
    if has_worked and source.keep == "policy":
        table = PolicyTable(source, problem.shape, problem.objective)
        reach_pass(table, store, options, workers, log)
    elif has_worked:
        _pack_both(source, store, problem, options, workers, log)
    store.discard(COMPLETE)
    store.checkpoint(kind).drop()
    return store.finish_kind(kind, bands_of(problem.shape)) or has_worked


def _pack_both(
    source: Store, store: Store, problem: Problem, options: SolveOptions, workers: Workers,
    log: PassLog,
) -> None:  # fmt: skip
    """Make the complete table in scratch, and of it the one wanted; the former goes if damaged."""
    complete = Store(store.path / COMPLETE)
    is_made = False
    try:
        _begin(source, complete, EVERY_STATE)
        keeper = PolicyKeeper(problem)
        backward_pass(complete, keeper, options, workers, source=source, log=log)
        is_made = True
        table = PolicyTable(complete, problem.shape, problem.objective)
        reach_pass(table, store, options, workers, log)
    except (SolutionDamaged, NoSolution) as error:
        # Until it is made its files alone are read, and their errors say where they are.
        if not is_made and str(complete.path) not in str(error):
            raise
        store.discard(COMPLETE)
        raise SolutionDamaged(f"{error}; it is removed, the same command makes it again") from None


def _begin(source: Store, store: Store, reach: str) -> None:
    """Say what the table is, and take over the counts of all ages."""
    record = source.identity()
    facts = {name: record[name] for name in ("shape", "rules", "spawn4", "ids")}
    store.create({**facts, "keep": "policy", "reach": reach})
    store.clean()
    for band in bands_of(stored_shape(source)):
        keep_counts(store, source, band)
