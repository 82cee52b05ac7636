"""Bands: the consecutive ages that are stored, and committed, as one unit.

A band takes ages until it has `BAND_SLOTS` slots of the perfect index, so small layers share one
and a large layer has its own. The cut is a fixed function of the shape.
"""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

from .layer import Band
from .shape import Shape
from .tables import build_tables

BAND_SLOTS = 1 << 26

KEPT_SLOTS = 1 << 40
"""Between two bands whose checkpoints are kept: eight on 4x3, none on smaller boards."""


@functools.cache
def slots_per_age(shape: Shape) -> NDArray[np.int64]:
    """Number of slots of the index of every age, at ``[age // 2]``; exact, nothing enumerated."""
    tables = build_tables(shape)
    length = shape.top_age // 2 + 1
    half_sums = (tables.class_sum // 2).astype(np.int64)
    sizes = tables.class_size.astype(np.int64)
    half_sizes = tables.class_half_size.astype(np.int64)
    outer = np.zeros(length, dtype=np.int64)  # pairs of rows 0 and 2, by the half of their sum
    for class0, half_sum0 in enumerate(half_sums):
        below = half_sums[: class0 + 1]
        fits = below + half_sum0 < length
        outer[half_sum0 + below[fits]] += half_sizes[class0] * sizes[: class0 + 1][fits]
    middle = np.zeros(length, dtype=np.int64)
    num_middle = int(tables.num_middle_classes)
    middle[half_sums[:num_middle]] = sizes[:num_middle]
    slots = np.zeros(length, dtype=np.int64)
    for half_sum1 in half_sums[:num_middle]:
        slots[half_sum1:] += middle[half_sum1] * outer[: length - half_sum1]
    return slots


@functools.cache
def bands_of(shape: Shape) -> tuple[Band, ...]:
    """All bands of a shape, upward."""
    slots = slots_per_age(shape)
    bands = []
    first = 4
    filled = 0
    for age in range(4, shape.top_age + 1, 2):
        filled += int(slots[age // 2])
        if filled >= BAND_SLOTS or age == shape.top_age:
            bands.append(Band(first, age))
            first, filled = age + 2, 0
    return tuple(bands)


def kept_checkpoints(shape: Shape) -> tuple[Band, ...]:
    """The bands whose checkpoint in the backward pass is kept for `repair`, downward."""
    slots = slots_per_age(shape)
    kept = []
    passed = 0
    for band in reversed(bands_of(shape)):
        passed += int(slots[band.first // 2 : band.last // 2 + 1].sum())
        if passed >= KEPT_SLOTS:
            kept.append(band)
            passed = 0
    return tuple(kept)
