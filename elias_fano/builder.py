"""What the builders of all kinds of set have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from .interface import Header, Words, as_members, checked_universe
from .spool import Spool


class SetBuilder(ABC):
    """Builds a serialised set from a stream of sorted chunks, section by section.

    spool_directory : where finished words are kept meanwhile, in nameless files; None: in memory
    """

    def __init__(self, universe: int, spool_directory: Path | None) -> None:
        self._universe = checked_universe(universe)
        # Both kinds have three.
        self._sections = [Spool(spool_directory) for _ in range(3)]
        self._last = -1
        self._is_finished = False
        self._count = 0

    @abstractmethod
    def _take(self, members: Words) -> None:
        """Encode checked members, of which at least one, as far as they can be."""

    @abstractmethod
    def _close(self) -> Header:
        """Encode the rest."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for section in self._sections:
            section.close()

    def _check_not_finished(self) -> None:
        if self._is_finished:
            raise ValueError("the set is finished; a new one takes a new builder")

    def push(self, members: ArrayLike) -> None:
        """Append members, sorted and above all before. Raises TypeError, ValueError, OSError."""
        self._check_not_finished()
        flat = as_members(members, self._universe, self._last)
        if len(flat):
            self._count += len(flat)
            self._last = int(flat[-1])
            self._take(flat)

    def pieces(self, expected_count: int | None = None) -> tuple[int, Iterator[Words]]:
        """(number of words of the set, its words piece by piece). Ends the building.

        Raises ValueError if the set has not `expected_count` members.
        """
        self._check_not_finished()
        if expected_count is not None and expected_count != self._count:
            raise ValueError(f"{self._count} members were pushed, {expected_count} expected")
        header = self._close().words()
        self._is_finished = True

        def pieces() -> Iterator[Words]:
            yield header
            for section in self._sections:
                yield from section.pieces()

        return len(header) + sum(len(section) for section in self._sections), pieces()

    def finish(self) -> Words:
        """The serialised set. Raises ValueError if members are missing."""
        length, pieces = self.pieces()
        words = np.empty(length, dtype=np.uint64)
        at = 0
        with self:
            for piece in pieces:
                words[at : at + len(piece)] = piece
                at += len(piece)
        return words
