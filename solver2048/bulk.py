"""Many boards answered from a stream into a file, a batch of lines at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from .board_lines import BoardLines, LineBatch, line_text
from .board_values import Probe
from .errors import SolverError
from .shape import TRANSPOSED_ACTIONS
from .solution import Solution

BOARD_EXIT_CODES = (3, 4, 5)
"""Errors that are a board's own: others end the command."""


class AnsweredBatch(NamedTuple):
    """The lines of a batch with what is known of them.

    probe : of all lines, actions as given, with what is not known left open
    errors : by place in the batch
    """

    lines: LineBatch
    probe: Probe
    errors: dict[int, SolverError]


def answer_lines(solution: Solution, boards: BoardLines, threads: int) -> Iterator[AnsweredBatch]:
    """Answer every line that is not empty, in order. Raises SolutionDamaged."""
    for batch in boards:
        probe = solution.probe(batch.tiles, threads=threads, partial=True)
        for i in batch.given:
            for array in (probe.action_values, probe.rewards, probe.afterstate_values, probe.best):
                array[i] = array[i, TRANSPOSED_ACTIONS]
        unknown = np.flatnonzero(~probe.is_known).tolist()
        errors = {i: _error(solution, batch.lines[i]) for i in unknown}
        yield AnsweredBatch(batch, probe, errors)


def _error(solution: Solution, line: bytes) -> SolverError:
    """Why a line has no answer."""
    try:
        solution.query(line_text(line))
    except SolverError as error:
        if error.exit_code in BOARD_EXIT_CODES:
            return error
        raise
    raise AssertionError(f"{line!r} has an answer alone, and none among others")


class BadLines:
    """Counts lines without an answer, and tells of the first of them.

    tell : gets one line of text
    """

    SHOWN = 20

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._num_bad = 0
        self.exit_code = 0

    def add(self, batch: AnsweredBatch) -> None:
        for i, error in batch.errors.items():
            self._num_bad += 1
            self.exit_code = self.exit_code or error.exit_code
            if self._num_bad <= self.SHOWN:
                self._tell(f"error: line {batch.lines.numbers[i]}: {error}")

    def finish(self) -> None:
        """Tell how many there were beyond those shown."""
        if self._num_bad > self.SHOWN:
            self._tell(
                f"error: {self._num_bad - self.SHOWN:,} more lines have no answer; "
                "the output says why, line by line"
            )
