"""Actions of a band of ages as stored: a predictor, and where it is wrong; see `kernels.policy`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .bands import slots_per_age
from .kernels.policy import NUM_PATTERNS, NUM_WEIGHTS, encode_actions, learn, optimal_actions_into
from .layer import Band
from .layer_index import LayerIndex, build_layer_index, member_boards
from .objective import Objective
from .shape import Shape
from .stored_array import ArrayToWrite
from .tables import build_tables
from .workers import Workers

CODES, WEIGHTS = "codes", "weights"

BYTES_PER_WORD = 16
"""Codes of the 64 slots of a word of a bitmap: every age begins at a new word."""

LEARNING_BOARDS = 1 << 22
FIRST_RATE, LAST_RATE = 0.15, 0.001
WEIGHT_SCALE = 16.0

CHUNK_WORDS = 1 << 8
"""Some thousand boards: what the kernels' scratch holds stays in the cache."""

HASH = np.uint64(0x9E3779B97F4A7C15)


def policy_kind(objective: Objective) -> str:
    """Where the store keeps an objective's policy."""
    return f"policy/{objective.directory}"


def code_ranges(shape: Shape, band: Band) -> dict[int, tuple[int, int]]:
    """Where the codes of each age of a band lie in its array, in bytes."""
    slots = slots_per_age(shape)[band.first // 2 : band.last // 2 + 1]
    stops = np.cumsum((slots + 63) // 64 * BYTES_PER_WORD).tolist()
    return dict(zip(band.ages, zip([0, *stops], stops, strict=False), strict=True))


def member_chunks(ranks: NDArray[np.uint64]) -> list[tuple[int, int, slice]]:
    """Chunks of a ranked bitmap: words [start, stop) and the positions of their members."""
    num_words = len(ranks) // 2 - 1
    starts = np.arange(0, num_words + CHUNK_WORDS, CHUNK_WORDS).clip(max=num_words)
    places = ranks[2 * starts + 1].tolist()
    return [
        (int(starts[i]), int(starts[i + 1]), slice(places[i], places[i + 1]))
        for i in range(len(starts) - 1)
        if places[i] < places[i + 1]
    ]


def best_actions(
    shape: Shape,
    objective: Objective,
    index: LayerIndex,
    states: NDArray[np.uint64],
    afterstates: NDArray[np.uint64],
    values: NDArray[np.float64],
    workers: Workers,
) -> NDArray[np.uint8]:
    """The best actions of a layer's states as masks, uint8[n] in index order, 0 if terminal.

    states, afterstates : ranked bitmaps; values : v of the afterstates
    """
    tables = build_tables(shape)
    potentials = objective.potentials(shape)
    allowance = objective.arithmetic_allowance(shape)
    masks = np.empty(int(states[-1]), dtype=np.uint8)
    bitmap = states[::2].copy()
    chunks = member_chunks(states)

    def choose(first: np.uint64, last: np.uint64) -> None:
        for start, stop, place in chunks[int(first) : int(last)]:
            codes = member_boards(shape, index, bitmap, start, stop)
            slots = np.empty((len(codes), 4), dtype=np.uint64)
            optimal_actions_into(
                tables, index, potentials, allowance, afterstates, values, codes, slots,
                np.empty((len(codes), 4)), masks[place],
            )  # fmt: skip

    workers.run((len(chunks), choose), min_range=1)
    return masks


@dataclass(frozen=True)
class _Layer:
    index: LayerIndex
    members: NDArray[np.uint64]
    masks: NDArray[np.uint8]


class PolicyBandBuilder:
    """Collects the actions of a band's layers, in any order of ages, for `Store.write_band`.

    num_members : of each age, so that as many boards as wanted are there to learn from
    """

    def __init__(self, shape: Shape, band: Band, num_members: dict[int, int]) -> None:
        self._shape, self._band = shape, band
        self._share = min(1.0, LEARNING_BOARDS / max(1, sum(num_members.values())))
        self._layers: dict[int, _Layer] = {}
        self._samples: list[tuple[NDArray[np.uint64], NDArray[np.uint8]]] = []
        self._ranges = code_ranges(shape, band)

    @property
    def num_bytes(self) -> int:
        """Size before it is compressed."""
        return self._ranges[self._band.last][1] + NUM_WEIGHTS

    def add(self, age: int, members: NDArray[np.uint64], masks: NDArray[np.uint8]) -> None:
        """Add a layer: the ranked bitmap of its members, and the actions that each may have."""
        index = build_layer_index(self._shape, age)
        self._layers[age] = _Layer(index, members, masks)
        bitmap = members[::2].copy()
        for start, stop, place in member_chunks(members):
            codes = member_boards(self._shape, index, bitmap, start, stop)
            # A choice that depends on the board alone, not on how the work is cut.
            chosen = (codes * HASH >> np.uint64(40)) < np.uint64(self._share * 2.0**24)
            chosen &= masks[place] > 0
            self._samples.append((codes[chosen], masks[place][chosen]))

    def _learned(self) -> NDArray[np.int8]:
        """Weights of a predictor, int8[NUM_WEIGHTS]."""
        codes = np.concatenate([codes for codes, _ in self._samples] or [np.empty(0, np.uint64)])
        masks = np.concatenate([masks for _, masks in self._samples] or [np.empty(0, np.uint8)])
        # Boards of all ages mixed, always in the same way.
        order = np.argsort(codes * HASH * HASH, kind="stable")
        rounds = max(1, min(3, LEARNING_BOARDS // max(1, len(codes))))
        order = np.tile(order, rounds)
        weights = np.zeros(NUM_WEIGHTS)
        learn(
            build_tables(self._shape), codes[order], masks[order], FIRST_RATE, LAST_RATE,
            np.empty((4, NUM_PATTERNS), dtype=np.uint64), np.empty(4), weights,
        )  # fmt: skip
        return np.clip(np.rint(WEIGHT_SCALE * weights), -127, 127).astype(np.int8)

    def encode(self, workers: Workers) -> tuple[dict[str, ArrayToWrite], dict[str, Any]]:
        """The band's arrays, and its record."""
        weights = self._learned()
        codes = np.zeros(self._ranges[self._band.last][1], dtype=np.uint8)
        layers = []
        for age in self._band.ages:
            start, stop = self._ranges[age]
            layer = self._layers[age]
            predicted, decided = self._encode_layer(layer, weights, codes[start:stop], workers)
            layers.append({
                "age": age, "codes": [start, stop], "members": len(layer.masks),
                "decided": decided, "predicted": predicted,
            })  # fmt: skip
        arrays = {
            CODES: ArrayToWrite("codes", codes), WEIGHTS: ArrayToWrite("codes", weights)
        }  # fmt: skip
        return arrays, {"layers": layers, "parents": {}}

    def _encode_layer(
        self, layer: _Layer, weights: NDArray[np.int8], codes: NDArray[np.uint8], workers: Workers
    ) -> tuple[int, int]:
        tables = build_tables(self._shape)

        def encode(start: np.uint64, stop: np.uint64) -> tuple[int, int]:
            predicted, decided = encode_actions(
                tables, layer.index, layer.members, layer.masks, weights, codes,
                np.empty(4, dtype=np.int64), start, stop,
            )  # fmt: skip
            return int(predicted), int(decided)

        found = workers.run((len(layer.members) // 2 - 1, encode), min_range=CHUNK_WORDS)
        return sum(p for p, _ in found), sum(d for _, d in found)
