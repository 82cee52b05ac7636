"""How a stored array is chunked and encoded, by its Zarr metadata; chunks decoded one by one.

Zarr writes the arrays, and any reader of Zarr reads them. Here a chunk is read as what the chunk
table makes it, one range of bytes: Zarr would ask for the index of its shard first, would take a
chunk that is not there for fill values, and takes milliseconds for each.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import google_crc32c
import numcodecs
import numpy as np
from numpy.typing import NDArray

CHECKSUM_BYTES = 4
_COMPRESSORS = {"zstd": numcodecs.Zstd(), "blosc": numcodecs.Blosc()}


@dataclass(frozen=True)
class ArrayForm:
    """A one-dimensional array of `length` items in chunks of `chunk_items`, the last one padded."""

    dtype: np.dtype[Any]
    length: int
    chunk_items: int
    compressor: str

    def decode(self, stored: bytes) -> NDArray[Any]:
        """The items of a chunk as stored, the last one's padding included.

        Raises ValueError if its crc32c is not that of its bytes.
        """
        found = google_crc32c.value(stored[:-CHECKSUM_BYTES])
        expected = int.from_bytes(stored[-CHECKSUM_BYTES:], "little")
        if found != expected:
            raise ValueError(f"its bytes have crc32c {found:#010x}, expected {expected:#010x}")
        # Filled, so that it can be written to: kernels are compiled for such arrays.
        items = np.empty(self.chunk_items, dtype=self.dtype)
        _COMPRESSORS[self.compressor].decode(stored[:-CHECKSUM_BYTES], out=items)
        return items


def parse_form(metadata: bytes) -> ArrayForm:
    """The form of an array by its `zarr.json`. Raises ValueError, KeyError for any other kind."""
    record = json.loads(metadata)
    grid = record["chunk_grid"]["configuration"]
    codecs = record["codecs"]
    if codecs[0]["name"] == "sharding_indexed":
        grid = codecs[0]["configuration"]
        codecs = grid["codecs"]
    names = [codec["name"] for codec in codecs]
    (length,), (chunk_items,) = record["shape"], grid["chunk_shape"]
    if len(names) != 3 or (names[0], names[2]) != ("bytes", "crc32c"):
        raise ValueError(f"chunks are encoded by {', '.join(names)}")
    dtype = np.dtype(record["data_type"]).newbyteorder("<")
    if names[1] not in _COMPRESSORS:
        raise ValueError(f"chunks are compressed by {names[1]}")
    return ArrayForm(dtype, int(length), int(chunk_items), names[1])
