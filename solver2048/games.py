"""What comes of games under optimal play from a random start, exactly: how long they live, how
they score, and which boards they meet.

Probabilities are carried upward, from age to age, the games of a board as one row::

    afterstates of n = sum over the states of n whose action leads there
    states of n      = spawns of a 2 on the afterstates of n - 2, of a 4 on those of n - 4

A row holds a probability for every number of 4s spawned so far. That is all a score needs beside
the board: it is the board's potential less 4 for each of them (`solver2048.objective`). The number
of spawns need not be carried: the age is twice the number of 2s and four times that of the 4s.
Where rows do not fit into memory, only their sum is carried on, and the scores are not known.

*Ties*: a board is played in its canonical form, as the sets hold it, and of several best actions
(those of `Probe.best`, equal for all that is stored) the first in the order of `ACTIONS` is taken.

Sums of rows have a fixed order, and all others are exactly rounded (`math.fsum`) or compensated:
nothing depends on the number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from elias_fano.bits import empty_bitmap
from elias_fano.ranked import rank_bitmap

from .age_statistics import valued_layers
from .amounts import default_memory_bytes
from .backward import Problem
from .errors import NotSolved
from .forward import SPAWN_EXPONENTS, AfterstateLayer, mark_states, start_boards
from .game_totals import GameLayer, Games, GameTotals
from .kernels.actions import ILLEGAL
from .kernels.games import add_moves, add_spawns, move_slots_into
from .kernels.slots import mark_slots
from .kernels.values import positions_into
from .layer_index import board_slots, build_layer_index, member_boards
from .layer_sets import LayerSets, stored_problem
from .layer_statistics import ValuedLayer
from .layer_values import Values
from .objective import Objective
from .progress import Progress
from .tables import build_tables
from .workers import Workers

CHUNK_BOARDS = 1 << 12
MIN_COLUMNS = 16
"""Fewer columns are not worth a thread of their own."""

NUM_START_TILES = 2

LEAST = 1e-280
"""Columns in which no board is likelier are left out: soon after float64 knows only 0."""

MEMORY_SHARE = 0.5


def optimal_games(
    sets: LayerSets,
    objective: Objective,
    *,
    threads: int | None = None,
    memory_bytes: int | None = None,
    show_progress: bool = False,
) -> Games:
    """What comes of games under optimal play; of a solution ``s``: `s.sets`, `s.objective`.

    memory_bytes : where scores would need more, they are given up; by default half the machine's
    Raises NotSolved, SolutionDamaged.
    """
    values = _all_values(sets, objective)
    problem = stored_problem(sets.store, objective.name)
    limit = memory_bytes or int(MEMORY_SHARE * default_memory_bytes())
    totals = GameTotals(problem.shape)
    total = sum(counts.state_members for counts in sets.counts())
    with (
        Workers(threads) as workers,
        Progress(f"{problem.shape.name} games", float(total), enabled=show_progress) as bar,
    ):
        play = _OptimalPlay(problem, limit, workers)
        for band in values.bands:
            for age, valued, _ in valued_layers(sets, values, band):
                counts = sets.layer_counts(age)
                states = play.spawn(age)
                slots = play.choose(states, valued)
                totals.add(states, slots, counts.states)
                play.move(states, slots)
                bar.advance(age, float(counts.state_members), counts.states)
    meta = {"shape": problem.shape.name, "spawn4": problem.spawn4, "objective": objective.name,
            "values": values.format.name}  # fmt: skip
    value = float((values.result or {})["random_start"])
    return totals.finish(meta, value, play.has_scores)


def _all_values(sets: LayerSets, objective: Objective) -> Values:
    """The values of all ages. Raises NotSolved."""
    if sets.store.keeps_start_alone:
        raise NotSolved(
            f"{sets.store.path} keeps only start values, counts and statistics; games need a solve "
            "with keep solution into another directory"
        )
    values = Values(sets, objective)
    if values.result is None:
        raise NotSolved("the solve has not come down to the start boards yet")
    return values


class _OptimalPlay:
    """Carries games from age to age, upward; keeps the afterstates of the two ages below."""

    def __init__(self, problem: Problem, limit: int, workers: Workers) -> None:
        self.has_scores = True
        self._problem, self._limit, self._workers = problem, limit, workers
        self._tables = build_tables(problem.shape)
        self._window: dict[int, GameLayer] = {}
        self._buffers: dict[str, NDArray[np.float64]] = {}

    def spawn(self, age: int) -> GameLayer:
        """The states of an age, from the afterstates below and the start boards."""
        shape = self._problem.shape
        index = build_layer_index(shape, age)
        window = {
            below: AfterstateLayer(layer.index, layer.bitmap)
            for below, layer in self._window.items()
        }
        bitmap = mark_states(shape, index, window, self._workers)
        codes = member_boards(shape, index, bitmap)
        games = self._zeros("states", len(codes), self._num_columns(age, len(codes)))
        layer = GameLayer(index, bitmap, codes, games)
        self._begin(layer, board_slots(shape, index, start_boards(shape, age)))
        for exponent in SPAWN_EXPONENTS:
            if age - 2**exponent in self._window:
                self._spawn_tile(layer, exponent)
        return layer

    def _num_columns(self, age: int, num_boards: int) -> int:
        """Columns that an age's rows need: one a number of 4s, or one if they do not fit."""
        window = {exponent: self._window.get(age - 2**exponent) for exponent in SPAWN_EXPONENTS}
        columns = max(
            [layer.games.shape[1] + exponent - 1 for exponent, layer in window.items() if layer],
            default=0,
        )  # fmt: skip
        columns = max(columns, NUM_START_TILES + 1)
        there = sum(layer.games.nbytes for layer in window.values() if layer)
        # The rows of the states, and those of the afterstates that they become.
        if self.has_scores and there + 2 * 8 * num_boards * columns > self._limit:
            self.has_scores = False
            self._window = {
                below: replace(layer, games=layer.games.sum(axis=1, keepdims=True))
                for below, layer in self._window.items()
            }
        return columns if self.has_scores else 1

    def _begin(self, layer: GameLayer, starts: NDArray[np.uint64]) -> None:
        """Add the games that begin at an age: two tiles on two cells, all pairs alike."""
        if not len(starts):
            return
        num_cells = self._problem.shape.num_cells
        fours = (int(layer.index.age) - 4) // 2
        probability = math.prod(
            self._problem.spawn_probability(2 if tile < fours else 1)
            for tile in range(NUM_START_TILES)
        ) / math.comb(num_cells, NUM_START_TILES)  # fmt: skip
        positions = np.empty(len(starts), dtype=np.uint64)
        positions_into(rank_bitmap(layer.bitmap), starts, positions)
        np.add.at(layer.games[:, fours if self.has_scores else 0], positions, probability)

    def _spawn_tile(self, layer: GameLayer, exponent: int) -> None:
        below = self._window[int(layer.index.age) - 2**exponent]
        ranks = rank_bitmap(layer.bitmap)
        shift = np.uint64(exponent - 1 if self.has_scores else 0)
        probability = self._problem.spawn_probability(exponent)

        def spawn(start: int, stop: int) -> None:
            add_spawns(
                self._tables, layer.index, np.uint64(exponent), probability, shift, below.codes,
                below.games, ranks, layer.games, np.uint64(start), np.uint64(stop),
            )  # fmt: skip

        self._by_columns(below.games.shape[1], spawn)

    def choose(self, states: GameLayer, valued: ValuedLayer) -> NDArray[np.uint64]:
        """Slots of the afterstates that the best actions lead to, `ILLEGAL` where all is over."""
        order = np.array(self._problem.shape.packed_actions, dtype=np.uint8)
        slots = np.empty(len(states.codes), dtype=np.uint64)

        def choose(start: int, stop: int) -> None:
            described = valued.describe(self._problem, states.codes[start:stop])
            best = valued.best_actions(self._problem, described)[:, order]
            actions = order[best.argmax(axis=1)]
            move_slots_into(self._tables, states.index, described.codes, actions, slots[start:stop])

        self._workers.run_pieces(len(slots), CHUNK_BOARDS, choose)
        return slots

    def move(self, states: GameLayer, slots: NDArray[np.uint64]) -> None:
        """Take the best actions of an age's states: its afterstates join the window."""
        shape = self._problem.shape
        bitmap = empty_bitmap(int(states.index.num_slots))
        mark_slots(slots[slots != ILLEGAL], bitmap)
        codes = member_boards(shape, states.index, bitmap)
        columns = _num_used(states.games)
        age = int(states.index.age)
        games = self._zeros(f"afterstates {age % 6}", len(codes), columns)
        ranks = rank_bitmap(bitmap)

        def move(start: int, stop: int) -> None:
            add_moves(ranks, slots, states.games, games, np.uint64(start), np.uint64(stop))

        self._by_columns(columns, move)
        self._window[age] = GameLayer(states.index, bitmap, codes, games)
        self._window.pop(age - 4, None)

    def _zeros(self, name: str, num_boards: int, num_columns: int) -> NDArray[np.float64]:
        """Rows of zeros, in memory that the last ones of that name have left."""
        # To get it from the system anew, page by page, takes as long as all the sums.
        size = num_boards * num_columns
        if name not in self._buffers or len(self._buffers[name]) < size:
            self._buffers[name] = np.empty(size + size // 4)
        rows = self._buffers[name][:size].reshape(num_boards, num_columns)
        rows.fill(0.0)
        return rows

    def _by_columns(self, num_columns: int, task: Callable[[int, int], None]) -> None:
        """Run a task over all columns, a piece a thread: boards are looked up for every piece."""
        size = max(MIN_COLUMNS, -(-num_columns // self._workers.num_threads))
        self._workers.run_pieces(num_columns, size, task)


def _num_used(games: NDArray[np.float64]) -> int:
    """Columns without the last ones if no board is likely to have so many 4s."""
    used = np.flatnonzero(games.max(axis=0, initial=0.0) > LEAST)
    return int(used[-1]) + 1 if len(used) else 1
