"""Boards looked up by age, in decoded layers where these are small or asked densely."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .bands import slots_per_age
from .cache import Cache
from .decoded_layer import DecodedLayer, decode_layer, forecast_bytes, layer_bytes
from .errors import NotSolved, SolutionDamaged
from .kernels.answers import (
    MOVE_MISSING,
    NOT_ENUMERATED,
    SCRATCH_SHAPE,
    UNREACHABLE,
    answer_unknown_into,
    answers_into,
    judge_into,
)
from .kernels.moves import moves_into
from .layer_sets import LayerSets
from .layer_values import Values
from .questions import Packed, order_by_age
from .shape import TRANSPOSED_ACTIONS
from .tables import build_tables

LAYER_BYTES = 1 << 30
"""Decoded layers kept, at most: all of 3x3 takes 0.5 GB."""

SMALL_SLOTS = 1 << 21
"""A layer of up to so many slots is decoded when a second board of it is asked for."""

SLOTS_PER_BOARD = 1 << 11
"""Of a larger one a board is worth so many slots decoded: 1 us, where a slot takes 0.5 ns."""

PIECE_BOARDS = 1 << 14
"""Boards of one age beyond these may go to another thread."""

PIECES_PER_THREAD = 8

Codes = NDArray[np.uint64]
Order = NDArray[np.int64]


class AnswerTerms(NamedTuple):
    """What turns stored values into answers, as kernels take it.

    potentials : float64[num_rows], by ordinal; a move's reward is what the board gains of it
    ends : float64[num_rows]; a board without a move is worth their sum, at most `end_cap`
    scale : a stored value times this is the value
    relative_bound, least_bound : see `ValueFormat`
    allowance : how far two float64 values that are equal can be apart
    turn : 2 where the packed board lies transposed, else 0; action of the packed board xor this
        is that of the board
    """

    potentials: NDArray[np.float64]
    ends: NDArray[np.float64]
    end_cap: np.float64
    scale: np.float64
    relative_bound: np.float64
    least_bound: np.float64
    allowance: np.float64
    turn: np.uint64


class Answers(NamedTuple):
    """What is known of n boards; `Probe` says what the arrays hold. faults : uint8[n]."""

    values: NDArray[np.float64]
    action_values: NDArray[np.float64]
    rewards: NDArray[np.float64]
    afterstate_values: NDArray[np.float64]
    best: NDArray[np.bool_]
    faults: NDArray[np.uint8]


def _empty_answers(faults: NDArray[np.uint8]) -> Answers:
    n = len(faults)
    return Answers(
        np.empty(n), np.empty((n, 4)), np.empty((n, 4)), np.empty((n, 4)),
        np.empty((n, 4), dtype=np.bool_), faults,
    )  # fmt: skip


class Lookup:
    """Answers about boards of a solution, from its stored values; safe for several threads."""

    def __init__(self, sets: LayerSets, stored: Values) -> None:
        self._sets = sets
        self.stored = stored
        self.shape = sets.shape
        self._tables = build_tables(sets.shape)
        self._terms = _answer_terms(stored, sets)
        self._layers: Cache[int, DecodedLayer] = Cache(LAYER_BYTES, layer_bytes)
        # By half the age, since the layer was last decoded; threads may lose a count.
        self._num_asked = np.zeros(sets.shape.top_age // 2 + 1, dtype=np.int64)
        self._first = np.zeros(1, dtype=np.int64)

    @functools.cached_property
    def max_age(self) -> int:
        """The largest age enumerated."""
        return self._sets.max_age

    def release(self) -> None:
        """Let go of the decoded layers."""
        self._layers.clear()

    # --- boards -------------------------------------------------------------------------------

    def answer_one(self, code: int, age: int) -> Answers:
        """Answer a packed board of an age that is enumerated."""
        answers = _empty_answers(np.zeros(1, dtype=np.uint8))
        self._answer_age(age, np.array([code], dtype=np.uint64), self._first, 1, answers)
        return answers

    def answer(self, packed: Packed, num_threads: int = 1, *, partial: bool = False) -> Answers:
        """Answer boards, in time linear in their number; faults of any other than these stay.

        partial : boards of ages that have no values yet are `NOT_ENUMERATED`, and end nothing
        """
        answers = _empty_answers(packed.faults)
        order, stops = order_by_age(packed, self.shape)

        def work(pieces: list[tuple[int, int, int, int]]) -> None:
            for age, size, start, stop in pieces:
                try:
                    self._answer_age(age, packed.codes, order[start:stop], size, answers)
                except NotSolved:
                    if not partial:
                        raise
                    answers.faults[order[start:stop]] = NOT_ENUMERATED

        pieces = list(_pieces(stops))
        if num_threads == 1 or len(pieces) < 2:
            work(pieces)
        else:
            with ThreadPoolExecutor(num_threads) as pool:
                step = -(-len(pieces) // (num_threads * PIECES_PER_THREAD))
                parts = [pieces[i : i + step] for i in range(0, len(pieces), step)]
                # Listed, so that an error of a part is raised here.
                list(pool.map(work, parts))
        if packed.num_faults or partial:
            answer_unknown_into(answers)
        return answers

    def _answer_age(
        self, age: int, codes: Codes, order: Order, num_boards: int, answers: Answers
    ) -> None:
        """Answer the boards in `order`, of one age of which `num_boards` are asked in all."""
        layer = self._layer(age, num_boards)
        if layer is None:
            self._look_up(age, codes, order, answers)
        else:
            self._answer_decoded(age, layer, codes, order, answers)

    # --- layers -------------------------------------------------------------------------------

    def _layer(self, age: int, num_boards: int) -> DecodedLayer | None:
        """The layer of an age, decoded if that is worth its while, else None."""
        layer = self._layers.get(age)
        if layer is None and self._is_worth_decoding(age, num_boards):
            layer = decode_layer(self._sets, self.stored, age)
            self._layers.put(age, layer)
            self._num_asked[age // 2] = 0
        return layer

    def whole_layer(self, age: int) -> DecodedLayer:
        """The layer of an age, decoded whatever its size."""
        layer = self._layers.get(age)
        return decode_layer(self._sets, self.stored, age) if layer is None else layer

    def answer_states(self, age: int, layer: DecodedLayer, codes: Codes) -> Answers:
        """Answer packed states of a decoded layer."""
        answers = _empty_answers(np.zeros(len(codes), dtype=np.uint8))
        self._answer_decoded(age, layer, codes, np.arange(len(codes)), answers)
        return answers

    def decode_values(self, stored: NDArray[Any]) -> NDArray[np.float64]:
        """Values as computed, but for rounding, of values as stored."""
        return self.stored.format.decode(stored)

    def _answer_decoded(
        self, age: int, layer: DecodedLayer, codes: Codes, order: Order, answers: Answers
    ) -> None:
        slots = np.empty(SCRATCH_SHAPE, dtype=np.uint64)
        num_faults = answers_into(self._tables, layer, self._terms, codes, order, slots, answers)
        if num_faults and bool((answers.faults[order] == MOVE_MISSING).any()):
            raise _lacks_a_move(age)

    def _is_worth_decoding(self, age: int, num_boards: int) -> bool:
        """Whether `num_boards` more than were asked before make up for it."""
        num_asked = int(self._num_asked[age // 2]) + num_boards
        self._num_asked[age // 2] = num_asked
        num_slots = int(slots_per_age(self.shape)[age // 2])
        if num_slots <= SMALL_SLOTS:
            return num_asked > 1
        is_dense = num_slots <= SLOTS_PER_BOARD * num_asked
        return is_dense and forecast_bytes(self._sets, self.stored, age) <= LAYER_BYTES

    def _look_up(self, age: int, codes: Codes, order: Order, answers: Answers) -> None:
        """Answer boards of one age by the partitions and chunks that they need."""
        boards = codes[order]
        moved = np.empty((len(boards), 4), dtype=np.uint64)
        rewards = np.empty((len(boards), 4))
        moves_into(self._tables, self._terms.potentials, boards, moved, rewards)
        if self.shape.is_transposed:
            moved, rewards = moved[:, TRANSPOSED_ACTIONS], rewards[:, TRANSPOSED_ACTIONS]
        ids = self._sets.ids.of_boards(age, boards)
        is_state = self._sets.open(age, "states").index_of(ids) >= 0
        is_legal = (moved != boards[:, None]) & is_state[:, None]
        values = np.full((len(boards), 4), np.nan)
        values[is_legal] = self.afterstate_values(age, moved[is_legal])
        answers.faults[order[~is_state]] = UNREACHABLE
        answers.rewards[order] = rewards
        answers.afterstate_values[order] = values
        judge_into(self._tables, self._terms, codes, order, answers)

    def afterstate_values(self, age: int, codes: Codes) -> NDArray[np.float64]:
        """Stored values of packed afterstates of one age."""
        ids = self._sets.ids.of_boards(age, codes)
        positions = self._sets.open(age, "afterstates").index_of(ids)
        # Of a state that is a member every move is one, or the set has lost members.
        if len(positions) and positions.min() < 0:
            raise _lacks_a_move(age)
        return self.stored.take(age, positions)


def _lacks_a_move(age: int) -> SolutionDamaged:
    return SolutionDamaged(f"age {age}: the set of afterstates lacks a move of a state")


def _pieces(stops: NDArray[np.int64]) -> Iterator[tuple[int, int, int, int]]:
    """(age, boards of that age, start, stop) of pieces of a list of boards by age."""
    ends = stops[:-1].tolist()
    for half, (start, stop) in enumerate(itertools.pairwise(ends), 1):
        for first in range(start, stop, PIECE_BOARDS):
            yield 2 * half, stop - start, first, min(first + PIECE_BOARDS, stop)


def _answer_terms(stored: Values, sets: LayerSets) -> AnswerTerms:
    shape, objective, values = sets.shape, stored.objective, stored.format
    floors = objective.floors(shape)
    # For the score a floor is the potential, which is what `v` leaves out.
    return AnswerTerms(
        potentials=objective.potentials(shape),
        ends=floors if objective.exponent else np.zeros_like(floors),
        end_cap=np.float64(objective.floor_cap),
        scale=np.float64(values.scale),
        relative_bound=np.float64(values.relative_bound),
        least_bound=np.float64(values.least_bound),
        allowance=np.float64(objective.arithmetic_allowance(shape)),
        turn=np.uint64(2 if shape.is_transposed else 0),
    )
