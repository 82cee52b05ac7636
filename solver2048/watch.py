"""How a running solve is doing, from outside: its lock and its progress.jsonl are only read."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .files import format_size
from .lock import running_process
from .progress import duration
from .progress_log import last_line

WIDTH = 40
"""Of the bar, in characters."""


def running_progress(path: Path) -> dict[str, Any] | None:
    """The last line of a running solve's progress.jsonl, None if no solve runs there.

    Before the first line of the run: only `process`, and `event` is "starting".
    """
    process = running_process(path)
    if process is None:
        return None
    record = last_line(path)
    if record is None or record["process"] != process:
        return {"event": "starting", "process": process}
    return record


def watch(path: Path, interval: float) -> Iterator[str]:
    """Text about a running solve, again and again until it ends; nothing if none runs."""
    while (record := running_progress(path)) is not None:
        yield format_progress(record)
        time.sleep(interval)


def format_progress(record: dict[str, Any]) -> str:
    """A few lines of at most 80 columns."""
    running = f"Running: process {record['process']}"
    if "pass" not in record:
        return f"{running}, {record['event']}."
    share = float(record["fraction"])
    bar = "#" * round(WIDTH * share)
    spent = sum(record["spent_seconds"].values())
    lines = [
        f"{running}, {record['pass']} pass at age {record['age']:,}, as of {record['time']}",
        f"  [{bar:<{WIDTH}}] {share:.1%} of the forecast work",
        f"  {record['pass']} pass {record['pass_fraction']:.1%}, "
        f"{record['states_per_second'] / 1e6:.2f} M states/s",
        f"  {duration(spent)} spent over all runs, {_left(record, spent)}",
        f"  memory {format_size(record['memory_bytes'])}, "
        f"disk {format_size(record['disk_bytes'])}, "
        f"{format_size(record.get('disk_free_bytes', 0))} free",
    ]
    if saved := record.get("checkpoint"):
        lines.append(f"  last checkpoint: age {saved['age']:,}, at {saved['time']}")
    return "\n".join(lines)


def _left(record: dict[str, Any], spent: float) -> str:
    forecast = sum(record["forecast_seconds"].values())
    if record["eta_seconds"] is None:
        return f"forecast {duration(forecast)} in all"
    expected = spent + record["eta_seconds"]
    return (
        f"{duration(record['eta_seconds'])} left;\n"
        f"  in all {duration(expected)}, {expected / max(forecast, 1e-9):.2f} times the forecast"
    )
