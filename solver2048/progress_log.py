"""progress.jsonl: how a solve goes, one JSON object a line, for whoever watches from outside.

No part of the solution, and nothing depends on it. A line has `time`, `event` (start, progress,
end), `process`, and once a pass runs:

    pass, age                  ages go up in the forward pass and down in the backward pass;
                               "forward again" where no sets are kept; "reach", upward, over
                               the states that optimal play meets
    states, states_per_second  of this run of the pass
    pass_fraction, fraction    of the forecast work of the pass, and of the whole solve
    eta_seconds                for all that is left, null before anything is known
    spent_seconds              by pass, over all runs
    forecast_seconds           by pass, as forecast at the start, with the rates of another machine
    left_seconds               by pass, what is left of that
    measured                   by pass, {forecast, seconds}: what some of it took, and should have
    cpu_seconds, memory_bytes  of this process: all its threads together, and its peak
    disk_bytes, disk_free_bytes    of the solution, and left
    checkpoint                 {age, time} of the last point from which a killed solve goes on

The end line has `outcome`: done, or the name of the error.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from .files import directory_size, free_bytes
from .lock import OBJECTIVE_ROOTS
from .progress import peak_memory_bytes

NAME = "progress.jsonl"
AGAIN = "forward again"
"""The pass that enumerates what was dropped."""
REACH = "reach"
"""The pass over the states that optimal play meets."""
LINE_SECONDS = 1.0
DISK_SECONDS = 10.0
TAIL_BYTES = 1 << 16
MEASURED_SECONDS = 1.0
"""Less than this says nothing about the speed of a pass."""
REMEMBERED_SECONDS = 60.0
"""What runs before say about the speed weighs no more than this time of the present one."""


def last_line(path: Path) -> dict[str, Any] | None:
    """The last whole line of a solution's progress.jsonl, None if there is none."""
    try:
        with open(path / NAME, "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
            lines = file.read().split(b"\n")
    except OSError:
        return None
    for line in reversed(lines):
        # A killed run may leave half a line, and a full disk less.
        with contextlib.suppress(ValueError):
            record = json.loads(line)
            if isinstance(record, dict) and "event" in record:
                return record
    return None


@dataclass
class _Measured:
    """What some of a pass was forecast to take, and what it took."""

    forecast: float = 0.0
    seconds: float = 0.0

    def ratio(self) -> float | None:
        return self.seconds / self.forecast if self.seconds > MEASURED_SECONDS else None

    def remembered(self) -> _Measured:
        """The same for the next run."""
        weight = min(1.0, REMEMBERED_SECONDS / max(self.seconds, 1e-9))
        return _Measured(weight * self.forecast, weight * self.seconds)


class PassLog:
    """Is told how passes go; this one tells nobody."""

    def begin(self, name: str, left: float, whole: float, alike: str | None = None) -> None:
        """A pass begins, with so much of its work left.

        whole : the work that its forecast is for, or that of a pass that works alike
        """

    def saved(self, age: int) -> None:
        """A killed solve would go on from this age."""

    def advance(self, age: int, work: float, num_states: int) -> None:
        """A layer of the pass is done."""


NO_LOG = PassLog()


class ProgressLog(PassLog):
    """A run of a solve, from its start to its end, as lines of progress.jsonl.

    Goes on with the measured speeds of the runs before, so that the time left survives a restart.
    """

    def __init__(self, path: Path, forecast_seconds: dict[str, float]) -> None:
        self._path = path
        before = last_line(path) or {}
        self._forecast = forecast_seconds
        self._spent = dict.fromkeys(forecast_seconds, 0.0) | before.get("spent_seconds", {})
        left_before = before.get("left_seconds", {})
        self._left = {name: left_before.get(name, s) for name, s in forecast_seconds.items()}
        self._measured = {name: _Measured() for name in forecast_seconds}
        for name, measured in before.get("measured", {}).items():
            self._measured[name] = _Measured(**measured).remembered()
        self._record: dict[str, Any] = {
            "spent_seconds": self._spent,
            "left_seconds": self._left,
            "forecast_seconds": forecast_seconds,
            "checkpoint": before.get("checkpoint"),
        }
        self._disk = _DiskUse(path)
        self._last_line = 0.0

    def __enter__(self) -> ProgressLog:
        self._write("start")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:  # fmt: skip
        self._write("end", outcome=kind.__name__ if kind else "done")

    def begin(self, name: str, left: float, whole: float, alike: str | None = None) -> None:
        self._pass = name
        self._seconds_per_work = self._forecast[alike or name] / max(whole, 1.0)
        self._left[name] = left * self._seconds_per_work
        self._states = 0
        self._began = self._counted = time.monotonic()

    def saved(self, age: int) -> None:
        self._record["checkpoint"] = {"age": age, "time": _now()}

    def advance(self, age: int, work: float, num_states: int) -> None:
        """Count a layer of the pass, and write a line if the last is old enough."""
        now = time.monotonic()
        seconds, self._counted = now - self._counted, now
        expected = work * self._seconds_per_work
        self._left[self._pass] = max(self._left[self._pass] - expected, 0.0)
        if self._states:
            measured = self._measured[self._pass]
            measured.forecast += expected
            measured.seconds += seconds
        # The first layer waits for the compiler, and says nothing about the others.
        self._states += num_states
        self._spent[self._pass] += seconds
        if now - self._last_line >= LINE_SECONDS:
            self._record |= self._state(age, now)
            self._write("progress")

    def _state(self, age: int, now: float) -> dict[str, Any]:
        left, forecast = self._left, self._forecast
        ratio = self._measured[self._pass].ratio()
        eta = None
        if ratio is not None:
            # Passes that nobody has measured are off from the forecast as this one is.
            eta = sum((self._measured[name].ratio() or ratio) * left[name] for name in left)
        return {
            "pass": self._pass,
            "age": age,
            "states": self._states,
            "states_per_second": round(self._states / max(now - self._began, 1e-9)),
            "pass_fraction": _share_done(left[self._pass], forecast[self._pass]),
            "fraction": _share_done(sum(left.values()), sum(forecast.values())),
            "eta_seconds": eta,
        }

    def _write(self, event: str, **facts: Any) -> None:
        self._last_line = time.monotonic()
        record = {
            "time": _now(),
            "event": event,
            "process": os.getpid(),
            **self._record,
            "measured": {name: vars(measured) for name, measured in self._measured.items()},
            "cpu_seconds": time.process_time(),
            "memory_bytes": peak_memory_bytes(),
            "disk_bytes": self._disk.bytes(is_new=event == "end"),
            **facts,
        }
        # A disk too full to say how a solve goes is no reason to stop it here.
        with contextlib.suppress(OSError):
            record["disk_free_bytes"] = free_bytes(self._path)
            with open(self._path / NAME, "a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")


def _share_done(left: float, forecast: float) -> float:
    return max(1 - left / max(forecast, 1e-9), 0.0)


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


class _DiskUse:
    """Bytes of a directory, looked at again now and then; a band once seen stays as it is."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._sizes: dict[Path, int] = {}
        self._looked = -DISK_SECONDS
        self._bytes = 0

    def bytes(self, is_new: bool) -> int:
        if is_new or time.monotonic() - self._looked >= DISK_SECONDS:
            self._looked = time.monotonic()
            bands = [p.parent for p in self._path.glob("sets/*/manifest.json")]
            for kinds in OBJECTIVE_ROOTS:
                bands += [p.parent for p in self._path.glob(f"{kinds}/*/*/manifest.json")]
            for band in bands:
                if band not in self._sizes:
                    self._sizes[band] = directory_size(band)
            others = ("scratch", "quarantine")
            self._bytes = sum(self._sizes[band] for band in bands)
            self._bytes += sum(directory_size(self._path / name) for name in others)
        return self._bytes
