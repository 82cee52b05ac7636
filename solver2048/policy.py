"""A policy table: one action for every state of an objective, two bits a slot, no values, no sets.

The action of a board is at its slot, so a look-up needs the table alone. Of a board that no game
can come to (or, in a table of optimal play's own states, that optimal play cannot come to) the
table says nothing: what is read there is a legal action of no meaning, or `NOT_STORED`.
"""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

from .bands import bands_of
from .errors import NotSolved, SolutionDamaged
from .kernels.policy import NO_ACTION, NOT_STORED, NUM_WEIGHTS, actions_into
from .layer import Band
from .layer_index import LayerIndex, build_layer_index
from .objective import Objective
from .policy_bands import CODES, WEIGHTS, code_ranges, stored_boards
from .records import OBJECTIVE
from .shape import Shape
from .store import Store
from .stored_array import StoredArray
from .tables import build_tables

OPEN_INDICES = 256
OPEN_WEIGHTS = 16

__all__ = ["NOT_STORED", "NO_ACTION", "PolicyTable"]


class PolicyTable:
    """The stored policy of an objective, by age; safe for several threads.

    reach : "all" states, or those that "optimal" play meets
    """

    def __init__(self, store: Store, shape: Shape, objective: Objective) -> None:
        self.store, self.shape, self.objective = store, shape, objective
        self.kind = objective.policy_kind
        record = store.record(self.kind, OBJECTIVE)
        if record is None:
            raise NotSolved(f"{store.location} has no policy for the objective {objective.name}")
        self.reach = str(record.get("reach"))
        self.result = store.result(self.kind)
        self._band_of = {age: band for band in bands_of(shape) for age in band.ages}
        self._index = functools.lru_cache(OPEN_INDICES)(functools.partial(build_layer_index, shape))
        self._weights = functools.lru_cache(OPEN_WEIGHTS)(self._read_weights)
        self._codes = functools.cache(self._open_codes)
        self._ranges = functools.cache(functools.partial(code_ranges, shape))

    def actions(self, age: int, boards: NDArray[np.uint64]) -> NDArray[np.uint8]:
        """The action of every packed board of an age, in any orientation: up, down, left, right.

        Those of the packed board; `NO_ACTION` where the game is over, `NOT_STORED` where none can
        be stored. Raises NotSolved, SolutionDamaged.
        """
        tables, index = build_tables(self.shape), self._index(age)
        band = self._band_of[age]
        boards, slots, is_turned = stored_boards(self.shape, index, boards)
        places = (slots >> np.uint64(2)).astype(np.int64) + self._ranges(band)[age][0]
        stored = self._codes(band)
        place = int(places[0]) if len(places) == 1 else 0
        # One board is worth its own way: sorting by chunks takes as long as all the rest.
        codes = stored[place : place + 1] if len(places) == 1 else stored.take(places)
        actions = np.empty(len(boards), dtype=np.uint8)
        actions_into(
            tables, index, self._weights(band), boards, slots, is_turned, codes,
            np.empty(4, dtype=np.int64), actions,
        )  # fmt: skip
        return actions

    def index(self, age: int) -> LayerIndex:
        """The index of an age, by whose slots its actions lie."""
        return self._index(age)

    def layers(self) -> list[dict[str, int]]:
        """What the manifests say of every age, upward."""
        manifests = [self.store.manifest(self.kind, band) for band in bands_of(self.shape)]
        return [layer for manifest in manifests if manifest for layer in manifest["layers"]]

    def num_bytes(self) -> int:
        """Bytes of the arrays on disk."""
        return sum(
            sum(self.store.stored_bytes(self.kind, band)[name] for name in (CODES, WEIGHTS))
            for band in bands_of(self.shape)
        )

    def _open_codes(self, band: Band) -> StoredArray:
        if self.store.manifest(self.kind, band) is None:
            raise NotSolved(
                f"{self.store.location}: ages {band.first} to {band.last} have no actions (yet)"
            )
        return self.store.open_array(self.kind, band, CODES)

    def _read_weights(self, band: Band) -> NDArray[np.int8]:
        self._codes(band)
        weights = self.store.open_array(self.kind, band, WEIGHTS).read()
        if len(weights) != NUM_WEIGHTS:
            raise SolutionDamaged(f"{self.kind}/{band.name}: {len(weights)} weights")
        return np.ascontiguousarray(weights)
