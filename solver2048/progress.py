"""Progress of a pass: one bar weighted by the work expected, or one plain line a minute."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable

from tqdm import tqdm

PLAIN_SECONDS = 60.0


def peak_memory_bytes() -> int:
    """Largest resident size of this process so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def duration(seconds: float) -> str:
    """A time span for people: 42 s, 3 min 05 s, 7 h 12 min, 2 d 03 h.

    >>> duration(185)
    '3 min 05 s'
    """
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes:02d} min"
    return f"{hours // 24} d {hours % 24:02d} h"


class Progress:
    """Shows how far a pass is. `total_work` is in the unit in which `advance` counts.

    on_layer : is told all that `advance` is
    """

    def __init__(
        self,
        title: str,
        total_work: float,
        *,
        enabled: bool = True,
        on_layer: Callable[[int, float, int], None] | None = None,
    ) -> None:
        self._on_layer = on_layer
        self._title = title
        self._total = max(total_work, 1.0)
        self._done = 0.0
        self._states = 0
        self._started = self._last_line = time.monotonic()
        self._enabled = enabled
        self._bar = None
        if enabled and sys.stderr.isatty():
            self._bar = tqdm(
                total=100.0,
                desc=title,
                file=sys.stderr,
                dynamic_ncols=True,
                bar_format="{desc} {percentage:3.0f}%|{bar}|{postfix}",
            )

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def advance(self, age: int, work: float, num_states: int) -> None:
        """Count the work of one layer."""
        if self._on_layer is not None:
            self._on_layer(age, work, num_states)
        self._done += work
        self._states += num_states
        if self._bar is not None:
            # The bar redraws at most ten times a second, however small the layers are.
            self._bar.set_postfix_str(self._status(age), refresh=False)
            # Rounding may carry the sum past the end, of which the bar would warn.
            self._bar.update(min(100.0 * work / self._total, 100.0 - self._bar.n))
        elif self._enabled and time.monotonic() - self._last_line >= PLAIN_SECONDS:
            self._last_line = time.monotonic()
            share = 100.0 * self._done / self._total
            print(f"{self._title} {share:.1f} %, {self._status(age)}", file=sys.stderr, flush=True)

    def _status(self, age: int) -> str:
        elapsed = time.monotonic() - self._started
        # Work, unlike ages, takes about the same time wherever the pass is.
        left = elapsed * (self._total - self._done) / max(self._done, 1e-9)
        status = f"age {age}, "
        if self._states:
            status += f"{self._states / max(elapsed, 1e-9) / 1e6:.1f} M states/s, "
        status += f"{peak_memory_bytes() / 1e6:,.0f} MB"
        # The first layers are all compiling and overhead: an estimate from them would say years.
        if elapsed < 2.0 or (self._done < 0.01 * self._total and elapsed < 30.0):
            return status
        return f"{status}, {duration(max(left, 0.0))} left"
