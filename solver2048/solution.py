"""A solution opened for reading: values, actions and best actions of boards.

>>> with open_solution("solutions/3x3") as solution:  # doctest: +SKIP
...     solution.value("2 2 4 / . . . / . . 2")
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .board import GivenBoard, parse_board
from .board_values import ActionValue, BoardValue, Meta, Probe
from .errors import NotSolved
from .kernels.answers import FINE, IMPOSSIBLE_AGE, NOT_ENUMERATED
from .layer import LayerCounts
from .layer_parts import AfterstatePart, LayerPart, afterstate_parts, state_parts
from .layer_sets import LayerSets, stored_problem
from .layer_values import Values
from .lookup import Answers, Lookup
from .objective import Objective
from .options import EVERY_STATE
from .questions import (
    as_tiles,
    pack_board,
    pack_tiles,
    refuse,
    refuse_first,
)
from .shape import ACTIONS, TRANSPOSED_ACTIONS, Shape
from .store import Store


class Solution:
    """A solution of one objective. Boards are texts or lists of rows, as in `parse_board`.

    Any number of threads may ask one Solution at a time. All methods that take boards raise
    BoardError (malformed, impossible), UnreachableBoard, NotSolved and SolutionDamaged.
    """

    def __init__(self, store: Store, objective: str = "score") -> None:
        self.sets = LayerSets(store)
        problem = stored_problem(store, objective)
        self.shape: Shape = problem.shape
        self.objective: Objective = problem.objective
        self.spawn4 = problem.spawn4
        if store.keep == "start":
            raise NotSolved(
                f"{store.location} keeps only start values, counts and statistics (`solver2048 "
                "status` shows them); to query boards, solve with keep solution into another "
                "directory"
            )
        self._result = self._read_result()

    def _read_result(self) -> dict[str, Any] | None:
        """What a finished solution says, None before. Raises NotSolved where nothing is begun."""
        return self.stored.result

    @functools.cached_property
    def _lookup(self) -> Lookup:
        return Lookup(self.sets, Values(self.sets, self.objective))

    @property
    def stored(self) -> Values:
        """The stored values."""
        return self._lookup.stored

    def __repr__(self) -> str:
        return f"<Solution of {self.shape.name}, {self.objective.name}, {self.stored.format.name}>"

    def __enter__(self) -> Solution:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:  # fmt: skip
        self.close()

    def close(self) -> None:
        """Let go of what was cached and of open files."""
        self._lookup.release()
        self.sets.ids.release()
        self.sets.store.close()

    # --- facts --------------------------------------------------------------------------------

    @functools.cached_property
    def meta(self) -> Meta:
        """Shape, rules, objective, value format and its rounding bound, ages and counts."""
        counts = [self.sets.layer_counts(age) for age in self.ages]
        return {
            "shape": self.shape.name,
            "spawn4": self.spawn4,
            "objective": self.objective.name,
            "values": self.stored.format.name,
            "rounding_bound": self.rounding_bound,
            "first_age": self.ages[0] if counts else 0,
            "last_age": self.ages[-1] if counts else 0,
            "states": sum(layer.states for layer in counts),
            "afterstates": sum(layer.afterstates for layer in counts),
            "is_finished": self._result is not None,
        }

    @property
    def reach(self) -> str:
        """Which states it is of, one of `options.REACHES`."""
        return EVERY_STATE

    @property
    def ages(self) -> list[int]:
        """Ages that have values, upward."""
        return [age for band in self.stored.bands for age in band.ages]

    def counts(self, age: int) -> LayerCounts:
        """Counts of one age."""
        return self.sets.layer_counts(age)

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

    def check_start(self, start: GivenBoard | None) -> None:
        """Make sure that all boards are known of games from a board, or from random starts."""

    # --- boards -------------------------------------------------------------------------------

    def value(self, board: str | ArrayLike) -> float:
        """v* of a board: the expected future score, or the probability of the tile."""
        return float(self._ask(parse_board(board, self.shape))[1].values[0])

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
        age, answers = self._ask(given)
        values, rewards, afterstate_values, is_best = (
            array[0].tolist() for array in answers[1:5]
        )  # fmt: skip
        actions: dict[str, ActionValue | None] = {}
        best = []
        order = TRANSPOSED_ACTIONS if given.is_transposed else range(4)
        for name, i in zip(ACTIONS, order, strict=True):
            # NaN, where the action is illegal, equals nothing.
            is_legal = values[i] == values[i]
            actions[name] = (
                ActionValue(values[i], rewards[i], afterstate_values[i]) if is_legal else None
            )
            if is_best[i]:
                best.append(name)
        return BoardValue(given.rows, age, float(answers.values[0]), tuple(best), actions)

    def probe(self, boards: ArrayLike, *, threads: int = 1, partial: bool = False) -> Probe:
        """All that is known of n boards: integer tile numbers [n, rows, columns], 0 for empty.

        The rows and columns are those of the solution's shape. Time O(n), no loop over boards in
        Python; boards of the same age are looked up together.
        threads : how many work on it; the answers are the same
        partial : boards that are malformed, unreachable or not solved yet do not end it, but are
            not `is_known`
        """
        tiles = as_tiles(boards, self.shape)
        packed = pack_tiles(tiles, self.shape, self._lookup.max_age)
        if packed.num_faults and not partial:
            refuse_first(tiles, packed.faults, self.shape, self._lookup.max_age)
        answers = self._lookup.answer(packed, threads, partial=partial)
        is_known = answers.faults == FINE
        if not partial and not is_known.all():
            refuse_first(tiles, answers.faults, self.shape, self._lookup.max_age)
        return Probe(packed.ages, *answers[:5], is_known)

    def _ask(self, given: GivenBoard) -> tuple[int, Answers]:
        """Age of a board and what is known of it, in the orientation of the shape."""
        code, age = pack_board(given, self.shape)
        max_age = self._lookup.max_age
        if not 4 <= age <= max_age:
            is_possible = 4 <= age <= self.shape.top_age
            fault = NOT_ENUMERATED if is_possible else IMPOSSIBLE_AGE
            refuse(given.oriented, int(fault), self.shape, max_age)
        answers = self._lookup.answer_one(code, age)
        if answers.faults[0] != FINE:
            refuse(given.oriented, int(answers.faults[0]), self.shape, max_age)
        return age, answers

    def afterstate_values(self, age: int, codes: NDArray[np.uint64]) -> NDArray[np.float64]:
        """Stored values of packed afterstates of one age."""
        return self._lookup.afterstate_values(age, codes)

    # --- layers -------------------------------------------------------------------------------

    def layer(self, age: int) -> Iterator[LayerPart]:
        """All states of an age, modulo the two flips, in parts, in the order of the index.

        Bitmaps and values of the layer are in memory meanwhile: 3 bits a slot, and the stored
        size of a value for every afterstate. Raises NotSolved, SolutionDamaged.
        """
        lookup = self._lookup
        self.sets.layer_counts(age)  # knows which ages there are
        return state_parts(lookup, age)

    def afterstates(self, age: int) -> Iterator[AfterstatePart]:
        """All afterstates of an age, modulo the two flips, in parts, in the order of the index."""
        lookup = self._lookup
        self.sets.layer_counts(age)
        return afterstate_parts(lookup, age)
