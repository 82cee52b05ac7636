"""What a solve takes of memory and disk, from the counts of its ages.

Memory, of the band in hand; bitmaps take 1 bit a slot, ranked bitmaps 2, an encoded set at most
1 (radix: its bits per board), state and afterstate values 8 bytes while computed:

forward
    bitmaps of four sets (states and afterstates of the age, afterstates of the two below); the
    encoded sets of the band, and, while they are written, those of the band before;
backward
    ranked bitmaps and values of the states of three ages; ranked bitmap and values of the
    afterstates; encoded sets of the band, and what is kept of it, and those of its neighbours: the
    sets of the next are read, what is kept of the one before written, meanwhile. Of a policy a
    byte a state, the ranked bitmap, and then two bits a slot and the boards learned from.

Without overlap a band's neighbours are not in memory, at the price of waiting for the disk.
Compared with measured peaks of 3x3 and of 4x3 to age 600; larger layers are extrapolated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .age_counts import AgeCounts
from .bands import bands_of
from .layer import Band
from .options import KEEPS
from .policy_bands import LEARNING_BOARDS

Floats = NDArray[np.float64]

BASE_BYTES = 300e6
"""Imports, compiled kernels and tables."""
SLACK_SHARE, SLACK_BYTES = 0.25, 250e6
"""What the allocator holds beyond that, a share up to so many bytes: large arrays go straight back
to the system."""
WRITE_BYTES = {"words": 40e6, "values": 640e6}
READ_BYTES = 160e6
"""At most in flight while a large array is written or read, ten shards at a time."""
ESTIMATE_MARGIN = 1.2
"""The largest layers may have more states than an estimate says: by 15 % on 4x3."""
RADIX_WORK_BYTES = 16.0
"""Per state, while radix IDs are sorted and encoded."""

# Measured on 3x3 and on 4x3 to age 600, rounded up.
SET_BITS = {"index": (1.1, 1.6), "radix": (8.9, 9.3)}
SQUARE_SET_BITS = {"index": (1.6, 2.3), "radix": (13.0, 14.0)}
VALUE_BITS = {"float32": 25.6, "float64": 57.0}
FIXED_BITS = 14.0
"""Of ``fixed:K`` for K up to 6; every further bit of the fraction is one bit more."""
POLICY_BITS = 2.1
"""Of a state's action, modulo all symmetries: the most that is expected of 4x3, see POLICY.md."""
LEARNING_BYTES = 60.0
"""What each of the boards takes that a policy's band learns from, meanwhile."""
FILE_BYTES = 12_000
"""Of a band's small files."""


@dataclass(frozen=True)
class Footprint:
    """Bytes by band of `bands`, upward; memory is the peak of the process in that band.

    sets, kept : on disk, the latter of values or actions; states_pair : a checkpoint there
    forward, backward : memory as usual; *_apart : without overlap of neighbouring bands
    """

    bands: tuple[Band, ...]
    sets: Floats
    kept: Floats
    states_pair: Floats
    forward: Floats
    forward_apart: Floats
    backward: Floats
    backward_apart: Floats


def value_bits(values: str) -> float:
    """Bits on disk of an afterstate's value.

    >>> value_bits("fixed:8")
    16.0
    """
    if values in VALUE_BITS:
        return VALUE_BITS[values]
    return FIXED_BITS + max(int(values.removeprefix("fixed:")) - 6, 0)


def compute_footprint(counts: AgeCounts, ids: str, values: str, keep: str = KEEPS[0]) -> Footprint:
    """What the bands of all ages counted take, one of `KEEPS` being kept."""
    bands = tuple(band for band in bands_of(counts.shape) if band.first <= counts.max_age)
    per_band = _PerBand(counts, bands)
    bits_state, bits_afterstate = set_bits(counts.shape.is_square, ids)
    sets = (bits_state * counts.states + bits_afterstate * counts.afterstates) / 8
    encoded = counts.slots / 4
    if ids == "radix":  # larger before Zstd than after
        encoded = 1.5 * sets
    words = per_band.sum(encoded)
    forward, forward_apart = _forward_memory(counts, per_band, words, ids)
    held, writing = _held_memory(counts, per_band, values, keep)
    backward, backward_apart = _backward_memory(counts, per_band, words, held, writing)
    kept = {
        "solution": value_bits(values) / 8 * counts.afterstates,
        "start": np.zeros(len(counts.states)),
        "policy": POLICY_BITS / 8 * counts.states / (2 if counts.shape.is_square else 1),
    }[keep]
    return Footprint(
        bands=bands,
        sets=per_band.sum(sets) + FILE_BYTES,
        kept=per_band.sum(kept) + FILE_BYTES,
        states_pair=per_band.max(8 * (counts.states + _beside(counts.states, 1))),
        forward=_process(np.maximum(forward, forward_apart)),
        forward_apart=_process(forward_apart),
        backward=_process(np.maximum(backward, backward_apart)),
        backward_apart=_process(backward_apart),
    )


def _process(arrays: Floats) -> Floats:
    """The size of the process with so many bytes of arrays."""
    return BASE_BYTES + arrays + np.minimum(SLACK_SHARE * arrays, SLACK_BYTES)


class _PerBand:
    """Sums and maxima over the ages of every band."""

    def __init__(self, counts: AgeCounts, bands: tuple[Band, ...]) -> None:
        self._starts = np.array([counts.place(band.first) for band in bands])
        # Joining the layers of a band copies them; a band of one layer is not copied.
        self.copies = np.array([0.0 if band.first == band.last else 0.5 for band in bands])
        self.margin = np.where(counts.is_exact, 1.0, ESTIMATE_MARGIN)

    def sum(self, of_ages: Floats) -> Floats:
        total: Floats = np.add.reduceat(of_ages, self._starts)
        return total

    def max(self, of_ages: Floats) -> Floats:
        peak: Floats = np.maximum.reduceat(of_ages, self._starts)
        return peak


def _forward_memory(
    counts: AgeCounts, per_band: _PerBand, words: Floats, ids: str
) -> tuple[Floats, Floats]:
    """Peaks of the forward pass above the base: as usual, and apart."""
    bitmap = counts.slots / 8
    work = 2 * bitmap + 2 * _beside(bitmap, -1)
    if ids == "radix":
        work += RADIX_WORK_BYTES * per_band.margin * counts.states
    work = per_band.max(work)
    writing = (1 + per_band.copies) * words + np.minimum(words / 4, WRITE_BYTES["words"])
    return work + words + _beside(writing, -1), work + writing


def _held_memory(
    counts: AgeCounts, per_band: _PerBand, values: str, keep: str
) -> tuple[Floats, Floats]:
    """What is collected of a band while it is computed, and what it takes while it is written."""
    if keep == "policy":
        states = per_band.sum(per_band.margin * counts.states)
        held = states + per_band.sum(counts.slots / 4)
        learned = LEARNING_BYTES * np.minimum(states, LEARNING_BOARDS)
        return held, held + per_band.sum(counts.slots / 4) + learned
    items = per_band.sum((8 if values == "float64" else 4) * counts.afterstates)
    return items, items + np.minimum(items, WRITE_BYTES["values"])


def _backward_memory(
    counts: AgeCounts, per_band: _PerBand, words: Floats, held: Floats, writing: Floats
) -> tuple[Floats, Floats]:
    """Peaks of the backward pass above the base: as usual, and apart."""
    bitmap = counts.slots / 8
    states, afterstates = per_band.margin * counts.states, per_band.margin * counts.afterstates
    layer = 2 * bitmap + 8 * states
    above = _beside(layer, 1)
    work = per_band.max(layer + 3 * bitmap + 8 * afterstates + above + _beside(above, 1))
    reading = words + np.minimum(words, READ_BYTES)
    usual = work + words + held + _beside(reading, -1) + _beside(writing, 1)
    return usual, work + words + writing


def set_bits(is_square: bool, ids: str) -> tuple[float, float]:
    """Bits on disk of a state and of an afterstate."""
    return (SQUARE_SET_BITS if is_square else SET_BITS)[ids]


def _beside(of_each: Floats, step: int) -> Floats:
    """The entries of the next (1) or the one before (-1) of each; 0 beyond the ends."""
    shifted = np.zeros(len(of_each))
    if step > 0:
        shifted[:-1] = of_each[1:]
    else:
        shifted[1:] = of_each[:-1]
    return shifted
