"""A band of sets as it is made: the sets of its layers, one after the other in one array."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .forward import Layer
from .ids import Ids
from .layer import Band, LayerCounts
from .records import SETS
from .store import Store
from .stored_array import ArrayToWrite

NAMES = ("states", "afterstates")


class BandBuilder:
    """Collects the sets of a band's layers, upward, for `Store.write_band`."""

    def __init__(self, ids: Ids) -> None:
        self._ids = ids
        self._words: dict[str, list[NDArray[np.uint64]]] = {name: [] for name in NAMES}
        self._num_words = dict.fromkeys(NAMES, 0)
        self._records: list[dict[str, Any]] = []

    def add(self, layer: Layer) -> None:
        record: dict[str, Any] = dict(vars(layer.counts))
        for name, bitmap in zip(NAMES, (layer.states, layer.afterstates), strict=True):
            words = self._ids.encode(layer.index, bitmap)
            start = self._num_words[name]
            record[f"{name}_words"] = [start, start + len(words)]
            self._num_words[name] += len(words)
            self._words[name].append(words)
        self._records.append(record)

    @property
    def counts(self) -> list[LayerCounts]:
        """Counts of the layers so far."""
        return [LayerCounts.from_record(record) for record in self._records]

    @property
    def num_bytes(self) -> int:
        """Size of the sets before they are compressed."""
        return 8 * sum(self._num_words.values())

    def commit(self, store: Store, band: Band, is_complete: bool, parents: dict[str, str]) -> None:
        """Write the band; `is_complete` unless it was cut short of its last age."""
        arrays = {name: ArrayToWrite("words", _joined(self._words[name])) for name in NAMES}
        record = {"is_complete": is_complete, "layers": self._records, "parents": parents}
        store.write_band(SETS, band, arrays, record)


def _joined(pieces: list[NDArray[np.uint64]]) -> NDArray[np.uint64]:
    # A band of one layer, the largest there are, is not copied.
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
