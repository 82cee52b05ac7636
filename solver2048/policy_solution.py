"""A policy table opened for reading: best actions of boards, no values."""

from __future__ import annotations

import functools
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .board import GivenBoard, format_board, parse_board, unpack_boards
from .board_values import ActionValue, BoardValue, Meta, Probe
from .errors import NotSolved, UnreachableBoard
from .kernels.answers import IMPOSSIBLE_AGE
from .layer_values import no_values
from .options import EVERY_STATE
from .policy import PolicyTable
from .questions import Packed, as_tiles, order_by_age, pack_board, pack_tiles, refuse, refuse_first
from .shape import ACTIONS, TRANSPOSED_ACTIONS
from .solution import Solution
from .workers import Workers

UNKNOWN = -2
"""In place of the number of an action: the table shows that it has none."""


class Policy(Solution):
    """A policy table: the best action of every state, no values.

    Boards are assumed to be of the states that the table was made for: all reachable ones, or, if
    `reach` is "optimal", those that the table's own play meets from a random start, alone.
    Of others the answer means nothing, or is an UnreachableBoard where the table shows it. `value`,
    `actions`, `layer` and `afterstates` raise NotSolved; values in answers are NaN.
    """

    def _read_result(self) -> dict[str, Any] | None:
        return self.table.result

    @functools.cached_property
    def table(self) -> PolicyTable:
        """The stored actions."""
        return PolicyTable(self.sets.store, self.shape, self.objective)

    @functools.cached_property
    def _numbers(self) -> NDArray[np.int8]:
        """By what the table says of a packed board, the number of the board's action."""
        return np.array([*self.shape.packed_actions, -1, UNKNOWN], dtype=np.int8)

    def __repr__(self) -> str:
        return f"<Policy of {self.shape.name}, {self.objective.name}, {self.reach} states>"

    def close(self) -> None:
        """Let go of what was cached and of open files."""
        self.sets.ids.release()
        self.sets.store.close()

    @functools.cached_property
    def meta(self) -> Meta:
        """Shape, rules, objective, and which states the policy is of."""
        return {
            "shape": self.shape.name,
            "spawn4": self.spawn4,
            "objective": self.objective.name,
            "keep": "policy",
            "reach": self.reach,
        }

    @property
    def reach(self) -> str:
        return self.table.reach

    def check_start(self, start: GivenBoard | None) -> None:
        """Raise NotSolved for games that come to boards which the table is not of."""
        if start is None or self.reach == EVERY_STATE or _is_start(start):
            return
        raise NotSolved(
            f"{self.sets.store.location} knows the boards of its own play from a random start "
            "alone: games from another board take a table of all states"
        )

    @property
    def ages(self) -> list[int]:
        """Ages that have actions, upward."""
        return [layer["age"] for layer in self.table.layers()]

    def policy(self, boards: ArrayLike) -> NDArray[np.int8]:
        """Numbers of the stored actions in `ACTIONS`, of boards [n, rows, columns]; -1: game over.

        Time O(n); boards are assumed to be of the table's states.
        """
        return self._answer(boards, threads=1, partial=False)[1]

    def probe(self, boards: ArrayLike, *, threads: int = 1, partial: bool = False) -> Probe:
        """The stored actions of n boards, in `best`; all values are NaN."""
        ages, numbers = self._answer(boards, threads, partial)
        nothing = np.full((len(numbers), 4), np.nan)
        return Probe(
            ages, nothing[:, 0], nothing, nothing.copy(), nothing.copy(),
            numbers[:, None] == np.arange(4), numbers != UNKNOWN,
        )  # fmt: skip

    def _answer(
        self, boards: ArrayLike, threads: int, partial: bool
    ) -> tuple[NDArray[np.int64], NDArray[np.int8]]:
        """Ages, and numbers of the stored actions: -1: game over, `UNKNOWN` where there is none."""
        tiles = as_tiles(boards, self.shape)
        packed = pack_tiles(tiles, self.shape, self.shape.top_age)
        if packed.num_faults and not partial:
            refuse_first(tiles, packed.faults, self.shape, self.shape.top_age)
        numbers = self._look_up(packed, threads, partial)
        if not partial and (numbers == UNKNOWN).any():
            self._refuse(packed.codes[numbers.argmin()])
        return packed.ages, numbers

    def _look_up(self, packed: Packed, threads: int, partial: bool) -> NDArray[np.int8]:
        order, stops = order_by_age(packed, self.shape)
        numbers = np.full(len(packed.codes), UNKNOWN, dtype=np.int8)
        halves = np.flatnonzero(np.diff(stops, prepend=0)).tolist()

        def look_up(number: int, _: int) -> None:
            half = halves[number]
            group = order[stops[half - 1] : stops[half]]
            try:
                actions = self.table.actions(2 * half, packed.codes[group])
            except NotSolved:
                if not partial:
                    raise
                return
            numbers[group] = self._numbers[actions]

        with Workers(threads) as workers:
            workers.run_pieces(len(halves), 1, look_up)
        return numbers

    def _refuse(self, code: np.uint64) -> NoReturn:
        shown = format_board(unpack_boards(np.array([code]), self.shape)[0])
        raise UnreachableBoard(f"board {shown} is none of the states that this policy was made for")

    def query(self, board: str | ArrayLike | GivenBoard) -> BoardValue:
        """The board and its action, in `best`; its value is NaN, `actions` are none."""
        given = board if isinstance(board, GivenBoard) else parse_board(board, self.shape)
        code, age = pack_board(given, self.shape)
        codes = np.array([code], dtype=np.uint64)
        if not 4 <= age <= self.shape.top_age:
            refuse(given.oriented, int(IMPOSSIBLE_AGE), self.shape, self.shape.top_age)
        number = int(self._numbers[self.table.actions(age, codes)[0]])
        if number == UNKNOWN:
            self._refuse(codes[0])
        if given.is_transposed and number >= 0:
            number = TRANSPOSED_ACTIONS[number]
        best = (ACTIONS[number],) if number >= 0 else ()
        return BoardValue(given.rows, age, float("nan"), best, {})

    def actions(self, board: str | ArrayLike) -> dict[str, ActionValue | None]:
        raise no_values(self.sets.store)


def _is_start(board: GivenBoard) -> bool:
    """Whether a board has two tiles, each a 2 or a 4."""
    tiles = [tile for row in board.rows for tile in row if tile]
    return len(tiles) == 2 and max(tiles) <= 4
