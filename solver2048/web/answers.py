"""What the service says of boards: plain dicts, ready for JSON."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ..board import parse_board
from ..board_values import BoardValue
from ..errors import (
    BoardError,
    ImpossibleBoard,
    NotSolved,
    SolutionDamaged,
    SolverError,
    UnreachableBoard,
)
from ..solution import Solution

PROBLEMS: dict[type[Exception], tuple[int, str]] = {
    ImpossibleBoard: (422, "impossible_board"),
    BoardError: (400, "malformed_board"),
    UnreachableBoard: (404, "unreachable_board"),
    NotSolved: (409, "not_solved"),
    SolutionDamaged: (503, "solution_damaged"),
    SolverError: (503, "solution_unavailable"),
    OSError: (503, "solution_unavailable"),
}
"""Status and code of every error that asking may raise; the first class that fits counts."""


class Refusal(Exception):
    """A request that is not answered: an HTTP status, a code for machines, a line for people.

    board : rows of the board asked for, where it is one at all
    """

    def __init__(self, status: int, code: str, message: str, board: Any = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.board = board

    @property
    def body(self) -> dict[str, Any]:
        board = {} if self.board is None else {"board": self.board}
        return {"error": {"code": self.code, "message": str(self), **board}}


def refusal_of(error: Exception, board: Any = None) -> Refusal:
    """The refusal that an error of the library amounts to."""
    status, code = next(found for kind, found in PROBLEMS.items() if isinstance(error, kind))
    return Refusal(status, code, str(error), board)


class ServedSolution:
    """A solution under a name. One thread asks it, so that it need not bear several at once."""

    def __init__(self, name: str, solution: Solution) -> None:
        self.name = name
        self._solution = solution
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"ask-{name}")

    def warm_up(self) -> None:
        """Answer once, so that the first to ask does not wait for kernels to be compiled."""
        shape = self._solution.shape
        board = [
            [2, 2, *[0] * (shape.num_columns - 2)],
            *[[0] * shape.num_columns] * (shape.num_rows - 1),
        ]
        self._answer(board)

    def close(self) -> None:
        self._thread.shutdown(cancel_futures=True)
        self._solution.close()

    async def ask(self, boards: list[Any]) -> list[dict[str, Any] | Refusal]:
        """What is known of each board, in the order given."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._answers, boards)

    def _answers(self, boards: list[Any]) -> list[dict[str, Any] | Refusal]:
        return [self._answer(board) for board in boards]

    def _answer(self, board: Any) -> dict[str, Any] | Refusal:
        rows = None
        try:
            given = parse_board(board, self._solution.shape)
            rows = given.rows
            return {"solution": self.name, **board_answer(self._solution.query(given))}
        except (SolverError, OSError) as error:
            return refusal_of(error, rows)

    @property
    def is_finished(self) -> bool:
        return self._start_values() is not None

    @property
    def meta(self) -> dict[str, Any]:
        """Facts of the solution, and the values of its start boards once they are known."""
        shape, objective = self._solution.shape, self._solution.objective
        return {
            "name": self.name,
            **self._solution.meta,
            "rows": shape.num_rows,
            "columns": shape.num_columns,
            "largest_tile": 2**shape.max_exponent,
            "unit": objective.unit,
            "start_values": self._start_values(),
        }

    def _start_values(self) -> dict[str, float] | None:
        try:
            return self._solution.start_values
        except NotSolved:
            return None


def board_answer(answer: BoardValue) -> dict[str, Any]:
    """A board's value and its legal actions, best first.

    An action's loss is what it gives away against the best one: 0 where they are tied.
    """
    actions = [
        {
            "action": name,
            "best": name in answer.best,
            "value": action.value,
            "reward": action.reward,
            "afterstate_value": action.afterstate_value,
            "loss": 0.0 if name in answer.best else answer.value - action.value,
        }
        for name, action in answer.actions.items()
        if action is not None
    ]
    return {
        "board": answer.board,
        "age": answer.age,
        "value": answer.value,
        "terminal": not actions,
        "actions": sorted(actions, key=lambda action: (not action["best"], -action["value"])),
    }
