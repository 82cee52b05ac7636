"""Files of 'age count' lines: the number of states by age, as published or as `counts` prints."""

from __future__ import annotations

from pathlib import Path

from .errors import UsageError


def read_counts(path: str) -> dict[int, int]:
    """Number of states by age: lines of 'age count', or the CSV that `counts` prints.

    Raises UsageError.
    """
    counts = {}
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} could not be read: {error}") from None
    for number, line in enumerate(lines, 1):
        fields = line.replace(",", " ").split()
        if not fields or fields[0].startswith("#") or fields[:2] == ["age", "states"]:
            continue
        if len(fields) < 2 or not all(
            f.isascii() and f.isdecimal() and len(f) < 19 for f in fields[:2]
        ):
            raise UsageError(f"{path}, line {number}: {line[:40]!r} is not 'age count'")
        counts[int(fields[0])] = int(fields[1])
    return counts
