"""The chunk table of a stored array: where each chunk lies in its shard, and its crc32c.

A stored chunk ends with the crc32c of what is before it (Zarr's codec of that name). A shard ends
with its index: (offset, length) of every chunk, uint64, and a crc32c; an array with one chunk a
shard has no index, and its shards are the chunks. On disk a table is its rows, 16 bytes each,
little-endian; the tables of a band's arrays lie one after the other, by name. The last shard of an
array may have room for chunks after the end: their rows, and index entries, are those of no chunk.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

NAME = "chunks"
ROW = np.dtype([("offset", "<u8"), ("length", "<u4"), ("crc32c", "<u4")])
CHECKSUM_BYTES = 4
INDEX_ENTRY_BYTES = 16
NO_OFFSET = 2**64 - 1
"""Offset, and length in the index, of no chunk; in the table its length and crc32c are 0."""


@dataclass(frozen=True)
class ChunkTable:
    """The table of one array.

    rows : ROW[shards * per_shard], chunk by chunk
    """

    rows: NDArray[Any]
    per_shard: int

    def place(self, chunk: int) -> tuple[int, int, int]:
        """(shard, start, stop): the bytes of a chunk. Raises ValueError if there is none."""
        if chunk >= len(self.rows) or self.rows[chunk]["offset"] == NO_OFFSET:
            raise ValueError(f"chunk {chunk} is not in the chunk table")
        start = int(self.rows[chunk]["offset"])
        return chunk // self.per_shard, start, start + int(self.rows[chunk]["length"])

    def check(self, chunk: int, stored: bytes) -> None:
        """Raise ValueError unless a chunk as stored is the table's, by length and crc32c."""
        row = self.rows[chunk]
        if len(stored) != row["length"]:
            raise ValueError(f"{len(stored)} bytes, expected {row['length']}")
        found = int.from_bytes(stored[-CHECKSUM_BYTES:], "little")
        if found != int(row["crc32c"]):
            raise ValueError(f"crc32c {found:#010x}, expected {row['crc32c']:#010x}")

    @property
    def index_bytes(self) -> int:
        """Bytes of the index at the end of a shard."""
        if self.per_shard == 1:
            return 0
        return INDEX_ENTRY_BYTES * self.per_shard + CHECKSUM_BYTES


def _parse_index(data: bytes) -> NDArray[np.uint64]:
    return np.frombuffer(data[:-CHECKSUM_BYTES], dtype="<u8").reshape(-1, 2)


def tabulate_array(directory: Path, num_chunks: int, per_shard: int) -> ChunkTable:
    """The table of an array as its shards, ``c/0``, ``c/1``, ..., are on the disk."""
    num_shards = -(-num_chunks // per_shard)
    table = ChunkTable(np.zeros(num_shards * per_shard, dtype=ROW), per_shard)
    for shard in range(num_shards):
        rows = table.rows[shard * per_shard : (shard + 1) * per_shard]
        with open(directory / "c" / str(shard), "rb") as file:
            size = file.seek(0, os.SEEK_END)
            if table.index_bytes:
                file.seek(-table.index_bytes, os.SEEK_END)
                index = _parse_index(file.read())
                rows["offset"] = index[:, 0]
                rows["length"] = np.where(index[:, 0] == NO_OFFSET, 0, index[:, 1])
            else:
                rows["length"] = size
            for row in rows[: num_chunks - shard * per_shard]:
                file.seek(int(row["offset"]) + int(row["length"]) - CHECKSUM_BYTES)
                row["crc32c"] = int.from_bytes(file.read(CHECKSUM_BYTES), "little")
    return table


def dump_tables(tables: dict[str, ChunkTable]) -> tuple[bytes, dict[str, dict[str, Any]]]:
    """All tables of a band as stored, and the entry of its manifest that says how they lie."""
    places = {}
    start = 0
    for name, table in sorted(tables.items()):
        places[name] = {"rows": [start, start + len(table.rows)], "per_shard": table.per_shard}
        start += len(table.rows)
    return b"".join(table.rows.tobytes() for _, table in sorted(tables.items())), places


def parse_table(stored: bytes, place: dict[str, Any]) -> ChunkTable:
    """The table of an array, from all tables of its band as stored."""
    start, stop = place["rows"]
    return ChunkTable(np.frombuffer(stored, dtype=ROW)[start:stop], int(place["per_shard"]))
