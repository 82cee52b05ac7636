"""How long layers take: the model a * slots + b * states + c * afterstates + d.

Every cost is in seconds of one processor. Three parts of a pass are told apart: *kernels*, on all
threads; *serial* work between them, on one; *writing*, beside both. A layer then takes as long as
the longest of: kernels and serial work one after another; everything on the processor time there
is; the writing alone. Limits: costs are linear though boards lie sparser at high ages (a slot is
taken at `SPARSE_FACTOR` times that of an empty layer, as on 3x3), nothing is known about caches
on layers larger than those calibrated, and the machine's other load is taken to stay as it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .age_counts import AgeCounts
from .bands import bands_of

Floats = NDArray[np.float64]

SPARSE_FACTOR = 3.0


@dataclass(frozen=True)
class Cost:
    """Seconds of one processor per slot, state and afterstate, and per layer."""

    slot: float = 0.0
    state: float = 0.0
    afterstate: float = 0.0
    layer: float = 0.0

    def times(self, factor: float) -> Cost:
        """The same with dearer boards."""
        return Cost(self.slot, factor * self.state, factor * self.afterstate, self.layer)

    def plus(self, other: Cost) -> Cost:
        """Both together."""
        return Cost(
            self.slot + other.slot,
            self.state + other.state,
            self.afterstate + other.afterstate,
            self.layer + other.layer,
        )

    def of(self, counts: AgeCounts) -> Floats:
        """The cost of every age."""
        seconds: Floats = (
            self.slot * counts.slots
            + self.state * counts.states
            + self.afterstate * counts.afterstates
            + self.layer
        )
        return seconds


@dataclass(frozen=True)
class PassRates:
    """Costs of the three parts of a pass."""

    kernels: Cost
    serial: Cost
    writing: Cost


@dataclass(frozen=True)
class Rates:
    """Costs, and how much processor time there is.

    cores : processors that the kernels' threads get together; thread : what one thread gets
    capacity : what all threads get together; writer : processor time per second while writing
    band : processor time of a band's files; checkpoint_byte : seconds to write one of a checkpoint
    """

    forward: PassRates
    backward: PassRates
    cores: float
    thread: float
    capacity: float
    writer: float
    band: float
    checkpoint_byte: float
    source: str

    @property
    def choosing(self) -> PassRates:
        """A backward pass that keeps the best actions; dearer here as the backward pass is."""
        speed = self.backward.kernels.state / BACKWARD.kernels.state
        return PassRates(
            kernels=self.backward.kernels.plus(CHOOSING.times(speed)),
            serial=Cost(slot=self.backward.serial.slot),
            writing=LEARNING.times(speed),
        )

    def seconds(self, rates: PassRates, counts: AgeCounts, *, is_written: bool = True) -> Floats:
        """Seconds that every age takes in a pass."""
        kernels, serial, writing = self._parts(rates, counts, is_written)
        chain = kernels / self.cores + serial / self.thread
        shared = (kernels + serial + writing) / self.capacity
        seconds: Floats = np.maximum(np.maximum(chain, shared), writing / self.writer)
        return seconds

    def cpu_seconds(
        self, rates: PassRates, counts: AgeCounts, *, is_written: bool = True
    ) -> Floats:
        """Seconds of one processor that every age takes in a pass, whatever else is running."""
        kernels, serial, writing = self._parts(rates, counts, is_written)
        return kernels + serial + writing

    def _parts(
        self, rates: PassRates, counts: AgeCounts, is_written: bool
    ) -> tuple[Floats, Floats, Floats]:
        writing = np.zeros(len(counts.slots))
        if is_written:
            writing = rates.writing.of(counts)
            for band in bands_of(counts.shape):
                if band.last <= counts.max_age:
                    writing[counts.place(band.last)] += self.band
        return rates.kernels.of(counts), rates.serial.of(counts), writing


# Measured on 4x3 at ages up to 200, Xeon with AVX-512.
FORWARD = PassRates(
    kernels=Cost(0.9e-9, 18e-9, 10e-9, 1e-3), serial=Cost(slot=0.4e-9), writing=Cost(0, 9e-9, 9e-9)
)
BACKWARD = PassRates(
    kernels=Cost(0.5e-9, 48e-9, 28e-9, 1e-3), serial=Cost(3e-9, 0, 8e-9), writing=Cost(0, 0, 22e-9)
)
CHOOSING = Cost(state=150e-9)
"""Of a backward pass that keeps the best actions: choosing and encoding them."""
LEARNING = Cost(slot=6e-9, state=10e-9)
"""Learning to predict them, and writing them."""


def default_rates(threads: int) -> Rates:
    """Rates of the machine on which this was written, for a number of threads; no calibration."""
    cores = float(threads)
    return Rates(
        FORWARD, BACKWARD, cores, 1.0, cores, 0.8, 0.02, 2e-9, "as on the authors' machine"
    )
