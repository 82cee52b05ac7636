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
    """The table of one array; its checks raise ValueError, naming the chunk.

    rows : ROW[shards * per_shard], chunk by chunk
    """

    rows: NDArray[Any]
    per_shard: int

    def check_shard(self, shard: int, data: NDArray[np.uint8]) -> None:
        """Compare a whole shard, uint8[bytes], with the table."""
        rows = self._shard_rows(shard)
        index_bytes = self.index_bytes
        num_bytes = int(rows["length"].sum()) + index_bytes
        if len(data) != num_bytes:
            raise ValueError(f"{len(data)} bytes, expected {num_bytes}")
        if index_bytes:
            self.check_index(shard, data[-index_bytes:])
        for i in np.flatnonzero(rows["offset"] != NO_OFFSET):
            end = int(rows[i]["offset"]) + int(rows[i]["length"])
            _compare(shard * self.per_shard + int(i), rows[i], data[end - CHECKSUM_BYTES : end])

    def check_index(self, shard: int, data: NDArray[np.uint8]) -> None:
        """Compare the index at a shard's end, uint8[bytes], with the table."""
        if len(data) != self.index_bytes:
            raise ValueError(f"the index of shard {shard} has {len(data)} bytes")
        found = _parse_index(data)
        rows = self._shard_rows(shard)
        is_chunk = rows["offset"] != NO_OFFSET
        lengths = np.where(is_chunk, rows["length"].astype(np.uint64), np.uint64(NO_OFFSET))
        differs = (found[:, 0] != rows["offset"]) | (found[:, 1] != lengths)
        if differs.any():
            chunk = shard * self.per_shard + int(np.flatnonzero(differs)[0])
            raise ValueError(f"chunk {chunk} is not where the chunk table has it")

    def check_chunk(self, shard: int, start: int, data: NDArray[np.uint8]) -> None:
        """Compare a chunk, the uint8[bytes] from `start` in its shard, with the table."""
        rows = self._shard_rows(shard)
        found = np.flatnonzero((rows["offset"] == start) & (rows["length"] == len(data)))
        if not len(found):
            raise ValueError(f"no chunk of {len(data)} bytes lies at {start} of shard {shard}")
        i = int(found[0])
        _compare(shard * self.per_shard + i, rows[i], data[-CHECKSUM_BYTES:])

    @property
    def index_bytes(self) -> int:
        if self.per_shard == 1:
            return 0
        return INDEX_ENTRY_BYTES * self.per_shard + CHECKSUM_BYTES

    def _shard_rows(self, shard: int) -> NDArray[Any]:
        rows = self.rows[shard * self.per_shard : (shard + 1) * self.per_shard]
        if len(rows) != self.per_shard:
            raise ValueError(f"no shard {shard} is in the chunk table")
        return rows


def _compare(chunk: int, row: Any, stored: NDArray[np.uint8]) -> None:
    checksum = int.from_bytes(stored.tobytes(), "little")
    if checksum != int(row["crc32c"]):
        raise ValueError(f"chunk {chunk}: crc32c {checksum:#010x}, expected {row['crc32c']:#010x}")


def _parse_index(data: NDArray[np.uint8]) -> NDArray[np.uint64]:
    entries = np.frombuffer(data[:-CHECKSUM_BYTES].tobytes(), dtype="<u8")
    return entries.reshape(-1, 2)


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
                index = _parse_index(np.frombuffer(file.read(), dtype=np.uint8))
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
