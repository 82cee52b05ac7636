"""What a solution says of boards, and of itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class ActionValue:
    """A legal action: `value` = `reward` + `afterstate_value`."""

    value: float
    reward: float
    afterstate_value: float


@dataclass(frozen=True)
class BoardValue:
    """All that a solution says of a board.

    board : rows of tile numbers as given
    actions : by name; None where the action is illegal
    best : the best actions, ties within the stored precision included; empty on a terminal board
    """

    board: tuple[tuple[int, ...], ...]
    age: int
    value: float
    best: tuple[str, ...]
    actions: dict[str, ActionValue | None]


@dataclass(frozen=True)
class Probe:
    """All that a solution says of n boards; actions in the order of `ACTIONS`.

    ages : int64[n]; values : float64[n]; of a policy table all values and rewards are NaN
    action_values, afterstate_values : float64[n, 4], NaN where an action is illegal
    rewards : float64[n, 4], 0 where an action is illegal
    best : bool[n, 4], the best actions, ties within the stored precision included
    is_known : bool[n], False where `partial` let a board pass that the solution does not know; its
        values are NaN, and its age means nothing if it is malformed
    """

    ages: NDArray[np.int64]
    values: NDArray[np.float64]
    action_values: NDArray[np.float64]
    rewards: NDArray[np.float64]
    afterstate_values: NDArray[np.float64]
    best: NDArray[np.bool_]
    is_known: NDArray[np.bool_]


class Meta(TypedDict):
    """What a solution is of.

    keep, reach : of a policy table alone, which states it is of; else there is all the rest
    values : the format they are stored in, off by at most `rounding_bound`
    first_age, last_age : ages of the boards that can be asked for; every even age between
    states, afterstates : of these ages, modulo all symmetries of the board
    is_finished : whether these are all ages
    """

    shape: str
    spawn4: float
    objective: str
    keep: NotRequired[str]
    reach: NotRequired[str]
    values: NotRequired[str]
    rounding_bound: NotRequired[float]
    first_age: NotRequired[int]
    last_age: NotRequired[int]
    states: NotRequired[int]
    afterstates: NotRequired[int]
    is_finished: NotRequired[bool]
