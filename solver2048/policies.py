"""Policies: which action is taken on each board.

optimal
    the best action of a solution; of several (`Probe.best`) the first in the order of `ACTIONS`, on
    the board in the orientation of the solution's shape; or the action that a policy table has;
greedy
    the highest immediate reward, ties by the same order;
random
    every legal action alike.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .board import unpack_boards
from .errors import UsageError
from .game import ACTION_DRAW, Codes, Draws
from .solution import Solution

Actions = NDArray[np.intp]
ActionRule = Callable[[Codes, NDArray[np.bool_], NDArray[np.int64], Draws], Actions]
"""Boards [n], legal and rewards [n, 4], draws [n, 3] to an action [n]; any where none is legal."""

BATCH = 1 << 18
"""So many boards are looked up at once: what a look-up takes stays below a few hundred MB."""


def make_policy(name: str, solution: Solution) -> ActionRule:
    """The policy of that name. Raises UsageError."""
    if name == "optimal":
        return lambda boards, legal, rewards, drawn: best_actions(solution, boards)
    if name == "greedy":
        return lambda boards, legal, rewards, drawn: np.where(legal, rewards, -1).argmax(axis=1)
    if name == "random":
        return lambda boards, legal, rewards, drawn: _random_actions(legal, drawn)
    raise UsageError(f"policy {name!r} is none of optimal, greedy, random")


def best_actions(solution: Solution, boards: Codes) -> Actions:
    """The optimal policy's action on each packed board."""
    actions = np.empty(len(boards), dtype=np.intp)
    for start in range(0, len(boards), BATCH):
        part = slice(start, start + BATCH)
        tiles = unpack_boards(boards[part], solution.shape)
        actions[part] = solution.policy(tiles)
    return actions


def _random_actions(legal: NDArray[np.bool_], drawn: Draws) -> Actions:
    wanted = (drawn[:, ACTION_DRAW] * legal.sum(axis=1)).astype(np.int64)
    actions: Actions = (legal.cumsum(axis=1) > wanted[:, None]).argmax(axis=1)
    return actions
