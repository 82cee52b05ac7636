"""How many slots, states and afterstates every age has, exact where known, else estimated.

Slots are exact without enumerating anything. The states of an age that is neither enumerated nor
expected are its slots over an assumed number of slots per state, a curve over the age as a share of
the top age (`SLOTS_PER_STATE`, measured on 4x3 up to a tenth and rough above), scaled so that all
ages together have the published total. Afterstates are the published share of states.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .bands import slots_per_age
from .layer import LayerCounts
from .published import published_figures
from .shape import Shape

SLOTS_PER_STATE = {0.0: 3.2, 0.043: 3.2, 0.061: 4.0, 0.244: 6.0, 0.733: 9.0, 0.875: 9.0,
                   0.8752: 14.0, 1.0: 14.0}  # fmt: skip
"""By age over top age; linear between."""


@dataclass(frozen=True)
class AgeCounts:
    """Counts of members, modulo the flips, of the ages ``4, 6, ..., max_age``.

    slots : int64, exact; states, afterstates : float64; is_exact : bool, whether states are
    source : where the states come from, for people
    """

    shape: Shape
    max_age: int
    slots: NDArray[np.int64]
    states: NDArray[np.float64]
    afterstates: NDArray[np.float64]
    is_exact: NDArray[np.bool_]
    source: str

    @property
    def ages(self) -> NDArray[np.int64]:
        return np.arange(4, self.max_age + 1, 2)

    @property
    def is_complete(self) -> bool:
        return self.max_age == self.shape.top_age

    def place(self, age: int) -> int:
        """Where an age lies in the arrays."""
        return (age - 4) // 2


def count_ages(
    shape: Shape,
    max_age: int | None = None,
    *,
    enumerated: Iterable[LayerCounts] = (),
    expected: Mapping[int, int] | None = None,
) -> AgeCounts:
    """Counts of the ages up to `max_age`: of layers enumerated, else as expected, else estimated.

    expected : states by age, modulo all symmetries

    >>> from .shape import SHAPES
    >>> counts = count_ages(SHAPES["2x2"], 8, expected={4: 2})
    >>> counts.slots.tolist(), counts.is_exact.tolist()
    ([4, 5, 10], [True, False, False])
    """
    max_age = shape.top_age if max_age is None else min(max_age, shape.top_age)
    slots = slots_per_age(shape)[2:]
    # Sets hold boards modulo the flips: on a square board about two for each class.
    images = 2 if shape.is_square else 1
    figures = published_figures(shape)
    share = figures["afterstates"] / figures["states"]
    states = _estimated_states(shape, slots, images * float(figures["states"]))
    afterstates = share * states
    is_exact = np.zeros(len(slots), dtype=np.bool_)
    known = dict.fromkeys(("enumerated", "expected"), 0)
    for age, number in (expected or {}).items():
        if 4 <= age <= max_age and age % 2 == 0:
            i = (age - 4) // 2
            states[i], afterstates[i], is_exact[i] = images * number, images * share * number, True
            known["expected"] += 1
    for layer in enumerated:
        i = (layer.age - 4) // 2
        states[i], afterstates[i] = layer.state_members, layer.afterstate_members
        known["enumerated"] += layer.age <= max_age
        is_exact[i] = True
    for i in range(len(slots)):
        if (i + 2).bit_count() >= shape.num_cells:  # no game comes to a move there
            afterstates[i] = 0
    end = max_age // 2 - 1
    num_estimated = int(end - is_exact[:end].sum())
    parts = [f"{number:,} ages {name}" for name, number in known.items() if number]
    if num_estimated:
        parts.append(f"{num_estimated:,} ages estimated: slots over an assumed density, scaled to "
                     f"{figures['source']}")  # fmt: skip
    return AgeCounts(shape, max_age, slots[:end], states[:end], afterstates[:end], is_exact[:end],
                     "; ".join(parts))  # fmt: skip


def _estimated_states(shape: Shape, slots: NDArray[np.int64], total: float) -> NDArray[np.float64]:
    """States of all ages, scaled to a total."""
    shares = 2 * np.arange(2, len(slots) + 2) / shape.top_age
    curve = np.interp(shares, list(SLOTS_PER_STATE), list(SLOTS_PER_STATE.values()))
    states = slots / curve
    scaled: NDArray[np.float64] = states * (total / states.sum())
    return scaled
