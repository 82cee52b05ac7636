"""Self-checks of a solve: a random sample of every layer, computed again by the slow rules.

The sample depends on the age alone, and nothing that is stored on it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from . import rules
from .backward import Problem, StateValues
from .board import format_board
from .errors import SelfCheckFailed
from .forward import SPAWN_EXPONENTS, AfterstateLayer, Layer
from .kernels.values import positions_into
from .layer_index import LayerIndex, board_slots, slot_boards
from .rules import Board
from .samples import holds, random_members, rule_boards, rule_codes
from .shape import ACTIONS, Shape

# Nanoseconds of one core: a board's computing, and its checking, as measured on 4x3.
FORWARD_NS, BACKWARD_NS = 20.0, 50.0
FORWARD_CHECK_NS, BACKWARD_CHECK_NS = 400e3, 400e3


class SelfCheck:
    """Checks layers before they are stored; a difference is a SelfCheckFailed.

    share : of the time that may go into it; each layer has one board checked at least, 0 turns
        all of it off
    """

    def __init__(self, shape: Shape, share: float, num_threads: int) -> None:
        self._shape = shape
        self._share = share / num_threads  # the others wait meanwhile

    # --- forward ------------------------------------------------------------------------------

    def forward(self, layer: Layer, window: dict[int, AfterstateLayer]) -> None:
        """Compare a layer with what the rules make of the afterstates in the window."""
        if not self._share:
            return
        age = int(layer.index.age)
        rng = np.random.default_rng([age, 0])
        work = FORWARD_NS * layer.counts.state_members
        count = _count(self._share * work / FORWARD_CHECK_NS, layer.counts.state_members)
        members = random_members(rng, layer.states, count)
        others = self._non_members(rng, layer, count)
        is_canonical = self._are_canonical(layer.index, members)
        for i, board in enumerate(self._boards(layer.index, members)):
            if not is_canonical[i]:
                raise _failure(age, board, "is among the states in a form that is not canonical")
            self._check_moves(layer, board)
            if not self._is_spawned(age, board, window):
                raise _failure(age, board, "is among the states, but no spawn leads to it")
        for board in self._boards(layer.index, others):
            if self._is_spawned(age, board, window):
                raise _failure(age, board, "is missing among the states, a spawn leads to it")
        for exponent in SPAWN_EXPONENTS:
            if below := window.get(age - 2**exponent):
                members = random_members(rng, below.afterstates, count)
                for board in self._boards(below.index, members):
                    self._check_spawns(layer, board, exponent)

    def _check_moves(self, layer: Layer, board: Board) -> None:
        moved = [m[0] for action in ACTIONS if (m := rules.move(board, action))]
        lost = self._first_outside(layer.index, layer.afterstates, moved)
        if lost is not None:
            raise _failure(
                int(layer.index.age), lost, f"is missing among the afterstates, a move of {board}"
            )

    def _check_spawns(self, layer: Layer, board: Board, exponent: int) -> None:
        spawned = list(rules.spawns(board, exponent))
        lost = self._first_outside(layer.index, layer.states, spawned)
        if lost is not None:
            raise _failure(
                int(layer.index.age), lost, f"is missing among the states, a spawn on {board}"
            )

    def _first_outside(
        self, index: LayerIndex, bitmap: NDArray[np.uint64], boards: Sequence[Board]
    ) -> Board | None:
        if not boards:
            return None
        is_in = holds(bitmap, board_slots(self._shape, index, rule_codes(self._shape, boards)))
        return None if is_in.all() else boards[int(np.argmin(is_in))]

    def _is_spawned(self, age: int, board: Board, window: dict[int, AfterstateLayer]) -> bool:
        """Whether a board is a start board, or a spawn on an afterstate of the window."""
        tiles = [cell for row in board for cell in row if cell]
        if len(tiles) == 2 and set(tiles) <= set(SPAWN_EXPONENTS):
            return True
        for exponent in SPAWN_EXPONENTS:
            below = window.get(age - 2**exponent)
            before = rules.unspawns(board, exponent)
            if below and before:
                slots = board_slots(self._shape, below.index, rule_codes(self._shape, before))
                if holds(below.afterstates, slots).any():
                    return True
        return False

    def _non_members(
        self, rng: np.random.Generator, layer: Layer, count: int
    ) -> NDArray[np.uint64]:
        """Some slots of a layer that stand for a board but are not among its states."""
        slots = rng.integers(int(layer.index.num_slots), size=count, dtype=np.uint64)
        slots = slots[~holds(layer.states, slots)]
        return slots[self._are_canonical(layer.index, slots)]

    def _are_canonical(self, index: LayerIndex, slots: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Whether slots are those that their boards have."""
        codes = slot_boards(self._shape, index, slots)
        is_own: NDArray[np.bool_] = board_slots(self._shape, index, codes) == slots
        return is_own

    def _boards(self, index: LayerIndex, slots: NDArray[np.uint64]) -> list[Board]:
        return rule_boards(self._shape, slot_boards(self._shape, index, slots))

    # --- backward -----------------------------------------------------------------------------

    def backward(
        self,
        problem: Problem,
        layer: StateValues,
        afterstates: StateValues,
        window: dict[int, StateValues],
    ) -> None:
        """Compare values of a layer with what the rules make of those above.

        layer : the states' ``w``; afterstates : the afterstates' values v
        window : state values of the two ages above
        """
        if not self._share:
            return
        age = int(layer.index.age)
        rng = np.random.default_rng([age, 1])
        work = BACKWARD_NS * len(layer.values)
        count = _count(self._share * work / BACKWARD_CHECK_NS, len(layer.values))
        checks = (
            (afterstates, functools.partial(self._mean_of_spawns, problem, age, window)),
            (layer, functools.partial(self._best_move, problem, afterstates)),
        )
        allowed = problem.objective.arithmetic_allowance(problem.shape)
        for valued, compute in checks:
            slots = random_members(rng, valued.states[::2], count)
            values = valued.values[_positions(valued, slots)]
            for board, value in zip(self._boards(valued.index, slots), values, strict=True):
                expected = compute(board)
                if not abs(expected - float(value)) <= allowed:
                    raise _failure(age, board, f"has value {value}, {expected} by the slow rules")

    def _mean_of_spawns(
        self, problem: Problem, age: int, window: dict[int, StateValues], board: Board
    ) -> float:
        """Value of an afterstate."""
        value = 0.0
        for exponent in SPAWN_EXPONENTS:
            states = list(rules.spawns(board, exponent))
            above = self._values_of(window[age + 2**exponent], states)
            mean = math.fsum(
                v - _potential(problem, state) for v, state in zip(above, states, strict=True)
            ) / len(states)
            value += problem.spawn_probability(exponent) * mean
        return value

    def _best_move(self, problem: Problem, afterstates: StateValues, board: Board) -> float:
        """``w`` of a state."""
        exponent = problem.objective.exponent
        if exponent and max(max(row) for row in board) >= exponent:
            return 1.0
        moves = [m for action in ACTIONS if (m := rules.move(board, action))]
        values = self._values_of(afterstates, [moved for moved, _ in moves]) if moves else []
        rewards = [0 if exponent else reward for _, reward in moves]
        best = max((v + r for v, r in zip(values, rewards, strict=True)), default=0.0)
        return best + _potential(problem, board)

    def _values_of(self, layer: StateValues, boards: Sequence[Board]) -> list[float]:
        slots = board_slots(self._shape, layer.index, rule_codes(self._shape, boards))
        is_in = holds(layer.states[::2], slots)
        if not is_in.all():
            lost = boards[int(np.argmin(is_in))]
            raise _failure(int(layer.index.age), lost, "has no value, though a game leads to it")
        found: list[float] = layer.values[_positions(layer, slots)].tolist()
        return found


def _count(affordable: float, members: int) -> int:
    return max(1, min(int(affordable), members))


def _positions(layer: StateValues, slots: NDArray[np.uint64]) -> NDArray[np.uint64]:
    positions = np.empty(len(slots), dtype=np.uint64)
    positions_into(layer.states, slots, positions)
    return positions


def _potential(problem: Problem, board: Board) -> float:
    if problem.objective.exponent:
        return 0.0
    return float(sum((cell - 1) << cell for row in board for cell in row if cell))


def _failure(age: int, board: Board, fault: str) -> SelfCheckFailed:
    tiles = format_board([[2**cell if cell else 0 for cell in row] for row in board])
    return SelfCheckFailed(
        f"age {age}, board {tiles} {fault}: memory or processor are at fault, or this program; "
        "nothing of it is stored, all bands before are safe, and the same command tries again"
    )
