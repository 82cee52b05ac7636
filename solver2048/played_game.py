"""A game somebody plays beside the solution: moves, spawns, take-backs, and what was lost."""

from __future__ import annotations

import math
from dataclasses import dataclass

from . import rules
from .board import GivenBoard
from .board_values import BoardValue
from .explanation import Rows, empty_cells, exponent_rows, tile_rows, with_tile
from .game import CELL_DRAW, START_AGE, TILE_DRAW, draws
from .options import STATES_MET
from .solution import Solution


@dataclass(frozen=True)
class Move:
    """A move made: what it lost against the best action, and which those were.

    loss : NaN where that is not known, as of another action than a policy table's
    """

    action: str
    loss: float
    best: tuple[str, ...]


@dataclass(frozen=True)
class Position:
    """A board of a game: the score so far, and what all moves have lost in expectation."""

    answer: BoardValue
    score: float = 0.0
    num_moves: int = 0
    num_losing: int = 0
    lost: float = 0.0
    last: Move | None = None


@dataclass(frozen=True)
class Slide:
    """A move that waits for its spawn."""

    afterstate: Rows
    score: float
    move: Move


class PlayedGame:
    """A game, in the orientation of the board given.

    history : of positions; the last is the present one
    slide : the move that waits for its spawn, if one does
    has_choice : whether any legal action may be played; a table of its own play knows that alone
    The draws are those of `simulate` for its first game with that seed; each new game takes the
    next seed. All methods raise what `Solution.query` raises.
    """

    def __init__(self, solution: Solution, seed: int, board: GivenBoard | None = None) -> None:
        solution.check_start(board)
        self.solution = solution
        self.has_choice = solution.reach != STATES_MET
        self.seed = seed
        self.history: list[Position] = []
        self.slide: Slide | None = None
        self._begin(self._random_start() if board is None else board.rows)

    @property
    def position(self) -> Position:
        return self.history[-1]

    @property
    def rows(self) -> Rows:
        """The tiles to show: of the position, or of the move that waits for its spawn."""
        return self.slide.afterstate if self.slide else self.position.answer.board

    @property
    def is_over(self) -> bool:
        return not self.slide and not self.position.answer.best

    @property
    def has_values(self) -> bool:
        """Whether boards have values; a policy table knows best actions alone."""
        return not math.isnan(self.position.answer.value)

    @property
    def luck(self) -> float:
        """What spawns have brought beyond expectation: value gained that no move explains."""
        now, start = self.position, self.history[0]
        earned = 0.0 if self.solution.objective.exponent else now.score
        return earned + now.answer.value + now.lost - start.answer.value

    def new_game(self) -> None:
        """Begin again from a random start."""
        self.seed += 1
        self._begin(self._random_start())

    def play(self, action: str) -> bool:
        """Make a move, its spawn still to come; False if it is illegal, or there is no choice."""
        now = self.position
        best, chosen = now.answer.best, now.answer.actions.get(action)
        moved = rules.move(exponent_rows(now.answer.board), action)
        if self.slide or moved is None or not (self.has_choice or action in best):
            return False
        loss = 0.0 if action in best else now.answer.value - chosen.value if chosen else math.nan
        self.slide = Slide(tile_rows(moved[0]), now.score + moved[1], Move(action, loss, best))
        return True

    def place(self, cell: tuple[int, int], tile: int) -> None:
        """Spawn a tile in an empty cell, counted from 0, after a move."""
        assert self.slide is not None
        now, move = self.position, self.slide.move
        answer = self.solution.query(with_tile(self.slide.afterstate, cell, tile))
        self.history.append(
            Position(
                answer,
                self.slide.score,
                now.num_moves + 1,
                now.num_losing + (move.loss > 0),
                now.lost + move.loss,
                move,
            )
        )
        self.slide = None

    def place_drawn(self) -> None:
        """Spawn the tile that the seed draws at this age."""
        self.place(*self._drawn(self.rows, self.position.answer.age))

    def undo(self) -> bool:
        """Take the last move back; False if there is none."""
        if self.slide:
            self.slide = None
        elif len(self.history) > 1:
            self.history.pop()
        else:
            return False
        return True

    def empty_cells(self) -> list[tuple[int, int]]:
        return empty_cells(self.rows)

    def _begin(self, rows: Rows) -> None:
        self.history = [Position(self.solution.query(rows))]
        self.slide = None

    def _random_start(self) -> Rows:
        shape = self.solution.shape
        rows: Rows = ((0,) * shape.num_columns,) * shape.num_rows
        for number in range(2):
            rows = with_tile(rows, *self._drawn(rows, START_AGE + number))
        return rows

    def _drawn(self, rows: Rows, age: int) -> tuple[tuple[int, int], int]:
        drawn = draws(self.seed, age, 1)[0]
        cells = empty_cells(rows)
        cell = cells[int(drawn[CELL_DRAW] * len(cells))]
        return cell, 4 if drawn[TILE_DRAW] < self.solution.spawn4 else 2
