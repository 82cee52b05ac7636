"""Whether a solve that is about to start fits what is free here; quick, without a calibration."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .age_counts import AgeCounts
from .amounts import default_memory_bytes
from .errors import NoSpace
from .files import free_bytes
from .footprint import Footprint, compute_footprint
from .options import DEFAULT_VALUES, SolveOptions
from .plan import Forecast, missing_amounts
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
    memory_bytes: int
    disk_bytes: int
    overlaps: bool


def check_fits(
    records: Records, kind: str, counts: AgeCounts, ids: str, options: SolveOptions
) -> Outlook:
    """The outlook for a solve of the ages counted; only what is not stored yet has to fit.

    kind : the kind of the objective's values
    Raises NoSpace if it does not fit, unless `options.force`.
    """
    footprint = compute_footprint(counts, ids, options.values or DEFAULT_VALUES)
    forecast = Forecast(counts, default_rates(options.threads or available_threads()), footprint)
    new_sets = _missing_bands(records, SETS, footprint)
    new_values = _missing_bands(records, kind, footprint) & counts.is_complete
    usual, least = (
        float(np.maximum(new_sets * forward, new_values * backward).max())
        for forward, backward in (
            (footprint.forward, footprint.backward),
            (footprint.forward_apart, footprint.backward_apart),
        )
    )
    disk = float((new_sets * footprint.sets + new_values * footprint.values).sum())
    limit = options.memory_bytes or default_memory_bytes()
    missing = missing_amounts(
        disk + forecast.scratch if disk else 0.0, free_bytes(records.path), least, limit
    )
    if missing and not options.force:
        name = counts.shape.name
        raise NoSpace(
            f"{name} in {records.path} needs about {' and '.join(missing)}; "
            f"see `solver2048 plan {name}`, or go on with --force"
        )
    seconds = {"forward": float(forecast.forward.sum())}
    at_rest = float(footprint.sets.sum())
    if counts.is_complete:
        seconds["backward"] = float(forecast.backward.sum())
        at_rest += float(footprint.values.sum())
    return Outlook(
        seconds=seconds,
        memory_bytes=int(usual if usual <= limit else least),
        disk_bytes=int(at_rest),
        overlaps=usual <= limit,
    )


def _missing_bands(records: Records, kind: str, footprint: Footprint) -> NDArray[np.bool_]:
    stored = {name.split("/")[-2] for name in records.record_names(f"{kind}/*/manifest.json")}
    return np.array([band.name not in stored for band in footprint.bands])
