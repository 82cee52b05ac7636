"""Answers written to a file, a row for every board: as CSV, JSON lines or Parquet."""

from __future__ import annotations

import csv
import io
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from .board import tile_exponents
from .board_lines import line_text
from .bulk import AnsweredBatch
from .shape import ACTIONS
from .table_files import import_parquet

COLUMNS = ("line", "board", "age", "value", "best", *ACTIONS, "error")
"""Columns of CSV and Parquet, see the README."""


class AnswerWriter(ABC):
    """Writes batches to a binary file that is open."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    @abstractmethod
    def write(self, batch: AnsweredBatch) -> None:
        """Write a row for every line of a batch."""

    def close(self) -> None:  # noqa: B027 - most formats have nothing there
        """Write what belongs at the end; the file stays open."""


class CsvWriter(AnswerWriter):
    """CSV with a header; what is not known is empty."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file)
        file.write(f"{','.join(COLUMNS)}\n".encode())

    def write(self, batch: AnsweredBatch) -> None:
        text = io.StringIO()
        rows = zip(*_columns(batch).values(), strict=True)
        csv.writer(text, lineterminator="\n").writerows(rows)
        self._file.write(text.getvalue().encode())


class JsonLinesWriter(AnswerWriter):
    """What `query --json` prints, with the number of the line; or the line and its error."""

    def write(self, batch: AnsweredBatch) -> None:
        lines = batch.lines
        boards = _board_texts(batch, "[{}]", ", ")
        best = [json.dumps(names) for names in _best_names()]
        columns = (
            lines.numbers.tolist(),
            boards,
            batch.probe.ages.tolist(),
            _value_texts(batch.probe.values),
            (batch.probe.best @ _BITS).tolist(),
            batch.probe.action_values.tolist(),
            batch.probe.rewards.tolist(),
            batch.probe.afterstate_values.tolist(),
        )
        has_values = not np.isnan(batch.probe.values).all()  # those of a policy table all are
        rows = [
            f'{{"line": {number}, "board": [{board}], "age": {age}, "value": {value}, '
            f'"best": {best[which]}, '
            f'"actions": {{{_action_texts(*terms) if has_values else ""}}}}}\n'
            for number, board, age, value, which, *terms in zip(*columns, strict=True)
        ]
        for i, error in batch.errors.items():
            shown = {"line": int(lines.numbers[i]), "board": boards[i], "error": str(error)}
            rows[i] = json.dumps(shown) + "\n"
        self._file.write("".join(rows).encode())


class ParquetWriter(AnswerWriter):
    """Parquet of `COLUMNS`; what is not known is null."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file)
        pyarrow, parquet = import_parquet()
        self._arrow = pyarrow
        kinds = {"line": pyarrow.int64(), "age": pyarrow.int64(), "value": pyarrow.float64(),
                 **dict.fromkeys(ACTIONS, pyarrow.float64())}  # fmt: skip
        self._schema = pyarrow.schema(
            [(name, kinds.get(name, pyarrow.string())) for name in COLUMNS]
        )
        self._writer = parquet.ParquetWriter(file, self._schema, compression="zstd")

    def write(self, batch: AnsweredBatch) -> None:
        table = self._arrow.Table.from_pydict(_columns(batch), schema=self._schema)
        self._writer.write_table(table)

    def close(self) -> None:
        self._writer.close()


WRITERS: dict[str, type[AnswerWriter]] = {
    "csv": CsvWriter, "jsonl": JsonLinesWriter, "parquet": ParquetWriter
}  # fmt: skip

_BITS = np.array([1, 2, 4, 8])


def _best_names() -> list[list[str]]:
    """Names of the best actions, by the sum of `_BITS` of these."""
    return [[name for i, name in enumerate(ACTIONS) if number >> i & 1] for number in range(16)]


def _columns(batch: AnsweredBatch) -> dict[str, list[Any]]:
    """The columns of a batch, None where there is nothing."""
    probe = batch.probe
    names = [" ".join(names) for names in _best_names()]
    unknown = ~probe.is_known
    errors: list[str | None] = [None] * len(unknown)
    for i, error in batch.errors.items():
        errors[i] = str(error)
    return {
        "line": batch.lines.numbers.tolist(),
        "board": _board_texts(batch, "{}", " ", " / "),
        "age": _masked(probe.ages, unknown),
        "value": _masked(probe.values, np.isnan(probe.values)),
        "best": _masked(np.array(names, dtype=object)[probe.best @ _BITS], unknown),
        **{
            name: _masked(column, np.isnan(column))
            for name, column in zip(ACTIONS, probe.action_values.T, strict=True)
        },
        "error": errors,
    }


def _masked(array: NDArray[Any], is_missing: NDArray[np.bool_]) -> list[Any]:
    items = array.astype(object)
    items[is_missing] = None
    return list(items)


def _value_texts(values: NDArray[np.float64]) -> list[str]:
    return ["null" if math.isnan(value) else repr(value) for value in values.tolist()]


def _action_texts(values: list[float], rewards: list[float], afters: list[float]) -> str:
    """The actions of a board as JSON entries."""
    texts = []
    for name, value, reward, after in zip(ACTIONS, values, rewards, afters, strict=True):
        # NaN, where the action is illegal, equals nothing.
        text = f'{{"value": {value!r}, "reward": {reward!r}, "afterstate_value": {after!r}}}'
        texts.append(f'"{name}": {text if value == value else "null"}')
    return ", ".join(texts)


def _board_texts(batch: AnsweredBatch, row: str, gap: str, row_gap: str = ", ") -> list[str]:
    """Every board as given, formatted; a line with an error as it was read.

    row : of a row, ``{}`` its cells; gap, row_gap : between cells, and between rows
    """
    empty = "0" if row == "[{}]" else "."

    def text(cells: Iterable[int]) -> str:
        return row.format(gap.join(str(tile) if tile else empty for tile in cells))

    tiles = batch.lines.tiles
    width = tiles.shape[2]
    codes = (tile_exponents(tiles) << (4 * np.arange(width))).sum(axis=2)
    used, where = np.unique(codes, return_inverse=True)
    # Some hundred different rows at most: each is formatted once.
    rows = np.array(
        [text([0 if e == 0 else 1 << e for e in (code >> 4 * np.arange(width) & 15).tolist()])
         for code in used], dtype=object,
    )  # fmt: skip
    texts = [row_gap.join(parts) for parts in rows[where.reshape(codes.shape)].tolist()]
    for i, given in batch.lines.given.items():
        texts[i] = row_gap.join(text(cells) for cells in given.rows)
    for i in batch.errors:
        texts[i] = line_text(batch.lines.lines[i])
    return texts
