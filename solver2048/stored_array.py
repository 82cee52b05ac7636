"""Stored arrays read by chunks, through a cache of those last used."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .array_form import ArrayForm
from .cache import Cache
from .chunk_table import ChunkTable
from .errors import SolutionDamaged

Items = NDArray[Any]
ChunkCache = Cache[tuple[str, int], Items]
ReadShard = Callable[[int, list[tuple[int, int]]], list[bytes]]
"""The bytes of some ranges of the shard of a number."""

BATCH_CHUNKS = 64
"""Taken from at once, so that items of a whole layer need not be in memory."""


class ArrayToWrite(NamedTuple):
    """A one-dimensional array as `Store.write_band` takes it.

    role : "words", "values" or "codes", which decides chunks and codecs
    missing : what no item equals, None if there is nothing of the kind
    """

    role: str
    items: Items
    missing: float | int | None = None


class StoredArray:
    """A one-dimensional stored array; every chunk read is compared with the chunk table.

    Chunks that lie side by side are read at once. Raises SolutionDamaged. Safe for several threads.
    """

    def __init__(self, form: ArrayForm, table: ChunkTable, read_shard: ReadShard, name: str,
                 missing: float | int | None, cache: ChunkCache) -> None:  # fmt: skip
        self._form, self._table, self._read_shard = form, table, read_shard
        self._name = name
        self._missing = missing
        self._cache = cache

    def __len__(self) -> int:
        return self._form.length

    @property
    def nbytes(self) -> int:
        """Bytes of the chunk table, which is what an open array takes."""
        return int(self._table.rows.nbytes)

    def __getitem__(self, index: slice) -> Items:
        start, stop, _ = index.indices(len(self))
        if start >= stop:
            return np.empty(0, dtype=self._form.dtype)
        size = self._form.chunk_items
        numbers = range(start // size, (stop - 1) // size + 1)
        pieces = [
            chunk[max(start - i * size, 0) : min(stop - i * size, size)]
            for i, chunk in self._chunks(numbers).items()
        ]
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)

    def take(self, positions: NDArray[np.int64]) -> Items:
        """The items at the given positions."""
        out = np.empty(len(positions), dtype=self._form.dtype)
        if not len(positions):
            return out
        numbers = positions // self._form.chunk_items
        order = np.argsort(numbers, kind="stable")
        groups = np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1)
        for begin in range(0, len(groups), BATCH_CHUNKS):
            batch = groups[begin : begin + BATCH_CHUNKS]
            chunks = self._chunks(int(numbers[group[0]]) for group in batch)
            for group, chunk in zip(batch, chunks.values(), strict=True):
                out[group] = chunk[positions[group] % self._form.chunk_items]
        return out

    @property
    def num_chunks(self) -> int:
        return -(-len(self) // self._form.chunk_items)

    def read_chunk(self, number: int) -> Items:
        """A chunk, past the cache."""
        return next(self._read([number]))[1]

    def read(self) -> Items:
        """All of it, past the cache."""
        out = np.empty(len(self), dtype=self._form.dtype)
        for number, chunk in self._read(range(self.num_chunks)):
            start = number * self._form.chunk_items
            out[start : start + len(chunk)] = chunk
        return out

    def _chunks(self, numbers: Iterable[int]) -> dict[int, Items]:
        """Chunks of rising numbers."""
        found = {number: self._cache.get((self._name, number)) for number in numbers}
        for number, chunk in self._read([n for n, chunk in found.items() if chunk is None]):
            self._cache.put((self._name, number), chunk)
            found[number] = chunk
        return found  # type: ignore[return-value]

    def _read(self, numbers: Iterable[int]) -> Iterator[tuple[int, Items]]:
        """Chunks of rising numbers, past the cache; those of a shard are asked for together."""
        try:
            places = [(number, *self._table.place(number)) for number in numbers]
        except ValueError as error:
            raise SolutionDamaged(f"{self._name}, {error}; no value returned") from None
        for shard, of_shard in itertools.groupby(places, key=lambda place: place[1]):
            rows = [(number, start, stop) for number, _, start, stop in of_shard]
            ranges = _joined([(start, stop) for _, start, stop in rows])
            pieces = dict(zip(ranges, self._read_shard(shard, ranges), strict=True))
            for number, start, stop in rows:
                (begin, _), piece = next(p for p in pieces.items() if p[0][0] <= start < p[0][1])
                yield number, self._decoded(number, piece[start - begin : stop - begin])

    def _decoded(self, number: int, stored: bytes) -> Items:
        """The items of a chunk, which is the table's."""
        try:
            self._table.check(number, stored)
            items = self._form.decode(stored)
        except MemoryError:
            raise
        # Whatever a codec makes of damaged bytes, it is one thing to the user.
        except Exception as error:
            raise SolutionDamaged(
                f"{self._name}, chunk {number}: {error}; no value returned"
            ) from error
        items = items[: len(self) - number * self._form.chunk_items]
        missing = self._missing
        if missing is not None and bool(
            np.isnan(items).any() if missing != missing else (items == missing).any()
        ):
            raise SolutionDamaged(
                f"{self._name}, chunk {number}: values are missing; no value returned"
            )
        return items


def _joined(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Rising ranges, those that touch joined."""
    joined = ranges[:1]
    for start, stop in ranges[1:]:
        if start == joined[-1][1]:
            joined[-1] = (joined[-1][0], stop)
        else:
            joined.append((start, stop))
    return joined
