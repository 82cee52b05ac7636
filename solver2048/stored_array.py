"""Stored arrays read by chunks, through a cache of those last used."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .errors import SolutionDamaged

Items = NDArray[Any]


class ArrayToWrite(NamedTuple):
    """A one-dimensional array as `Store.write_band` takes it.

    role : "words", "values" or "codes", which decides chunks and codecs
    missing : what no item equals, None if there is nothing of the kind
    """

    role: str
    items: Items
    missing: float | int | None = None


class ChunkCache:
    """The chunks last used, up to a number of bytes; safe for several threads."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._num_bytes = 0
        self._chunks: OrderedDict[tuple[str, int], Items] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: tuple[str, int]) -> Items | None:
        with self._lock:
            chunk = self._chunks.get(key)
            if chunk is not None:
                self._chunks.move_to_end(key)
            return chunk

    def clear(self) -> None:
        with self._lock:
            self._chunks.clear()
            self._num_bytes = 0

    def put(self, key: tuple[str, int], chunk: Items) -> None:
        with self._lock:
            if key not in self._chunks:
                self._chunks[key] = chunk
                self._num_bytes += chunk.nbytes
            while self._num_bytes > self._max_bytes and len(self._chunks) > 1:
                self._num_bytes -= self._chunks.popitem(last=False)[1].nbytes


class StoredArray:
    """A one-dimensional stored array, read by chunks through a cache."""

    def __init__(self, array: Any, name: str, missing: float | int | None, cache: ChunkCache):
        self._array = array
        self._name = name
        self._missing = missing
        self._cache = cache
        self._chunk_items = array.chunks[0]

    def __len__(self) -> int:
        return int(self._array.shape[0])

    def __getitem__(self, index: slice) -> Items:
        start, stop, _ = index.indices(len(self))
        if start >= stop:
            return np.empty(0, dtype=self._array.dtype)
        size = self._chunk_items
        numbers = range(start // size, (stop - 1) // size + 1)
        pieces = [
            self._chunk(i)[max(start - i * size, 0) : min(stop - i * size, size)] for i in numbers
        ]
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)

    def take(self, positions: NDArray[np.int64]) -> Items:
        """The items at the given positions."""
        out = np.empty(len(positions), dtype=self._array.dtype)
        numbers = positions // self._chunk_items
        order = np.argsort(numbers, kind="stable")
        for group in np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1):
            if len(group):
                chunk = self._chunk(int(numbers[group[0]]))
                out[group] = chunk[positions[group] % self._chunk_items]
        return out

    @property
    def num_chunks(self) -> int:
        return -(-len(self) // int(self._chunk_items))

    def read_chunk(self, number: int) -> Items:
        """A chunk, past the cache. Raises SolutionDamaged."""
        where = f", chunk {number}"
        start = number * self._chunk_items
        stop = min(start + self._chunk_items, len(self))
        return self._checked(self._read(start, stop, where), where)

    def read(self) -> Items:
        """All of it, past the cache."""
        return self._checked(self._read(0, len(self), ""), "")

    def _chunk(self, number: int) -> Items:
        key = (self._name, number)
        chunk = self._cache.get(key)
        if chunk is None:
            chunk = self.read_chunk(number)
            self._cache.put(key, chunk)
        return chunk

    def _read(self, start: int, stop: int, where: str) -> Items:
        try:
            return np.asarray(self._array[start:stop])
        except MemoryError:
            raise
        # Whatever a codec makes of damaged bytes, it is one thing to the user.
        except Exception as error:
            # A chunk that is not the table's is named already.
            what = f", {error}" if str(error).startswith("chunk") else f"{where}: {error}"
            raise SolutionDamaged(f"{self._name}{what}; no value returned") from error

    def _checked(self, items: Items, where: str) -> Items:
        missing = self._missing
        if missing is not None and bool(
            np.isnan(items).any() if missing != missing else (items == missing).any()
        ):
            raise SolutionDamaged(f"{self._name}{where}: values are missing; no value returned")
        return items
