"""A set in a Zarr v3 group: for those who keep arrays in Zarr already (needs `zarr`).

The group's attributes are ``{"format": "elias_fano set", "version": 1}``; its array `words` holds
the serialised set, in chunks of 2^15 words, each through Zstd with a crc32c, 64 of them a shard.
A query on a partitioned set reads the chunks of the partitions that it needs.
"""

from __future__ import annotations

import functools
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .interface import DamagedSet, SortedSet, Words
from .kinds import Kind, built_from, open_words
from .partitioned import PartitionedEliasFano
from .spool import regrouped

FORMAT = {"format": "elias_fano set", "version": 1}
CHUNK_WORDS = 1 << 15
SHARD_WORDS = 1 << 21
CACHED_CHUNKS = 64


def write_group(
    path: str | os.PathLike[str],
    chunks: Iterable[ArrayLike],
    universe: int,
    *,
    kind: Kind = PartitionedEliasFano,
    count: int | None = None,
    **options: float,
) -> None:
    """Write the set of sorted chunks, each above the end of the last, in bounded memory.

    A new directory; arguments and errors as of `write_file`, FileExistsError too.
    """
    path = Path(path)
    if path.exists():
        raise FileExistsError(f"{path} is there already")
    with (
        tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as aside,
        built_from(chunks, universe, kind, count, path.parent, options) as (length, pieces),
    ):
        new = Path(aside) / "new"
        array = _create(new, length)
        at = 0
        for block in regrouped(pieces, min(SHARD_WORDS, length)):
            array[at : at + len(block)] = block
            at += len(block)
        os.rename(new, path)


def _create(path: Path, length: int) -> Any:
    import zarr
    from zarr.codecs import Crc32cCodec, ZstdCodec

    chunk = min(CHUNK_WORDS, length)
    shard = min(SHARD_WORDS, -(-length // chunk) * chunk)
    group = zarr.create_group(str(path), attributes=FORMAT)
    return group.create_array(
        "words",
        shape=(length,),
        dtype=np.uint64,
        chunks=(chunk,),
        shards=(shard,) if shard > chunk else None,
        compressors=[ZstdCodec(level=3), Crc32cCodec()],
        fill_value=0,
        # A chunk of zeros is written all the same: absent means lost.
        config={"write_empty_chunks": True},
    )


def open_group(store: Any) -> SortedSet:
    """The set in a group, given by its path or as anything `zarr.open_group` takes.

    Raises DamagedSet.
    """
    import zarr

    try:
        group = zarr.open_group(store, mode="r")
        attributes = group.attrs.asdict()
        array: Any = group["words"]
    except Exception as error:
        raise DamagedSet(f"{store}: no group of a set: {error}") from error
    if attributes.get("format") != FORMAT["format"]:
        raise DamagedSet(f"{store}: no group of a set")
    if getattr(array, "ndim", 0) != 1 or array.dtype != np.uint64:
        raise DamagedSet(f"{store}: `words` is no array of 64-bit words")
    if attributes.get("version") != FORMAT["version"]:
        raise DamagedSet(
            f"{store}: group of version {attributes.get('version')}; "
            f"this program reads {FORMAT['version']}"
        )
    # Chunks are counted by shards: a last shard that is not full counts as one that is.
    if array.nchunks_initialized < array.nchunks:
        raise DamagedSet(
            f"{store}: {array.nchunks_initialized} of {array.nchunks} chunks are there"
        )
    return open_words(_Chunks(array, str(store)))


class _Chunks:
    """A stored array as a word source, with the chunks last used in memory."""

    def __init__(self, array: Any, name: str) -> None:
        self._array = array
        self._name = name
        self._size = int(array.chunks[0])
        self._chunk = functools.lru_cache(CACHED_CHUNKS)(self._read)

    def __len__(self) -> int:
        return int(self._array.shape[0])

    def __getitem__(self, index: slice) -> Words:
        start, stop, _ = index.indices(len(self))
        if start >= stop:
            return np.empty(0, dtype=np.uint64)
        size = self._size
        pieces = [
            self._chunk(i)[max(start - i * size, 0) : min(stop - i * size, size)]
            for i in range(start // size, (stop - 1) // size + 1)
        ]
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)

    def _read(self, number: int) -> Words:
        start = number * self._size
        try:
            return np.asarray(self._array[start : start + self._size])
        except Exception as error:
            raise DamagedSet(f"{self._name}, chunk {number}: {error}") from error
