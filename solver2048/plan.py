"""What a solve will take, before anyone starts it: time, memory, disk, and whether it fits.

Three modes are forecast. ``solution`` keeps all sets and values. ``start`` keeps only the values
of the start boards, ``policy`` the best actions besides: sets live in scratch, one span of ages at
a time from the top down; all below the topmost span that fits the disk is enumerated a second time,
from seeds kept on the way up.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .age_counts import AgeCounts
from .footprint import compute_footprint
from .forecast import AgeRow, Forecast, Limits, ModePlan
from .options import KEEPS
from .rates import Rates


@dataclass(frozen=True)
class Plan:
    """The forecast of a solve: by mode, and by ages in the first of them."""

    shape: str
    objective: str
    values: str
    ids: str
    max_age: int
    top_age: int
    limits: Limits
    counts_source: str
    rates_source: str
    modes: tuple[ModePlan, ...]
    rows: tuple[AgeRow, ...] = field(default=())

    @property
    def fits(self) -> bool:
        """Whether any of the modes does."""
        return any(mode.fits for mode in self.modes)


def make_plan(
    counts: AgeCounts,
    rates: Rates,
    limits: Limits,
    *,
    objective: str,
    values: str,
    ids: str,
    keep: str | None = None,
) -> Plan:
    """The forecast of a solve of the ages counted; only the forward pass unless that is all.

    keep : the one mode wanted; without it all, or where there is no backward pass the first
    """
    possible = KEEPS if counts.is_complete else KEEPS[:1]
    forecasts = [
        Forecast(counts, rates, compute_footprint(counts, ids, values, mode), mode)
        for mode in ([keep] if keep else possible)
    ]
    return Plan(
        shape=counts.shape.name,
        objective=objective,
        values=values,
        ids=ids,
        max_age=counts.max_age,
        top_age=counts.shape.top_age,
        limits=limits,
        counts_source=counts.source,
        rates_source=rates.source,
        modes=tuple(forecast.mode(limits) for forecast in forecasts),
        rows=tuple(forecasts[0].rows()),
    )
