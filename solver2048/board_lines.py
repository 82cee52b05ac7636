"""Boards read from a stream, one a line, a batch of lines at a time.

A line is a board in any notation of `board.parse_board`, or a JSON object with an entry ``board``;
or, if the first line is a header of CSV with a column ``board``, a row of that table.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .board import GivenBoard, parse_board
from .errors import BoardError
from .kernels.board_text import EMPTY, UNCLEAR, read_lines_into
from .shape import Shape

BATCH_BYTES = 1 << 21


class LineBatch(NamedTuple):
    """The lines of a batch that are not empty.

    numbers : int64[n], from 1
    lines : the board of each, for `line_text`
    tiles : int64[n, rows, columns] in the orientation of the shape, tile numbers not checked;
        all -1 where the line is malformed
    given : by place in the batch, boards given in the other orientation
    num_bytes : what was read
    """

    numbers: NDArray[np.int64]
    lines: list[bytes]
    tiles: NDArray[np.int64]
    given: dict[int, GivenBoard]
    num_bytes: int


class BoardLines:
    """The boards of a stream, for one iteration."""

    def __init__(self, stream: BinaryIO, shape: Shape) -> None:
        self._stream = stream
        self._shape = shape
        self._column: int | None = None

    def __iter__(self) -> Iterator[LineBatch]:
        done = 0
        while lines := self._stream.readlines(BATCH_BYTES):
            num_bytes = sum(map(len, lines))
            first = done
            done += len(lines)
            if first == 0:
                lines[0] = lines[0].removeprefix(b"\xef\xbb\xbf")
                self._column = _board_column(lines[0])
                if self._column is not None:
                    lines[0] = b"\n"
            if not lines[-1].endswith(b"\n"):
                lines[-1] += b"\n"
            if self._column is not None:
                lines = [_field(line, self._column) for line in lines]
            lines = [_entry(line) if line.startswith(b"{") else line for line in lines]
            yield self._batch(first + 1, lines, num_bytes)

    def _batch(self, first: int, lines: list[bytes], num_bytes: int) -> LineBatch:
        rows, columns = self._shape.num_rows, self._shape.num_columns
        tiles = np.empty((len(lines), rows * columns), dtype=np.int64)
        kinds = np.empty(len(lines), dtype=np.uint8)
        text = np.frombuffer(b"".join(lines), dtype=np.uint8)
        read_lines_into(text, rows, columns, tiles, kinds)
        filled = np.flatnonzero(kinds != EMPTY)
        batch = LineBatch(
            filled + first,
            [lines[i] for i in filled.tolist()],
            tiles[filled].reshape(-1, rows, columns),
            {},
            num_bytes,
        )
        for i in np.flatnonzero(kinds[filled] == UNCLEAR).tolist():
            self._read_slowly(batch, i)
        return batch

    def _read_slowly(self, batch: LineBatch, i: int) -> None:
        batch.tiles[i] = -1
        try:
            given = parse_board(line_text(batch.lines[i]), self._shape)
        except BoardError:
            return
        batch.tiles[i] = given.oriented
        if given.is_transposed:
            batch.given[i] = given


def line_text(line: bytes) -> str:
    """A line as `Solution.query` takes it."""
    return line.decode("utf-8", errors="replace").strip("\ufeff \t\r\n")


def _entry(line: bytes) -> bytes:
    """The entry ``board`` of a JSON object as a line; what has none stays, to be named."""
    try:
        board = json.loads(line).get("board")
    except (ValueError, RecursionError):
        return line
    if isinstance(board, list):
        return json.dumps(board).encode() + b"\n"
    return board.replace("\n", "/").encode() + b"\n" if isinstance(board, str) else line


def _board_column(line: bytes) -> int | None:
    """Number of the column ``board`` if a line is a header of CSV."""
    if b"board" not in line:
        return None
    try:
        names = next(csv.reader([line_text(line)]), [])
    except csv.Error:
        return None
    return names.index("board") if "board" in names else None


def _field(line: bytes, column: int) -> bytes:
    """A field of a line of CSV as a line; what has no such field stays, to be named."""
    try:
        fields = next(csv.reader([line.decode("utf-8", errors="replace")], strict=True), [])
    except csv.Error:
        return line
    if len(fields) <= column:
        return line
    return fields[column].encode() + b"\n"
