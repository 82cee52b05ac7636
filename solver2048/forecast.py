"""Seconds, memory and disk of a solve that keeps one of `KEEPS`; the modes: `.plan`."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .age_counts import AgeCounts
from .bands import kept_checkpoints
from .files import format_size
from .footprint import FILE_BYTES, Footprint
from .options import CHECKPOINT_SECONDS
from .rates import Rates
from .store import SPARE_BYTES

Floats = NDArray[np.float64]

NUM_ROWS = 16
RESULT_BYTES = 1e6


@dataclass(frozen=True)
class Limits:
    """Bytes that a solve may take."""

    memory: float
    disk: float


@dataclass(frozen=True)
class AgeRow:
    """The forecast of a range of ages, nothing enumerated twice; bytes of sets and of what is kept
    beside them, values or actions, are those on disk."""

    first: int
    last: int
    slots: int
    states: int
    afterstates: int
    forward_seconds: float
    backward_seconds: float
    sets_bytes: int
    kept_bytes: int
    memory_bytes: int


@dataclass(frozen=True)
class ModePlan:
    """The forecast of a mode.

    cpu_seconds : of one processor, of all passes; the others are on the wall, at the load of now
    memory_bytes : peak as the solve would run; memory_least_bytes : without overlap of bands
    disk_bytes, disk_peak_bytes : at rest, and at most meanwhile; written_bytes : in all
    missing : what stands in the way, none if it fits
    """

    keep: str
    forward_seconds: float
    backward_seconds: float
    cpu_seconds: float
    memory_bytes: int
    memory_least_bytes: int
    disk_bytes: int
    disk_peak_bytes: int
    written_bytes: int
    redone_share: float
    missing: tuple[str, ...]

    @property
    def fits(self) -> bool:
        return not self.missing


class Forecast:
    """Seconds by age, and bytes by band, of a solve of the ages counted that keeps one of `KEEPS`.

    forward, backward : seconds by age; scratch : bytes of checkpoints, and what must stay free;
    checkpoints : bytes of those that mode ``solution`` keeps
    """

    def __init__(self, counts: AgeCounts, rates: Rates, footprint: Footprint, keep: str) -> None:
        self._counts, self._rates, self.footprint = counts, rates, footprint
        self._keep = keep
        self.has_values = counts.is_complete
        self.forward = rates.seconds(rates.forward, counts)
        self.backward = np.zeros(len(self.forward))
        self._kept = np.zeros(len(footprint.kept))
        self._pass = rates.choosing if keep == "policy" else rates.backward
        if self.has_values:
            self.backward = rates.seconds(self._pass, counts, is_written=keep != "start")
            self._kept = footprint.kept
        # No checkpoint before its time; after every band at most.
        shares = np.minimum(self._per_band(self.backward) / CHECKPOINT_SECONDS, 1.0)
        self._written_checkpoints = float((shares * footprint.states_pair).sum())
        kept = kept_checkpoints(counts.shape) if counts.is_complete else ()
        is_kept = [band in kept for band in footprint.bands]
        self.checkpoints = float(footprint.states_pair[is_kept].sum())
        is_long = self.backward.sum() > CHECKPOINT_SECONDS
        # The new one is whole before the old one goes.
        self.scratch = SPARE_BYTES + (2 * footprint.states_pair.max() if is_long else 0.0)

    def seconds(self) -> dict[str, float]:
        """Seconds of each pass, nothing enumerated twice."""
        passes = {"forward": float(self.forward.sum())}
        if self.has_values:
            passes["backward"] = float(self.backward.sum())
        return passes

    def _per_band(self, of_ages: Floats) -> Floats:
        starts = [self._counts.place(band.first) for band in self.footprint.bands]
        total: Floats = np.add.reduceat(of_ages, starts)
        return total

    def mode(self, limits: Limits) -> ModePlan:
        """The forecast within limits."""
        return self._whole(limits) if self._keep == "solution" else self._spans(limits)

    def _whole(self, limits: Limits) -> ModePlan:
        """All is kept."""
        at_rest = float(self.footprint.sets.sum() + self._kept.sum()) + self.checkpoints
        peak = at_rest + self.scratch
        disk = _Disk(at_rest, peak, at_rest + self._written_checkpoints, needed=peak)
        return self._mode(limits, self.forward.sum(), disk)

    def _spans(self, limits: Limits) -> ModePlan:
        """No sets are kept; what no longer fits is enumerated twice."""
        sets, rates, counts = self.footprint.sets, self._rates, self._counts
        at_rest = RESULT_BYTES + float(self._kept.sum())
        is_redone, seeds = redone_bands(self.footprint, limits.disk - self.scratch - at_rest)
        written = self._per_band(self.forward)
        unwritten = self._per_band(rates.seconds(rates.forward, counts, is_written=False))
        redone = float(written[is_redone].sum())
        needed = at_rest + self.scratch + least_span_bytes(self.footprint)
        peak = at_rest + self.scratch + seeds + float(sets.sum())
        disk = _Disk(
            at_rest=at_rest,
            peak=max(needed, min(limits.disk, peak)),
            written=at_rest + float(sets.sum()) + seeds + self._written_checkpoints,
            needed=needed,
        )
        forward = np.where(is_redone, unwritten, written).sum() + redone
        return self._mode(limits, forward, disk, redone / float(written.sum()))

    def _mode(
        self, limits: Limits, forward: float, disk: _Disk, redone_share: float = 0.0
    ) -> ModePlan:
        usual, least = peak_memory(self.footprint, True, self.has_values)
        backward = float(self.backward.sum())
        if backward:
            backward += self._written_checkpoints * self._rates.checkpoint_byte
        return ModePlan(
            keep=self._keep,
            forward_seconds=float(forward),
            backward_seconds=backward,
            cpu_seconds=self._cpu_seconds(redone_share),
            memory_bytes=int(usual if usual <= limits.memory else least),
            memory_least_bytes=int(least),
            disk_bytes=int(disk.at_rest),
            disk_peak_bytes=int(disk.peak),
            written_bytes=int(disk.written),
            redone_share=redone_share,
            missing=missing_amounts(disk.needed, limits.disk, least, limits.memory),
        )

    def _cpu_seconds(self, redone_share: float) -> float:
        rates, counts = self._rates, self._counts
        seconds = (1 + redone_share) * float(rates.cpu_seconds(rates.forward, counts).sum())
        if counts.is_complete:
            is_written = self._keep != "start"
            backward = rates.cpu_seconds(self._pass, counts, is_written=is_written)
            seconds += float(backward.sum())
        return seconds

    def rows(self) -> Iterable[AgeRow]:
        """Ranges of ages, of about as many ages each."""
        counts, footprint = self._counts, self.footprint
        forward, backward = self._per_band(self.forward), self._per_band(self.backward)
        memory = footprint.forward
        if counts.is_complete:
            memory = np.maximum(memory, footprint.backward)
        lasts = np.array([min(band.last, counts.max_age) for band in footprint.bands])
        groups = np.minimum(lasts * NUM_ROWS // (counts.max_age + 1), NUM_ROWS - 1)
        for group in np.unique(groups):
            of = np.flatnonzero(groups == group)
            first = footprint.bands[of[0]].first
            ages = slice(counts.place(first), counts.place(int(lasts[of[-1]])) + 1)
            yield AgeRow(
                first=first,
                last=int(lasts[of[-1]]),
                slots=int(counts.slots[ages].sum()),
                states=int(counts.states[ages].sum()),
                afterstates=int(counts.afterstates[ages].sum()),
                forward_seconds=float(forward[of].sum()),
                backward_seconds=float(backward[of].sum()),
                sets_bytes=int(footprint.sets[of].sum()),
                kept_bytes=int(self._kept[of].sum()),
                memory_bytes=int(memory[of].max()),
            )


class _Disk(NamedTuple):
    """Bytes on disk of a mode; needed : the least with which it can run."""

    at_rest: float
    peak: float
    written: float
    needed: float


def redone_bands(footprint: Footprint, span_bytes: float) -> tuple[NDArray[np.bool_], float]:
    """Which bands have to be enumerated twice, and the bytes of the seeds to do so.

    span_bytes : what there is for sets and seeds
    The topmost bands that fit stay from the first time; each span of those below starts from a
    seed, the sets of the two ages below it.
    """
    sets, seed = footprint.sets, _seed_bytes(footprint)
    # A span has what the seeds below it leave: n spans, n * span_bytes less the sum of all those.
    half = span_bytes + seed / 2
    root = np.sqrt(max(half**2 - 2 * seed * float(sets.sum()), 0.0))
    num_spans = max(1.0, float(np.ceil((half - root) / seed)))
    seeds = (num_spans - 1) * seed
    from_top = np.cumsum(sets[::-1])[::-1]
    return from_top > span_bytes - seeds, seeds


def least_span_bytes(footprint: Footprint) -> float:
    """The least that sets and seeds can take where sets are not kept, see `redone_bands`.

    With n spans a budget b holds n * b - seed * n * n / 2 bytes of sets, which is all of them for
    the least b where n * seed = b; on top, bands are whole and one is made beside those it is from.
    """
    whole, largest = float(footprint.sets.sum()), float(footprint.sets.max())
    return min(whole, float(np.sqrt(2 * whole * _seed_bytes(footprint))) + 3 * largest)


def least_budget(footprint: Footprint) -> float:
    """The least bytes for sets, seeds and checkpoints; `FILE_BYTES` of a band not counted."""
    sets = footprint.sets - FILE_BYTES
    bare = dataclasses.replace(footprint, sets=sets)
    return least_span_bytes(bare) + 2 * float(footprint.states_pair.max())


def _seed_bytes(footprint: Footprint) -> float:
    """Two ages one after the other, where a band has but one those of two bands; on average."""
    num_bands = [1 if band.last > band.first else 2 for band in footprint.bands]
    return float((np.array(num_bands) * footprint.sets).mean())


class PeakMemory(NamedTuple):
    """Bytes: as usual, and without overlap of bands."""

    usual: float
    least: float


def peak_memory(
    footprint: Footprint,
    is_forward: bool | NDArray[np.bool_],
    is_backward: bool | NDArray[np.bool_],
) -> PeakMemory:
    """Peak memory over the bands that a pass has still to come to, all or none or bool[bands]."""

    def peak(forward: Floats, backward: Floats) -> float:
        return float(np.maximum(is_forward * forward, is_backward * backward).max())

    return PeakMemory(
        peak(footprint.forward, footprint.backward),
        peak(footprint.forward_apart, footprint.backward_apart),
    )


def missing_amounts(
    disk: float, disk_limit: float, memory: float, memory_limit: float
) -> tuple[str, ...]:
    """What stands in the way, in words."""
    missing = []
    if disk > disk_limit:
        missing.append(f"{format_size(disk)} of disk, of which {format_size(disk_limit)} are there")
    if memory > memory_limit:
        missing.append(
            f"{format_size(memory)} of memory, of which {format_size(memory_limit)} may be used"
        )
    return tuple(missing)
