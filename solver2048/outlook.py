"""Whether what is about to start fits what is free here; quick, without a calibration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .age_counts import AgeCounts
from .amounts import default_memory_bytes
from .errors import NoSpace
from .files import directory_size, format_size, free_bytes
from .footprint import Footprint, compute_footprint
from .forecast import (
    Forecast,
    Limits,
    PeakMemory,
    least_budget,
    missing_amounts,
    peak_memory,
)
from .options import DEFAULT_DISK, DEFAULT_VALUES, KEEPS, STATES_MET, SolveOptions
from .progress_log import AGAIN, REACH
from .rates import default_rates
from .records import COMPLETE, SETS, Records
from .workers import available_threads


@dataclass(frozen=True)
class Outlook:
    """The forecast of the whole, whatever is done of it.

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
    name = counts.shape.name
    keep = options.keep or KEEPS[0]
    forecast = _forecast(counts, ids, options, keep)
    needs = _solution_needs if keep == "solution" else _span_needs
    smaller = "choose a smaller --disk, " if options.disk else ""
    advice = f"see `solver2048 plan {name}`, {smaller}or "
    return _check(name, records, needs(records, kind, forecast, options), options, advice)


def check_pack_fits(
    source: Records, records: Records, kind: str, counts: AgeCounts, reach: str,
    options: SolveOptions,
) -> Outlook:  # fmt: skip
    """The same for a policy table made from what is stored at `source`, of one of `REACHES`."""
    forecast = _forecast(counts, str(source.identity()["ids"]), options, "policy")
    needs = _pack_needs(source, records, kind, forecast, reach)
    return _check(counts.shape.name, records, needs, options)


class _Needs(NamedTuple):
    """Seconds by pass of the whole; memory, and bytes on disk, of what is not stored yet."""

    seconds: dict[str, float]
    memory: PeakMemory
    disk: float


def _forecast(counts: AgeCounts, ids: str, options: SolveOptions, keep: str) -> Forecast:
    footprint = compute_footprint(counts, ids, options.values or DEFAULT_VALUES, keep)
    return Forecast(counts, default_rates(options.threads or available_threads()), footprint, keep)


def _check(
    name: str, records: Records, needs: _Needs, options: SolveOptions, advice: str = ""
) -> Outlook:
    limit = default_memory_bytes() if options.memory_bytes is None else options.memory_bytes
    free = free_bytes(records.path)
    missing = missing_amounts(needs.disk, free, needs.memory.least, limit)
    if missing and not options.force:
        raise NoSpace(
            f"{name} in {records.path} needs about {' and '.join(missing)}; "
            f"{advice}go on with --force"
        )
    return Outlook(needs.seconds, needs.memory.usual <= limit)


def _solution_needs(
    records: Records, kind: str, forecast: Forecast, options: SolveOptions
) -> _Needs:
    footprint = forecast.footprint
    new_sets = _missing_bands(records, SETS, footprint)
    new_values = _missing_bands(records, kind, footprint) & forecast.has_values
    memory = peak_memory(footprint, new_sets, new_values)
    disk = float((new_sets * footprint.sets + new_values * footprint.kept).sum())
    if disk:
        disk += forecast.scratch + forecast.checkpoints
    return _Needs(forecast.seconds(), memory, disk)


def _span_needs(records: Records, kind: str, forecast: Forecast, options: SolveOptions) -> _Needs:
    """Where no sets are kept, within the budget of `options`; the table comes on top."""
    budget = float(options.disk or DEFAULT_DISK)
    least = least_budget(forecast.footprint)
    if budget < least and not options.force:
        raise NoSpace(
            f"a budget of {format_size(int(budget))} is too small: sets to go on from, those of a "
            f"span of ages and the checkpoint take about {format_size(int(least))}; choose a "
            "larger --disk, or go on with --force"
        )
    if options.keep == "policy":
        budget += float(forecast.footprint.kept.sum())
    mode = forecast.mode(Limits(np.inf, budget))
    memory = peak_memory(forecast.footprint, True, forecast.has_values)
    there = sum(directory_size(records.path / name) for name in (SETS, "scratch", kind))
    seconds = forecast.seconds()
    if forecast.has_values:
        seconds[AGAIN] = mode.redone_share * seconds["forward"]
    return _Needs(seconds, memory, max(mode.disk_peak_bytes - there, 0))


def _pack_needs(
    source: Records, records: Records, kind: str, forecast: Forecast, reach: str
) -> _Needs:
    """What optimal play meets is taken to take as much of all as the complete table."""
    footprint = forecast.footprint
    new = _missing_bands(records, kind, footprint)
    memory = peak_memory(footprint, False, new)
    passes = ["backward"] if source.keep != "policy" else []
    passes += [REACH] if reach == STATES_MET else []
    seconds = dict.fromkeys(passes, forecast.seconds()["backward"])
    disk = float((new * footprint.kept).sum())
    if disk and len(passes) == 2:
        complete = Records(records.path / COMPLETE)
        disk += float((_missing_bands(complete, kind, footprint) * footprint.kept).sum())
    return _Needs(seconds, memory, disk + forecast.scratch if disk else 0.0)


def _missing_bands(records: Records, kind: str, footprint: Footprint) -> NDArray[np.bool_]:
    stored = {name.split("/")[-2] for name in records.record_names(f"{kind}/*/manifest.json")}
    return np.array([band.name not in stored for band in footprint.bands])
