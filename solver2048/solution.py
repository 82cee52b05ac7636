"""A solution opened for reading: values, actions and best actions of boards::

with open_solution("solutions/3x3") as solution:
    solution.value("2 2 4 / . . . / . . 2")
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .board import GivenBoard, format_board, pack_boards, parse_board, unpack_boards
from .errors import BoardError, NotSolved, SolutionDamaged, UnreachableBoard
from .kernels.moves import moves_into
from .layer_sets import LayerSets
from .layer_values import Values
from .objective import Objective, merge_potentials, parse_objective
from .policy import NOT_STORED, PolicyTable
from .shape import ACTIONS, TRANSPOSED_ACTIONS, Shape
from .store import Store
from .tables import build_tables


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

    ages : int64[n]; values : float64[n]
    action_values, afterstate_values : float64[n, 4], NaN where an action is illegal
    rewards : float64[n, 4], 0 where an action is illegal
    best : bool[n, 4], the best actions, ties within the stored precision included
    """

    ages: NDArray[np.int64]
    values: NDArray[np.float64]
    action_values: NDArray[np.float64]
    rewards: NDArray[np.float64]
    afterstate_values: NDArray[np.float64]
    best: NDArray[np.bool_]


class Solution:
    """A solution of one objective. Boards are texts or lists of rows, as in `parse_board`.

    All methods that take boards raise BoardError (malformed, impossible), UnreachableBoard,
    NotSolved and SolutionDamaged.
    """

    def __init__(self, store: Store, objective: str = "score") -> None:
        identity = store.identity()
        self.spawn4 = float(identity["spawn4"])
        self.sets = LayerSets(store)
        self.shape: Shape = self.sets.shape
        self.objective: Objective = parse_objective(objective, self.shape)
        if store.keep == "start":
            raise NotSolved(
                f"{store.location} keeps only start values, counts and statistics (`solver2048 "
                "status` shows them); to query boards, solve with keep solution into another "
                "directory"
            )
        self.stored = Values(self.sets, self.objective)
        self._result = self.stored.result

    def __repr__(self) -> str:
        return f"<Solution of {self.shape.name}, {self.objective.name}, {self.stored.format.name}>"

    def __enter__(self) -> Solution:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:  # fmt: skip
        self.close()

    def close(self) -> None:
        """Let go of what was cached and of open files."""
        self.sets.ids.release()
        self.sets.store.close()

    # --- facts --------------------------------------------------------------------------------

    @property
    def meta(self) -> dict[str, Any]:
        """Shape, rules, objective, value format and its rounding bound."""
        return {
            "shape": self.shape.name,
            "spawn4": self.spawn4,
            "objective": self.objective.name,
            "values": self.stored.format.name,
            "rounding_bound": self.rounding_bound,
        }

    @property
    def start_values(self) -> dict[str, float]:
        """Values of the start classes "2,2", "2,4", "4,4" and of a "random" start, in full."""
        if self._result is None:
            raise NotSolved("the solve has not come down to the start boards yet")
        return {**self._result["start_classes"], "random": self._result["random_start"]}

    @property
    def rounding_bound(self) -> float:
        """How far a stored value can be from the one computed."""
        return float(self.stored.format.rounding_bound(self.stored.max_value))

    @property
    def arithmetic_allowance(self) -> float:
        """How far two float64 values that are equal can be apart, rounded along different ways."""
        return self.objective.arithmetic_allowance(self.shape)

    # --- boards -------------------------------------------------------------------------------

    def value(self, board: str | ArrayLike) -> float:
        """v* of a board: the expected future score, or the probability of the tile."""
        return self.query(board).value

    def actions(self, board: str | ArrayLike) -> dict[str, ActionValue | None]:
        """Value, reward and afterstate value of each action, None where it is illegal."""
        return self.query(board).actions

    def best_action(self, board: str | ArrayLike) -> str | None:
        """A best action, the first in the order of `ACTIONS`; None on a terminal board."""
        best = self.query(board).best
        return best[0] if best else None

    def policy(self, boards: ArrayLike) -> NDArray[np.int8]:
        """Numbers of best actions in `ACTIONS`, of boards as `probe` takes them; -1: game over."""
        probe = self.probe(boards)
        best: NDArray[np.int8] = np.where(probe.best.any(axis=1), probe.best.argmax(axis=1), -1)
        return best.astype(np.int8)

    def query(self, board: str | ArrayLike | GivenBoard) -> BoardValue:
        """All that is known of a board; actions are those of the board as given."""
        given = board if isinstance(board, GivenBoard) else parse_board(board, self.shape)
        probe = self.probe(given.oriented[None])
        order = TRANSPOSED_ACTIONS if given.is_transposed else range(4)
        actions: dict[str, ActionValue | None] = {}
        for name, i in zip(ACTIONS, order, strict=True):
            value = float(probe.action_values[0, i])
            actions[name] = None if np.isnan(value) else ActionValue(
                value, float(probe.rewards[0, i]), float(probe.afterstate_values[0, i])
            )  # fmt: skip
        best = tuple(n for n, i in zip(ACTIONS, order, strict=True) if probe.best[0, i])
        return BoardValue(given.rows, int(probe.ages[0]), float(probe.values[0]), best, actions)

    def probe(self, boards: ArrayLike) -> Probe:
        """All that is known of n boards: integer tile numbers [n, rows, columns], 0 for empty.

        The rows and columns are those of the solution's shape. Time O(n log n), no loop over
        boards in Python; boards of the same age are looked up together.
        """
        return self._probe_codes(self._packed(boards))

    def _packed(self, boards: ArrayLike) -> NDArray[np.uint64]:
        """Codes of n boards. Raises BoardError."""
        try:
            tiles = np.asarray(boards)
        except ValueError as error:  # rows of different lengths
            raise BoardError(f"boards are no array: {error}") from None
        expected = (self.shape.num_rows, self.shape.num_columns)
        if tiles.ndim != 3 or tiles.shape[1:] != expected or tiles.dtype.kind not in "iu":
            raise BoardError(
                f"boards must be integers of shape (n, {expected[0]}, {expected[1]}), "
                f"not {tiles.dtype} of shape {tiles.shape}"
            )
        return pack_boards(tiles.astype(np.int64), self.shape)

    def _probe_codes(self, codes: NDArray[np.uint64]) -> Probe:
        """`probe` of packed boards, as `pack_boards` makes them."""
        num_boards = len(codes)
        tables = build_tables(self.shape)
        ages = self._ages(codes)
        self._check_ages(ages, codes)
        moved = np.empty((num_boards, 4), dtype=np.uint64)
        rewards = np.empty((num_boards, 4))
        moves_into(tables, merge_potentials(self.shape), codes, moved, rewards)
        if self.shape.is_transposed:
            moved, rewards = moved[:, TRANSPOSED_ACTIONS], rewards[:, TRANSPOSED_ACTIONS]
        is_legal = moved != codes[:, None]
        if self.objective.exponent:
            rewards = np.zeros_like(rewards)
        afterstate_values = np.full((num_boards, 4), np.nan)
        order = np.argsort(ages, kind="stable")
        for group in np.split(order, np.flatnonzero(np.diff(ages[order])) + 1):
            if len(group):
                age = int(ages[group[0]])
                self._check_reachable(age, codes[group])
                legal = is_legal[group]
                found = np.full(legal.shape, np.nan)
                found[legal] = self.afterstate_values(age, moved[group][legal])
                afterstate_values[group] = found
        action_values = rewards + afterstate_values
        top = np.fmax.reduce(action_values, axis=1, initial=-np.inf)
        values = np.maximum(top, self._floors(codes))
        # Two values tie if, for all that is stored, they may be equal.
        best = self.stored.format.best_actions(
            action_values, afterstate_values, self.arithmetic_allowance
        )
        return Probe(ages, values, action_values, rewards, afterstate_values, best)

    def _ages(self, codes: NDArray[np.uint64]) -> NDArray[np.int64]:
        ages: NDArray[np.int64] = unpack_boards(codes, self.shape).sum(axis=(1, 2))
        return ages

    def _shown(self, code: np.uint64) -> str:
        return format_board(unpack_boards(np.array([code]), self.shape)[0])

    def _check_ages(self, ages: NDArray[np.int64], codes: NDArray[np.uint64]) -> None:
        outside = np.flatnonzero((ages < 4) | (ages > self.shape.top_age))
        if len(outside):
            i = outside[0]
            raise UnreachableBoard(
                f"board {self._shown(codes[i])} can never occur: its tiles add up to {ages[i]}, "
                f"and those of a {self.shape.name} game to 4 ... {self.shape.top_age}"
            )
        beyond = np.flatnonzero(ages > self.sets.max_age)
        if len(beyond):
            i = beyond[0]
            raise NotSolved(
                f"board {self._shown(codes[i])} has age {ages[i]}; "
                f"ages up to {self.sets.max_age} are enumerated so far"
            )

    def _check_reachable(self, age: int, codes: NDArray[np.uint64]) -> None:
        ids = self.sets.ids.of_boards(age, codes)
        unreachable = np.flatnonzero(self.sets.open(age, "states").index_of(ids) < 0)
        if len(unreachable):
            raise UnreachableBoard(
                f"board {self._shown(codes[unreachable[0]])} can never occur in a game"
            )

    def afterstate_values(self, age: int, codes: NDArray[np.uint64]) -> NDArray[np.float64]:
        """Stored values of afterstates of one age."""
        ids = self.sets.ids.of_boards(age, codes)
        positions = self.sets.open(age, "afterstates").index_of(ids)
        # Of a state that is a member every move is one, or the set has lost members.
        if len(positions) and positions.min() < 0:
            raise SolutionDamaged(f"age {age}: the set of afterstates lacks a move of a state")
        return self.stored.take(age, positions)

    def _floors(self, codes: NDArray[np.uint64]) -> NDArray[np.float64]:
        """Value of each board if no action is left."""
        if not self.objective.exponent:
            return np.zeros(len(codes))
        tiles = unpack_boards(codes, self.shape).reshape(len(codes), -1)
        holds_tile: NDArray[np.bool_] = tiles.max(axis=1) >= 2**self.objective.exponent
        return holds_tile.astype(np.float64)


class Policy(Solution):
    """A policy table: the best action of every state, no values.

    Boards are assumed reachable: of others the answer means nothing, or is an UnreachableBoard
    where the table shows it. All that needs values raises NotSolved.
    """

    def __init__(self, store: Store, objective: str = "score") -> None:
        self.spawn4 = float(store.identity()["spawn4"])
        self.sets = LayerSets(store)
        self.shape = self.sets.shape
        self.objective = parse_objective(objective, self.shape)
        self.table = PolicyTable(store, self.shape, self.objective)
        self._result = self.table.result
        self._shifts = self.shape.cell_shifts
        self._order = np.array(
            [*(TRANSPOSED_ACTIONS if self.shape.is_transposed else range(4)), -1], dtype=np.int8
        )

    def __repr__(self) -> str:
        return f"<Policy of {self.shape.name}, {self.objective.name}, {self.table.reach} states>"

    @property
    def meta(self) -> dict[str, Any]:
        """Shape, rules, objective, and which states the policy is of."""
        return {
            "shape": self.shape.name,
            "spawn4": self.spawn4,
            "objective": self.objective.name,
            "keep": "policy",
            "reach": self.table.reach,
        }

    def policy(self, boards: ArrayLike) -> NDArray[np.int8]:
        """Numbers of the stored actions in `ACTIONS`, of boards [n, rows, columns]; -1: game over.

        Time O(n log n); boards are assumed reachable.
        """
        codes = self._packed(boards)
        ages = self._ages(codes)
        numbers = np.empty(len(codes), dtype=np.int8)
        order = np.argsort(ages, kind="stable")
        for group in np.split(order, np.flatnonzero(np.diff(ages[order])) + 1):
            if len(group):
                numbers[group] = self._numbers(int(ages[group[0]]), codes[group])
        return numbers

    def _refuse(self, code: np.uint64) -> None:
        raise UnreachableBoard(
            f"board {self._shown(code)} is none of the states that this policy was made for"
        )

    def best_action(self, board: str | ArrayLike) -> str | None:
        """The stored action; None on a terminal board."""
        best = self.query(board).best
        return best[0] if best else None

    def query(self, board: str | ArrayLike | GivenBoard) -> BoardValue:
        """The board and its action, in `best`; its value is NaN, `actions` are none."""
        given = board if isinstance(board, GivenBoard) else parse_board(board, self.shape)
        rows = zip(*given.rows, strict=True) if given.is_transposed else given.rows
        tiles = [tile for row in rows for tile in row]
        # In plain integers: for one board arrays take several times as long.
        shifts = zip(tiles, self._shifts, strict=True)
        code = np.uint64(sum(tile.bit_length() - 1 << shift for tile, shift in shifts if tile))
        number = int(self._numbers(sum(tiles), np.array([code]))[0])
        if given.is_transposed and number >= 0:
            number = TRANSPOSED_ACTIONS[number]
        best = (ACTIONS[number],) if number >= 0 else ()
        return BoardValue(given.rows, sum(tiles), float("nan"), best, {})

    def _numbers(self, age: int, codes: NDArray[np.uint64]) -> NDArray[np.int8]:
        """Numbers of the stored actions of packed boards of an age, -1: game over."""
        if not 4 <= age <= self.shape.top_age:
            self._refuse(codes[0])
        actions = self.table.actions(age, codes)
        if actions.max() == NOT_STORED:
            self._refuse(codes[actions.argmax()])
        return self._order[actions]

    def value(self, board: str | ArrayLike) -> float:
        raise self._no_values()

    def actions(self, board: str | ArrayLike) -> dict[str, ActionValue | None]:
        raise self._no_values()

    def probe(self, boards: ArrayLike) -> Probe:
        raise self._no_values()

    def _no_values(self) -> NotSolved:
        return NotSolved(
            f"{self.sets.store.location} is a policy table: it holds the best actions "
            "(best_action, policy) and no values"
        )


def open_solution(path: str | os.PathLike[str], objective: str = "score") -> Solution:
    """Open a solution, or a policy table, for reading, whatever its size.

    Raises NoSolution, NotSolved.
    """
    store = Store(path)
    return (Policy if store.keep == "policy" else Solution)(store, objective)
