"""A policy table opened for reading: best actions of boards, no values."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .board import GivenBoard, format_board, parse_board, unpack_boards
from .board_values import ActionValue, BoardValue, Meta, Probe
from .errors import NotSolved, UnreachableBoard
from .layer_parts import AfterstatePart, LayerPart
from .layer_sets import LayerSets
from .layer_values import no_values
from .objective import parse_objective
from .policy import PolicyTable
from .questions import Packed, as_tiles, order_by_age, pack_board, pack_tiles, refuse_first
from .shape import ACTIONS, TRANSPOSED_ACTIONS
from .solution import Solution
from .store import Store

UNKNOWN = -2
"""In place of the number of an action: the table shows that it has none."""


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
        self._order = np.array(
            [*(TRANSPOSED_ACTIONS if self.shape.is_transposed else range(4)), -1, UNKNOWN],
            dtype=np.int8,
        )

    def __repr__(self) -> str:
        return f"<Policy of {self.shape.name}, {self.objective.name}, {self.table.reach} states>"

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
            "reach": self.table.reach,
        }

    def policy(self, boards: ArrayLike) -> NDArray[np.int8]:
        """Numbers of the stored actions in `ACTIONS`, of boards [n, rows, columns]; -1: game over.

        Time O(n); boards are assumed reachable.
        """
        tiles = as_tiles(boards, self.shape)
        packed = self._packed(tiles, partial=False)
        numbers = self._answer(packed, 1, partial=False)
        if (numbers == UNKNOWN).any():
            self._refuse(packed.codes[numbers.argmin()])
        return numbers

    def probe(self, boards: ArrayLike, *, threads: int = 1, partial: bool = False) -> Probe:
        """The stored actions of n boards, in `best`; all values are NaN."""
        tiles = as_tiles(boards, self.shape)
        packed = self._packed(tiles, partial)
        numbers = self._answer(packed, threads, partial)
        if not partial and (numbers == UNKNOWN).any():
            self._refuse(packed.codes[numbers.argmin()])
        nothing = np.full((len(tiles), 4), np.nan)
        return Probe(
            packed.ages, nothing[:, 0], nothing, nothing.copy(), nothing.copy(),
            numbers[:, None] == np.arange(4), numbers != UNKNOWN,
        )  # fmt: skip

    def _refuse(self, code: np.uint64) -> NoReturn:
        shown = format_board(unpack_boards(np.array([code]), self.shape)[0])
        raise UnreachableBoard(f"board {shown} is none of the states that this policy was made for")

    def _packed(self, tiles: NDArray[np.int64], partial: bool) -> Packed:
        packed = pack_tiles(tiles, self.shape, self.shape.top_age)
        if packed.num_faults and not partial:
            refuse_first(tiles, packed.faults, self.shape, self.shape.top_age)
        return packed

    def _answer(self, packed: Packed, threads: int, partial: bool) -> NDArray[np.int8]:
        """Numbers of the stored actions, -1: game over, `UNKNOWN` where there is none (yet)."""
        order, stops = order_by_age(packed, self.shape)
        numbers = np.full(len(packed.codes), UNKNOWN, dtype=np.int8)

        def answer(half: int) -> None:
            group = order[stops[half - 1] : stops[half]]
            try:
                actions = self.table.actions(2 * half, packed.codes[group])
            except NotSolved:
                if not partial:
                    raise
                return
            numbers[group] = self._order[actions]

        halves = np.flatnonzero(np.diff(stops, prepend=0)).tolist()
        if threads == 1:
            for half in halves:
                answer(half)
        else:
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(answer, halves))
        return numbers

    def best_action(self, board: str | ArrayLike) -> str | None:
        """The stored action; None on a terminal board."""
        best = self.query(board).best
        return best[0] if best else None

    def query(self, board: str | ArrayLike | GivenBoard) -> BoardValue:
        """The board and its action, in `best`; its value is NaN, `actions` are none."""
        given = board if isinstance(board, GivenBoard) else parse_board(board, self.shape)
        code, age = pack_board(given, self.shape)
        codes = np.array([code], dtype=np.uint64)
        if not 4 <= age <= self.shape.top_age:
            self._refuse(codes[0])
        number = int(self._order[self.table.actions(age, codes)[0]])
        if number == UNKNOWN:
            self._refuse(codes[0])
        if given.is_transposed and number >= 0:
            number = TRANSPOSED_ACTIONS[number]
        best = (ACTIONS[number],) if number >= 0 else ()
        return BoardValue(given.rows, age, float("nan"), best, {})

    def value(self, board: str | ArrayLike) -> float:
        raise no_values(self.sets.store)

    def actions(self, board: str | ArrayLike) -> dict[str, ActionValue | None]:
        raise no_values(self.sets.store)

    @property
    def ages(self) -> list[int]:
        raise no_values(self.sets.store)

    def layer(self, age: int) -> Iterator[LayerPart]:
        raise no_values(self.sets.store)

    def afterstates(self, age: int) -> Iterator[AfterstatePart]:
        raise no_values(self.sets.store)
