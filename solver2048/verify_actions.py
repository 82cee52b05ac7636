"""The actions of a policy table, against a solution of the same board."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from .board import format_board, unpack_boards
from .errors import NoSolution, SolutionDamaged, UsageError
from .game import Codes, Draws
from .layer_index import build_layer_index, slot_boards
from .options import STATES_MET
from .policies import BATCH, Actions
from .policy_solution import Policy
from .records import OBJECTIVE
from .samples import random_members
from .simulation import simulate
from .solution import Solution
from .store import Store

GAMES_TO_THE_TOP = 8
"""Games that meet about as many states as the top age says: one ends, on average, at an eighth to a
third of it, and meets half as many states as its last age says."""


def check_comparable(store: Store, path: str) -> None:
    """Make sure that one is a policy table, and the other a solution of all that it is of.

    Raises UsageError, NoSolution, NotSolved.
    """
    if store.keep != "policy":
        raise UsageError(
            f"{store.path} is no policy table: only that is checked against a solution"
        )
    own = store.identity()
    with _reading(path):
        other = Store(path).identity()
    if other.get("keep", "solution") != "solution":
        raise NoSolution(f"{path} has no values of all states: a solution is needed")
    if any(own[name] != other[name] for name in ("shape", "rules", "spawn4")):
        raise NoSolution(f"{path} is no solution of {own['shape']} with the same spawns")
    with _reading(path):
        for kind in store.objective_kinds():
            record = store.read_record(f"{kind}/{OBJECTIVE}") or {}
            Solution(Store(path), str(record.get("objective"))).close()


def check_actions(store: Store, path: str, objective: str, sample: int, seed: int) -> str:
    """Compare about `sample` actions of a table with the best ones of the solution at `path`.

    Of a complete table those of random states, as many of every age; of one of the states that
    play meets, all of some games. Actions that tie for all that the solution stores are best.
    Returns what was found. Raises NotSolved, SolutionDamaged.
    """
    policy = Policy(store, objective)
    if policy.table.result is None:
        return f"{policy.table.kind}: not complete yet, not compared"
    with _reading(path), policy, Solution(Store(path), objective) as solution:
        compared = _Comparison(policy, solution)
        if policy.reach != STATES_MET:
            _compare_random_states(compared, solution, sample, seed)
        elif sample:
            num_games = math.ceil(GAMES_TO_THE_TOP * sample / policy.shape.top_age)
            simulate(policy, num_games, seed, policy=compared.play)
        kind = policy.table.kind
    return f"{kind}: {compared.num_boards:,} actions looked up in {path}, all of them best"


@contextlib.contextmanager
def _reading(path: str) -> Iterator[None]:
    """What is damaged is the solution, unless it is said: the files of the table were checked."""
    try:
        yield
    except SolutionDamaged as error:
        error.place = error.place or path
        raise


class _Comparison:
    """Compares the actions of a table with those of a solution, and counts them."""

    def __init__(self, policy: Policy, solution: Solution) -> None:
        self._policy, self._solution = policy, solution
        self.num_boards = 0

    def compare(self, boards: Codes) -> Actions:
        """The table's actions of packed boards, -1: game over. Raises SolutionDamaged."""
        tiles = unpack_boards(boards, self._policy.shape)
        found = self._policy.probe(tiles, partial=True).best
        best = self._solution.probe(tiles).best
        is_wrong = (found & ~best).any(axis=1) | (found.any(axis=1) != best.any(axis=1))
        if is_wrong.any():
            shown = format_board(tiles[is_wrong.argmax()])
            error = SolutionDamaged(f"board {shown}: the action stored is none of the best")
            error.place = str(self._policy.sets.store.path)
            raise error
        self.num_boards += len(boards)
        actions: Actions = np.where(found.any(axis=1), found.argmax(axis=1), -1)
        return actions

    def play(
        self, boards: Codes, legal: NDArray[np.bool_], rewards: NDArray[np.int64], drawn: Draws
    ) -> Actions:
        """The same as a rule to play by."""
        parts = [self.compare(boards[at : at + BATCH]) for at in range(0, len(boards), BATCH)]
        return np.concatenate(parts)


def _compare_random_states(
    compared: _Comparison, solution: Solution, sample: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    bands = solution.stored.bands if sample else []
    per_age = math.ceil(sample / max(1, sum(len(band.ages) for band in bands)))
    for band in bands:
        stored = solution.sets.read_band(band)
        for age in band.ages:
            slots = random_members(rng, stored.bitmap(age, "states"), per_age)
            index = build_layer_index(solution.shape, age)
            compared.compare(slot_boards(solution.shape, index, slots))
