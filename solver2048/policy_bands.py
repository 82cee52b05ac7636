"""Actions of a band of ages as stored: a predictor, and where it is wrong; see `kernels.policy`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .bands import slots_per_age
from .kernels.policy import NUM_PATTERNS, NUM_WEIGHTS, encode_actions, learn
from .kernels.slots import lesser_into
from .layer import Band
from .layer_index import LayerIndex, member_boards, transposition
from .shape import Shape
from .store import Store
from .stored_array import ArrayToWrite
from .tables import build_tables
from .workers import Workers

CODES, WEIGHTS = "codes", "weights"

BYTES_PER_WORD = 16
"""Codes of the 64 slots of a word of a bitmap: every age begins at a new word."""

LEARNING_BOARDS = 1 << 22
"""That a band learns from, at most."""
FIRST_RATE, LAST_RATE = 0.15, 0.001
WEIGHT_SCALE = 16.0

CHUNK_WORDS = 1 << 8
"""Some thousand boards: what the kernels' scratch holds stays in the cache."""

HASH = np.uint64(0x9E3779B97F4A7C15)

_Sample = tuple[NDArray[np.uint64], NDArray[np.uint8]]
"""Packed boards to learn from, and their masks."""


def code_ranges(shape: Shape, band: Band) -> dict[int, tuple[int, int]]:
    """Where the codes of each age of a band lie in its array, in bytes."""
    slots = slots_per_age(shape)[band.first // 2 : band.last // 2 + 1]
    stops = np.cumsum((slots + 63) // 64 * BYTES_PER_WORD).tolist()
    return dict(zip(band.ages, zip([0, *stops], stops, strict=False), strict=True))


def stored_boards(
    shape: Shape, index: LayerIndex, codes: NDArray[np.uint64]
) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.bool_]]:
    """The boards at whose slots the actions of packed boards lie: (boards, slots, is transposed).

    They are the same but for square boards: of a board and its transpose, the one with the lesser
    slot has the action of both.
    """
    boards, slots = np.empty_like(codes), np.empty_like(codes)
    is_turned = np.empty(len(codes), dtype=bool)
    tables = build_tables(shape)
    lesser_into(tables, index, *transposition(shape), codes, boards, slots, is_turned)
    return boards, slots, is_turned


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


def map_members(
    shape: Shape,
    index: LayerIndex,
    ranks: NDArray[np.uint64],
    workers: Workers,
    task: Callable[[NDArray[np.uint64], slice], Any],
) -> list[Any]:
    """Results of a task over the chunks of a ranked bitmap, in order.

    task : takes packed boards of members, and their positions among all
    """
    bitmap = ranks[::2].copy()
    chunks = member_chunks(ranks)

    def run(number: int, _: int) -> Any:
        start, stop, place = chunks[number]
        return task(member_boards(shape, index, bitmap, start, stop), place)

    return workers.run_pieces(len(chunks), 1, run)


@dataclass(frozen=True)
class _Layer:
    """A layer of a band: its index, members as a ranked bitmap, masks, and number of states."""

    index: LayerIndex
    members: NDArray[np.uint64]
    masks: NDArray[np.uint8]
    num_states: int


class PolicyBandBuilder:
    """Collects the actions of a band's layers, in any order of ages, and stores them together.

    num_members : of each age, so that as many boards as wanted are there to learn from
    """

    def __init__(self, shape: Shape, band: Band, num_members: dict[int, int]) -> None:
        self._shape, self._band = shape, band
        self._share = min(1.0, LEARNING_BOARDS / max(1, sum(num_members.values())))
        self._layers: dict[int, _Layer] = {}
        self._samples: list[_Sample] = []
        self._ranges = code_ranges(shape, band)

    @property
    def num_bytes(self) -> int:
        """Size before it is compressed."""
        return self._ranges[self._band.last][1] + NUM_WEIGHTS

    def add(
        self,
        index: LayerIndex,
        members: NDArray[np.uint64],
        masks: NDArray[np.uint8],
        workers: Workers,
    ) -> None:
        """Add a layer: the ranked bitmap of its members, and the actions that each may have.

        Masks become 0 where the action of the transpose is stored.
        """

        def sample(codes: NDArray[np.uint64], place: slice) -> tuple[_Sample, int]:
            is_turned = stored_boards(self._shape, index, codes)[2]
            masks[place][is_turned] = 0
            # A choice that depends on the board alone, not on how the work is cut.
            chosen = (codes * HASH >> np.uint64(40)) < np.uint64(self._share * 2.0**24)
            chosen &= masks[place] > 0
            return (codes[chosen], masks[place][chosen]), int(is_turned.sum())

        found = map_members(self._shape, index, members, workers, sample)
        self._samples += [of_chunk for of_chunk, _ in found]
        num_states = len(masks) - sum(num_turned for _, num_turned in found)
        self._layers[int(index.age)] = _Layer(index, members, masks, num_states)

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
                "age": age, "codes": [start, stop], "states": layer.num_states,
                "decided": decided, "predicted": predicted,
            })  # fmt: skip
        arrays = {
            CODES: ArrayToWrite("codes", codes), WEIGHTS: ArrayToWrite("codes", weights)
        }  # fmt: skip
        return arrays, {"layers": layers, "parents": {}}

    def commit(self, store: Store, kind: str, workers: Workers) -> None:
        """Write the band."""
        arrays, record = self.encode(workers)
        store.write_band(kind, self._band, arrays, record)

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
