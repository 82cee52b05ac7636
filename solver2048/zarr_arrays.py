"""One-dimensional arrays written by Zarr, with a crc32c in every chunk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import zarr
from zarr.codecs import BloscCodec, Crc32cCodec, ZstdCodec

from .chunk_table import ChunkTable, tabulate_array
from .stored_array import ArrayToWrite

# A query reads a chunk of words or two of either set, and up to four of values, far apart. Measured
# on values of 3x3: chunks of 2^14 take 0.05 % more than those of 2^16, and 4 to 10 ns a value.
CHUNK_ITEMS = {"words": 1 << 15, "values": 1 << 14, "codes": 1 << 17}
SHARD_ITEMS = {"words": 1 << 21, "values": 1 << 24, "codes": 1 << 24}


def write_group(directory: Path, arrays: dict[str, ArrayToWrite]) -> dict[str, ChunkTable]:
    """Write a Zarr v3 group of arrays; returns their chunk tables."""
    group = zarr.create_group(str(directory))
    tables = {}
    for name, (role, items, missing) in arrays.items():
        # Zstd alone serves words of bitmaps; numbers of a kind gain from shuffled bits. Measured on
        # values of 3x3: level 1 takes 23 ns and 25.3 bits a value, level 3 62 ns and 24.9 bits.
        # Codes of actions are all but zeros: level 9 saves 5 % of level 3, at a third of its speed.
        compressor: Any = ZstdCodec(level=9 if role == "codes" else 3)
        if role == "values":
            compressor = BloscCodec(
                typesize=items.itemsize, cname="zstd", clevel=1, shuffle="bitshuffle"
            )
        chunk = CHUNK_ITEMS[role]
        whole_chunks = max(1, -(-len(items) // chunk))
        shard = min(SHARD_ITEMS[role], whole_chunks * chunk)
        array = group.create_array(
            name,
            shape=items.shape,
            dtype=items.dtype,
            chunks=(chunk,),
            shards=(shard,) if shard > chunk else None,
            compressors=[compressor, Crc32cCodec()],
            fill_value=0 if missing is None else missing,
            # A chunk equal to the fill value is written all the same: absent means lost.
            config={"write_empty_chunks": True},
        )
        if len(items):
            array[:] = items
        tables[name] = tabulate_array(directory / name, -(-len(items) // chunk), shard // chunk)
    return tables
