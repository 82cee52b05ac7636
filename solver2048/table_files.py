"""Tables written as CSV, JSON lines or Parquet."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .errors import UsageError
from .files import write_text, written_aside

SUFFIXES = (".csv", ".jsonl", ".parquet")

Row = Mapping[str, Any]


def check_format(path: Path) -> None:
    """Raise UsageError for a file that no table can be written to."""
    if path.suffix not in SUFFIXES:
        raise UsageError(f"{path}: the name must end in {', '.join(SUFFIXES)}")
    if path.suffix == ".parquet":
        import_parquet()


def write_table(path: Path, rows: Sequence[Row], card: str) -> None:
    """Write rows of the same names, and a card that describes them.

    The card goes beside the file as ``FILE.md``, of Parquet into its metadata too. None is an empty
    cell in CSV; lists are JSON there. What was there stays until each file is whole.
    """
    check_format(path)
    if path.suffix == ".parquet":
        _write_parquet(path, rows, card)
    else:
        text = csv_text(rows) if path.suffix == ".csv" else json_lines(rows)
        write_text(path, text)
    write_text(card_path(path), card)


def card_path(path: Path) -> Path:
    """Where the card of a table lies."""
    return path.with_name(path.name + ".md")


def csv_text(rows: Sequence[Row]) -> str:
    """Rows as CSV, a header first.

    >>> print(csv_text([{"a": 1, "b": None}, {"a": 2, "b": [3, 4]}]), end="")
    a,b
    1,
    2,"[3, 4]"
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    if rows:
        writer.writerow(rows[0])
    for row in rows:
        writer.writerow(json.dumps(v) if isinstance(v, list) else v for v in row.values())
    return out.getvalue()


def json_lines(rows: Sequence[Row]) -> str:
    """Rows as JSON, one object a line."""
    return "".join(json.dumps(dict(row)) + "\n" for row in rows)


def _write_parquet(path: Path, rows: Sequence[Row], card: str) -> None:
    pyarrow, parquet = import_parquet()
    table = pyarrow.Table.from_pylist([dict(row) for row in rows])
    with written_aside(path) as file:
        parquet.write_table(table.replace_schema_metadata({"card": card}), file)


def import_parquet() -> tuple[Any, Any]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise UsageError(
            "Parquet needs pyarrow: `python -m pip install 'solver2048[parquet]'`"
        ) from None
    return pyarrow, parquet
