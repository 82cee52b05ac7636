"""Why an action is best: spawn outcomes, a line of play, tiles to expect, and the risk."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from . import rules
from .board import GivenBoard, pack_boards
from .board_values import BoardValue
from .layer_values import no_values
from .prospects import Boards, death_probabilities, tile_distribution
from .simulation import simulate
from .solution import Solution

Rows = tuple[tuple[int, ...], ...]
"""Tile numbers row by row, 0 for an empty cell, in the orientation of the board given."""

SIMULATED_GAMES = 10_000


@dataclass(frozen=True)
class Spawn:
    """A spawn after an action: the tile, its cell, counted from 1, and the value it leads to."""

    row: int
    column: int
    tile: int
    probability: float
    value: float


@dataclass(frozen=True)
class ActionOutcomes:
    """An action and all that may follow; `loss` against the best action."""

    value: float
    reward: float
    afterstate_value: float
    loss: float
    afterstate: Rows
    spawns: tuple[Spawn, ...]

    @property
    def worst(self) -> Spawn:
        return min(self.spawns, key=lambda spawn: spawn.value)

    @property
    def best(self) -> Spawn:
        return max(self.spawns, key=lambda spawn: spawn.value)

    @property
    def likeliest(self) -> Spawn:
        """The likeliest spawn; of those alike, the one whose value is nearest to the expected."""
        return max(
            self.spawns, key=lambda s: (s.probability, -abs(s.value - self.afterstate_value))
        )


@dataclass(frozen=True)
class Step:
    """A move of a likely line of play; `board` is the one after the spawn."""

    action: str
    reward: float
    spawn: Spawn
    board: Rows


@dataclass(frozen=True)
class TileChance:
    """The probability of ever holding a tile; `standard_error` is 0 where it is exact."""

    tile: int
    probability: float
    standard_error: float


@dataclass(frozen=True)
class Explanation:
    """All that is said of a board.

    answer : as `Solution.query` gives it
    actions : by name, None where illegal
    line : of play under the policy, with the likeliest spawns
    tiles, is_exact : the chance of each tile, exact or from SIMULATED_GAMES games
    deaths : item k - 1 is the probability that the game is over within k spawns; short where too
        many boards are possible
    """

    answer: BoardValue
    actions: dict[str, ActionOutcomes | None]
    line: tuple[Step, ...]
    tiles: tuple[TileChance, ...]
    is_exact: bool
    deaths: tuple[float, ...]


def explain(
    solution: Solution,
    given: GivenBoard,
    *,
    num_moves: int,
    num_spawns: int,
    max_states: int,
    seed: int,
    show_progress: bool = False,
) -> Explanation:
    """Explain a board. Raises what `Solution.query` raises.

    max_states : so many states are followed for what is exact, one by one
    seed : of the games played where there are more
    """
    answer = solution.query(given)
    if not answer.actions:
        raise no_values(solution.sets.store)
    boards = Boards(pack_boards(given.oriented[None], solution.shape), np.ones(1))
    at_end = tile_distribution(solution, boards, max_states)
    is_exact = at_end is not None
    if at_end is None:
        games = simulate(solution, SIMULATED_GAMES, seed, start=given, show_progress=show_progress)
        at_end = np.bincount(games.exponents) / SIMULATED_GAMES
    return Explanation(
        answer,
        {name: outcome_of(solution, answer, name) for name in answer.actions},
        tuple(_line(solution, answer, num_moves)),
        _tile_chances(at_end, given, is_exact),
        is_exact,
        tuple(death_probabilities(solution, boards, num_spawns, max_states)),
    )


def outcome_of(solution: Solution, answer: BoardValue, name: str) -> ActionOutcomes | None:
    """An action of a board with its spawns; None if it is illegal."""
    action = answer.actions[name]
    move = rules.move(exponent_rows(answer.board), name)
    if action is None or move is None:
        return None
    afterstate = tile_rows(move[0])
    return ActionOutcomes(
        action.value,
        action.reward,
        action.afterstate_value,
        0.0 if name in answer.best else answer.value - action.value,
        afterstate,
        _spawns(solution, afterstate),
    )


def _spawns(solution: Solution, afterstate: Rows) -> tuple[Spawn, ...]:
    cells = empty_cells(afterstate)
    shares = {2: 1 - solution.spawn4, 4: solution.spawn4}
    kinds = [(cell, tile) for tile in shares for cell in cells]
    boards = np.array([with_tile(afterstate, cell, tile) for cell, tile in kinds])
    if boards.shape[1] != solution.shape.num_rows:
        boards = boards.transpose(0, 2, 1)
    values = solution.probe(boards).values.tolist()
    return tuple(
        Spawn(i + 1, j + 1, tile, shares[tile] / len(cells), value)
        for ((i, j), tile), value in zip(kinds, values, strict=True)
    )


def _line(solution: Solution, answer: BoardValue, num_moves: int) -> list[Step]:
    steps: list[Step] = []
    while len(steps) < num_moves and answer.best:
        name = answer.best[0]
        outcome = outcome_of(solution, answer, name)
        assert outcome is not None
        spawn = outcome.likeliest
        board = with_tile(outcome.afterstate, (spawn.row - 1, spawn.column - 1), spawn.tile)
        steps.append(Step(name, outcome.reward, spawn, board))
        answer = solution.query(board)
    return steps


def _tile_chances(
    at_end: NDArray[np.float64], given: GivenBoard, is_exact: bool
) -> tuple[TileChance, ...]:
    # The largest tile never shrinks: to reach one is to end with it or a larger one.
    reaching = np.minimum(at_end[::-1].cumsum()[::-1], 1.0)
    now = int(given.oriented.max())
    return tuple(
        TileChance(2**exponent, p, 0.0 if is_exact else (p * (1 - p) / SIMULATED_GAMES) ** 0.5)
        for exponent, p in enumerate(reaching.tolist())
        if p > 0 and 2**exponent >= now
    )


def exponent_rows(rows: Rows) -> rules.Board:
    """The board as the slow rules take it."""
    return tuple(tuple(tile.bit_length() - 1 if tile else 0 for tile in row) for row in rows)


def tile_rows(board: rules.Board) -> Rows:
    """The board of the slow rules as tile numbers."""
    return tuple(tuple(2**cell if cell else 0 for cell in row) for row in board)


def with_tile(rows: Rows, cell: tuple[int, int], tile: int) -> Rows:
    """The board with a tile in a cell, counted from 0."""
    i, j = cell
    return (*rows[:i], (*rows[i][:j], tile, *rows[i][j + 1 :]), *rows[i + 1 :])


def empty_cells(rows: Rows) -> list[tuple[int, int]]:
    """The cells without a tile, row by row."""
    return [(i, j) for i, row in enumerate(rows) for j, tile in enumerate(row) if not tile]
