"""Policy tables made: from a solution's sets, from nothing, or from a complete policy table.

What is needed on the way lies in the new table's scratch: the sets of a `solve --keep policy`, the
complete policy where only the states of optimal play are wanted.
"""

from __future__ import annotations

import os
from typing import Any

from .backward import Problem
from .errors import NoSolution, NotSolved, UsageError
from .forward_pass import forward_pass
from .layer_sets import LayerSets, stored_shape
from .lock import DirectoryLock
from .objective import parse_objective
from .options import REACHES, SolveOptions
from .policy import PolicyTable
from .policy_bands import policy_kind
from .policy_pass import policy_pass
from .policy_reach import reach_pass
from .records import RESULT
from .store import Store
from .workers import Workers


def pack_policy(
    path: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    objective: str = "score",
    reach: str = REACHES[0],
    threads: int | None = None,
    show_progress: bool = False,
    lock: DirectoryLock | None = None,
) -> bool:
    """Make a policy table in `out`, or go on with one that was stopped.

    path : a solution, of which all sets are needed, or, for `reach` "optimal", a policy table
    Returns whether there was anything to do. Raises the errors of `solver2048.errors`.
    """
    if reach not in REACHES:
        raise UsageError(f"reach {reach!r} is none of {', '.join(REACHES)}")
    source, store = Store(path), Store(out)
    shape = stored_shape(source)
    problem = Problem(shape, parse_objective(objective, shape), float(source.identity()["spawn4"]))
    options = SolveOptions(objective=objective, threads=threads, show_progress=show_progress)
    with lock or DirectoryLock(out), Workers(threads) as workers:
        if source.path.resolve() == store.path.resolve():
            raise UsageError(f"{out} is what is to be packed: choose another directory")
        store.create({**policy_facts(source), "reach": reach})
        store.clean()
        if reach == REACHES[0]:
            return policy_pass(_complete_sets(source), store, problem, options, workers)
        complete = source
        if source.keep != "policy":
            complete = Store(store.path / "scratch" / "complete")
            complete.create({**policy_facts(source), "reach": REACHES[0]})
            policy_pass(_complete_sets(source), complete, problem, options, workers)
        table = PolicyTable(complete, shape, problem.objective)
        if table.result is None or table.reach != REACHES[0]:
            raise NotSolved(f"{complete.path} is no complete policy table")
        has_worked = reach_pass(table, store, options, workers)
        store.discard("scratch/complete")
        return has_worked


def solve_policy(
    store: Store, problem: Problem, facts: dict[str, Any], options: SolveOptions
) -> bool:
    """Solve a board and keep its policy alone; returns whether there was anything to do."""
    store.create({**facts, "keep": "policy", "reach": REACHES[0]})
    store.clean()
    table_is_there = store.read_record(f"{policy_kind(problem.objective)}/{RESULT}")
    sets = Store(store.path / "scratch" / "solution")
    with Workers(options.threads) as workers:
        if not table_is_there:
            sets.create(facts)
            forward_pass(sets, problem.shape, problem.shape.top_age, options, workers)
            policy_pass(LayerSets(sets), store, problem, options, workers)
    if sets.path.exists():
        store.discard("scratch/solution")
    return not table_is_there


def policy_facts(source: Store) -> dict[str, Any]:
    """What the record of a policy says of what was solved, as that of its source does."""
    record = source.identity()
    return {name: record[name] for name in ("shape", "rules", "spawn4", "ids")} | {"keep": "policy"}


def _complete_sets(source: Store) -> LayerSets:
    """The sets of a source, all of them there. Raises NotSolved, NoSolution."""
    if source.keep == "policy":
        raise NoSolution(f"{source.path} is a policy table already")
    sets = LayerSets(source)
    if source.keep == "start" or sets.gaps or sets.max_age < sets.shape.top_age:
        raise NotSolved(f"{source.path} has not the sets of all ages; finish its solve first")
    return sets
