"""What is counted in a layer, and the bands in which layers are stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class LayerCounts:
    """Counts of one age.

    states, afterstates, terminal : modulo all symmetries of the board
    states_labelled, afterstates_labelled : all boards
    state_members, afterstate_members : modulo the flips, as the sets hold them
    num_slots : slots of the perfect index
    """

    age: int
    states: int
    states_labelled: int
    afterstates: int
    afterstates_labelled: int
    terminal: int
    state_members: int
    afterstate_members: int
    num_slots: int

    PUBLISHED = (
        "age", "states", "states_labelled", "afterstates", "afterstates_labelled", "terminal"
    )  # fmt: skip

    def published(self) -> dict[str, int]:
        """The counts that are published per age."""
        return {name: getattr(self, name) for name in self.PUBLISHED}

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> LayerCounts:
        return cls(**{name: int(record[name]) for name in cls.__dataclass_fields__})


@dataclass(frozen=True, order=True)
class Band:
    """The ages ``first, first + 2, ..., last``."""

    first: int
    last: int

    @property
    def ages(self) -> range:
        return range(self.first, self.last + 1, 2)

    @property
    def name(self) -> str:
        return f"{self.first:05d}-{self.last:05d}"
