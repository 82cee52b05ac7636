"""Where a solution lies: a directory, or a URL below which its files are read."""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod

from .errors import UsageError

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)


def is_url(path: str | os.PathLike[str]) -> bool:
    """Whether a path is the URL of a solution and no directory.

    >>> is_url("https://example.org/solutions/3x3"), is_url("solutions/3x3")
    (True, False)
    """
    return isinstance(path, str) and _SCHEME.match(path) is not None


def check_directory(path: str | os.PathLike[str]) -> None:
    """Raise UsageError for a URL, where nothing can be written."""
    if is_url(path):
        raise UsageError(
            f"{path} can only be asked (query); to solve, verify or repair, work on a directory"
        )


class Location(ABC):
    """The files of a solution, for reading. Names are paths below it; safe for several threads.

    Reads raise SolutionDamaged, and RemoteFailed where it is far away.

    needs_catalogues : whether to look for each file would take too long
    """

    needs_catalogues = False

    @abstractmethod
    def __str__(self) -> str:
        """The place of it all, as it was given."""

    @abstractmethod
    def shown(self, name: str) -> str:
        """A file's place, for messages."""

    @abstractmethod
    def read(self, name: str) -> bytes | None:
        """All bytes of a small file, None if it is not there."""

    @abstractmethod
    def read_tail(self, name: str, num_bytes: int) -> tuple[bytes, int] | None:
        """The last bytes of a file, or all if it is shorter, and its size; None if not there."""

    @abstractmethod
    def read_ranges(self, name: str, size: int, ranges: list[tuple[int, int]]) -> list[bytes]:
        """The bytes [start, stop) for every range of a file that must have a size."""
