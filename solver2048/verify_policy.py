"""A policy table against the rules: its exact value is what the table says of the start boards."""

from __future__ import annotations

from .bands import slots_per_age
from .errors import SolutionDamaged
from .layer_sets import stored_problem
from .policy import PolicyTable
from .policy_value import evaluate_packed
from .store import Store
from .workers import Workers

MAX_SLOTS = 1 << 29
"""Boards of more are not evaluated: 3x3 has 4.3e8, and takes half a minute."""

TOLERANCE = 1e-9
"""Relative: actions that tie up to rounding may differ in what they earn by as much."""


def check_policy(store: Store, objective: str, show_progress: bool = False) -> str:
    """Evaluate a finished policy exactly where the board is small; returns what was found.

    Raises SolutionDamaged.
    """
    problem = stored_problem(store, objective)
    shape = problem.shape
    table = PolicyTable(store, shape, problem.objective)
    if table.result is None:
        return f"{table.kind}: not complete yet, not evaluated"
    if int(slots_per_age(shape).sum()) > MAX_SLOTS:
        return f"{table.kind}: {shape.name} is too large to evaluate exactly"
    with Workers() as workers:
        result = evaluate_packed(problem, table.actions, workers, show_progress=show_progress)
    found = result["start_boards"]
    for board, value in table.result["start_boards"].items():
        if not abs(found[board] - value) <= TOLERANCE * abs(value):
            raise SolutionDamaged(
                f"start board {board}: the policy is worth {found[board]}, optimal play {value}"
            )
    return f"{table.kind}: evaluated exactly, optimal from every start board"
