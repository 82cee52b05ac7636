"""Solutions and policy tables opened for reading."""

from __future__ import annotations

import os

from .policy_solution import Policy
from .solution import Solution
from .store import Store


def open_solution(path: str | os.PathLike[str], objective: str = "score") -> Solution:
    """Open a solution, or a policy table, for reading, whatever its size.

    Raises NoSolution, NotSolved.
    """
    store = Store(path)
    return (Policy if store.keep == "policy" else Solution)(store, objective)
