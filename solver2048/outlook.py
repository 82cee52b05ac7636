"""Whether a solve that is about to start fits what is free here; quick, without a calibration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .age_counts import AgeCounts
from .amounts import default_memory_bytes
from .errors import NoSpace
from .files import directory_size, free_bytes
from .footprint import Footprint, compute_footprint
from .forecast import Forecast, Limits, missing_amounts, peak_memory
from .options import DEFAULT_DISK, DEFAULT_VALUES, KEEPS, SolveOptions
from .progress_log import AGAIN
from .rates import default_rates
from .records import SETS, Records
from .workers import available_threads


@dataclass(frozen=True)
class Outlook:
    """The forecast of a whole solve, whatever is done of it.

    seconds : by pass, with the rates of another machine; scaled to this one as it goes
    overlaps : whether there is memory for bands that are read or written beside another
    """

    seconds: dict[str, float]
    overlaps: bool


def check_fits(
    records: Records, kind: str, counts: AgeCounts, ids: str, options: SolveOptions
) -> Outlook:
    """The outlook for a solve of the ages counted; only what is not stored yet has to fit.

    kind : the kind of the objective's values, or of its policy
    options : `keep` says what stays of it; `disk` is set where no sets do
    Raises NoSpace if it does not fit, unless `options.force`.
    """
    keep = options.keep or KEEPS[0]
    footprint = compute_footprint(counts, ids, options.values or DEFAULT_VALUES, keep)
    rates = default_rates(options.threads or available_threads())
    forecast = Forecast(counts, rates, footprint, keep)
    needs = _solution_needs if keep == "solution" else _span_needs
    seconds, memory, disk = needs(records, kind, forecast, options)
    limit = options.memory_bytes or default_memory_bytes()
    missing = missing_amounts(disk, free_bytes(records.path), memory.least, limit)
    if missing and not options.force:
        name = counts.shape.name
        smaller = ", choose a smaller --disk" if options.disk else ""
        raise NoSpace(
            f"{name} in {records.path} needs about {' and '.join(missing)}; "
            f"see `solver2048 plan {name}`{smaller}, or go on with --force"
        )
    return Outlook(seconds, memory.usual <= limit)


class _Memory(NamedTuple):
    """Peak memory: as usual, and without overlap of bands."""

    usual: float
    least: float


def _solution_needs(
    records: Records, kind: str, forecast: Forecast, options: SolveOptions
) -> tuple[dict[str, float], _Memory, float]:
    """Seconds by pass of the whole solve; memory, and disk, of what is not stored yet."""
    footprint = forecast.footprint
    new_sets = _missing_bands(records, SETS, footprint)
    new_values = _missing_bands(records, kind, footprint) & forecast.has_values
    memory = _Memory(
        *(
            float(np.maximum(new_sets * forward, new_values * backward).max())
            for forward, backward in (
                (footprint.forward, footprint.backward),
                (footprint.forward_apart, footprint.backward_apart),
            )
        )
    )
    disk = float((new_sets * footprint.sets + new_values * footprint.kept).sum())
    if disk:
        disk += forecast.scratch + forecast.checkpoints
    return forecast.seconds(), memory, disk


def _span_needs(
    records: Records, kind: str, forecast: Forecast, options: SolveOptions
) -> tuple[dict[str, float], _Memory, float]:
    """The same where no sets are kept, within the budget of `options`; the table comes on top."""
    budget = float(options.disk or DEFAULT_DISK)
    if options.keep == "policy":
        budget += float(forecast.footprint.kept.sum())
    mode = forecast.mode(Limits(np.inf, budget))
    memory = _Memory(*peak_memory(forecast.footprint, forecast.has_values))
    there = sum(directory_size(records.path / name) for name in (SETS, "scratch", kind))
    seconds = forecast.seconds()
    if forecast.has_values:
        seconds[AGAIN] = mode.redone_share * seconds["forward"]
    return seconds, memory, max(mode.disk_peak_bytes - there, 0)


def _missing_bands(records: Records, kind: str, footprint: Footprint) -> NDArray[np.bool_]:
    stored = {name.split("/")[-2] for name in records.record_names(f"{kind}/*/manifest.json")}
    return np.array([band.name not in stored for band in footprint.bands])
