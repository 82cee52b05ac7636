"""How values are stored: ``float32``, ``float64``, or ``fixed:K``, multiples of 2^-K."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .options import parse_fraction_bits


@dataclass(frozen=True)
class ValueFormat:
    """A storage type of values; `fraction_bits` is the K of ``fixed:K``."""

    name: str
    dtype: np.dtype[Any]
    fraction_bits: int | None = None

    @property
    def missing(self) -> float | int:
        """What no stored value equals: a chunk that reads as this is not there."""
        return np.nan if self.fraction_bits is None else 2**32 - 1

    @property
    def scale(self) -> float:
        """A stored value times this is the value."""
        return 2.0 ** -(self.fraction_bits or 0)

    @property
    def relative_bound(self) -> float:
        """A stored v is off by at most this times the power of two that v reaches."""
        return 2.0**-24 if self.dtype == np.float32 else 0.0

    @property
    def least_bound(self) -> float:
        """What a stored value can be off however small it is."""
        if self.fraction_bits is not None:
            return 2.0 ** -(self.fraction_bits + 1)
        return 2.0**-150 if self.dtype == np.float32 else 0.0

    def encode(self, values: NDArray[np.float64]) -> NDArray[Any]:
        """Values as stored, of this format's dtype."""
        if self.fraction_bits is not None:
            values = np.rint(np.ldexp(values, self.fraction_bits))
        return values.astype(self.dtype)

    def decode(self, stored: NDArray[Any]) -> NDArray[np.float64]:
        """Stored values as float64."""
        values = stored.astype(np.float64)
        return values if self.fraction_bits is None else np.ldexp(values, -self.fraction_bits)

    def rounding_bound(self, values: Any) -> Any:
        """How far stored values can be from the ones computed: float64 as `values`."""
        magnitude = np.abs(np.asarray(values, dtype=np.float64))
        if self.fraction_bits is not None:
            return np.full_like(magnitude, self.least_bound)
        if self.dtype == np.float64:
            return np.zeros_like(magnitude)
        return np.spacing(magnitude.astype(np.float32)).astype(np.float64) / 2

    def best_actions(
        self,
        action_values: NDArray[np.float64],
        afterstate_values: NDArray[np.float64],
        allowance: float,
    ) -> NDArray[np.bool_]:
        """bool[n, 4]: the best actions, those included that may be for all that is stored.

        action_values, afterstate_values : float64[n, 4], NaN where an action is illegal
        allowance : how far two float64 values that are equal can be apart
        """
        bounds = self.rounding_bound(afterstate_values)
        least = np.fmax.reduce(action_values - bounds, axis=1, initial=-np.inf)
        best: NDArray[np.bool_] = action_values + bounds >= least[:, None] - allowance
        return best


def parse_value_format(text: str, max_value: int) -> ValueFormat:
    """The format named, refused where it does not hold values up to `max_value`."""
    fraction_bits = parse_fraction_bits(text, max_value)
    return ValueFormat(text, np.dtype(text if fraction_bits is None else np.uint32), fraction_bits)
