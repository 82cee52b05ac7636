"""What all sets of this package can do, on top of a few operations on arrays.

A serialised set is one array of 64-bit words: a header of eight, then the sections of its kind::

    magic, version, universe (0 for 2^64), number of members, a parameter of the kind,
    two lengths of sections, flags (1: the universe is 0)
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .bits import is_rising
from .spool import Words as Words

MAX_UNIVERSE = 2**64
MAX_MEMBERS = 2**56
"""More than can be stored: positions in bits stay below 2^64."""
VERSION = 1
HEADER_WORDS = 8
EMPTY_UNIVERSE = 1


class DamagedSet(ValueError):
    """The words are no serialised set, or contradict themselves."""


class WordSource(Protocol):
    """Anything that gives 64-bit words by slices: an array, a memory map, a stored array."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: slice, /) -> Words: ...


class Header(NamedTuple):
    """The header of a serialised set, see the module."""

    magic: int
    universe: int
    num_members: int
    parameter: int
    lengths: tuple[int, int]

    def words(self) -> Words:
        """The header as it is stored."""
        flags = 0 if self.universe else EMPTY_UNIVERSE
        numbers = [
            self.magic,
            VERSION,
            self.universe % MAX_UNIVERSE,
            self.num_members,
            self.parameter,
        ]
        return np.array([*numbers, *self.lengths, flags], dtype=np.uint64)

    @classmethod
    def parse(cls, words: Words, magic: int) -> Header:
        """The header of a set of the kind with this magic. Raises DamagedSet."""
        name = magic.to_bytes(8, "little").decode()
        if len(words) < HEADER_WORDS or int(words[0]) != magic:
            raise DamagedSet(f"no set of kind {name}: the first word is not its magic")
        numbers = [int(word) for word in words[1:HEADER_WORDS]]
        if numbers[0] != VERSION:
            raise DamagedSet(f"set of version {numbers[0]}; this program reads {VERSION}")
        universe = numbers[1] or (0 if numbers[6] & EMPTY_UNIVERSE else MAX_UNIVERSE)
        if numbers[2] > min(universe, MAX_MEMBERS):
            raise DamagedSet(f"set header has {numbers[2]} members below {universe}")
        return cls(magic, universe, numbers[2], numbers[3], (numbers[4], numbers[5]))


class SortedSet(ABC):
    """A strictly increasing sequence of integers in ``[0, universe)``, universe at most 2^64.

    Methods take one integer or an array of them; arrays are the fast way. Positions count from 0.
    """

    def __init__(self, source: WordSource, magic: int) -> None:
        if isinstance(source, np.ndarray):
            source = as_words(source)
        self.source = source
        """The serialised set."""
        self._header = Header.parse(self._words(0, HEADER_WORDS), magic)

    def _words(self, start: int, stop: int) -> Words:
        """Some words of the serialised set, as kernels take them."""
        return as_words(self.source[start:stop])

    # --- what each kind does ------------------------------------------------------------------

    @abstractmethod
    def _ranks(self, values: Words) -> tuple[Words, NDArray[np.bool_]]:
        """For every value: the number of members below it, and whether it is one."""

    @abstractmethod
    def _members(self, positions: Words) -> Words:
        """The members at positions that are in range."""

    @abstractmethod
    def _decode_into(self, start: int, members: Words) -> int:
        """Fill a non-empty array with the members from `start` on; returns how many there are."""

    # --- what follows ------------------------------------------------------------------------

    @property
    def universe(self) -> int:
        """What all members are below."""
        return self._header.universe

    def __len__(self) -> int:
        return self._header.num_members

    @property
    def nbytes(self) -> int:
        """Bytes of the set, serialised."""
        return 8 * len(self.source)

    @property
    def words(self) -> Words:
        """The serialised set, all of it read."""
        return self._words(0, len(self.source))

    @property
    def _is_in_memory(self) -> bool:
        return isinstance(self.source, np.ndarray)

    def _is_dense_walk(self, values: Words) -> bool:
        """Whether to answer in one walk over the set: rising values, one for a dozen members."""
        return len(values) * 12 >= len(self) and bool(is_rising(values))

    @property
    def bits_per_member(self) -> float:
        """Bits a member takes, all told; 0 for the empty set."""
        return 8 * self.nbytes / len(self) if len(self) else 0.0

    @property
    def first(self) -> int:
        """The least member. Raises IndexError if there is none."""
        return int(self.get(0))

    @property
    def last(self) -> int:
        """The greatest member. Raises IndexError if there is none."""
        return int(self.get(-1))

    def rank(self, values: ArrayLike) -> Any:
        """Number of members below each value (which may lie beyond the universe)."""
        query, is_scalar = as_queries(values)
        ranks = self._ranks(query)[0].astype(np.int64)
        return int(ranks[0]) if is_scalar else ranks

    def index_of(self, values: ArrayLike) -> Any:
        """Position of each value, -1 where it is no member."""
        query, is_scalar = as_queries(values)
        ranks, found = self._ranks(query)
        positions = np.where(found, ranks.astype(np.int64), -1)
        return int(positions[0]) if is_scalar else positions

    def contains(self, values: ArrayLike) -> Any:
        """Whether each value is a member."""
        query, is_scalar = as_queries(values)
        found = self._ranks(query)[1]
        return bool(found[0]) if is_scalar else found

    def __contains__(self, value: object) -> bool:
        if not isinstance(value, (int, np.integer)) or isinstance(value, bool):
            return False
        return 0 <= int(value) < MAX_UNIVERSE and bool(self.contains(int(value)))

    def get(self, positions: ArrayLike) -> Any:
        """Members at the positions, which count from the end if negative. Raises IndexError."""
        number: Any = positions
        if isinstance(number, int) and not -len(self) <= number < len(self):
            raise IndexError(f"position {number} is out of range; there are {len(self)} members")
        query = _as_integers(positions, "positions")
        if query.ndim > 1:
            raise ValueError(f"positions must be one-dimensional, not {query.ndim}-dimensional")
        given = np.atleast_1d(query)
        outside = np.flatnonzero((given >= len(self)) | (given < -len(self)))
        if len(outside):
            raise IndexError(
                f"position {given[outside[0]]} is out of range; there are {len(self)} members"
            )
        flat = given.astype(np.int64)
        members = self._members(np.where(flat < 0, flat + len(self), flat).astype(np.uint64))
        return int(members[0]) if query.ndim == 0 else members

    def __getitem__(self, position: int | slice) -> Any:
        if isinstance(position, slice):
            start, stop, step = position.indices(len(self))
            if step != 1:
                return self.get(np.arange(start, stop, step))
            return self.decode(start, max(start, stop))
        return self.get(position)

    def succ(self, values: ArrayLike) -> Any:
        """(position, member) of the least member at or above each value; (n, 0) if there is none.

        For one integer: None if there is none.
        """
        query, is_scalar = as_queries(values)
        positions = self._ranks(query)[0]
        return self._found_at(positions, positions < len(self), len(self), is_scalar)

    def pred(self, values: ArrayLike) -> Any:
        """(position, member) of the greatest member at or below each value; (-1, 0) if none.

        For one integer: None if there is none.
        """
        query, is_scalar = as_queries(values)
        ranks, found = self._ranks(query)
        ends = ranks + found
        return self._found_at(ends - np.uint64(1), ends > 0, -1, is_scalar)

    def _found_at(
        self, positions: Words, exists: NDArray[np.bool_], otherwise: int, is_scalar: bool
    ) -> Any:
        members = np.zeros(len(positions), dtype=np.uint64)
        members[exists] = self._members(positions[exists])
        if is_scalar:
            return (int(positions[0]), int(members[0])) if exists[0] else None
        return np.where(exists, positions.astype(np.int64), otherwise), members

    def decode(self, start: int = 0, stop: int | None = None, out: Words | None = None) -> Words:
        """The members at the positions ``[start, stop)`` as an array, `out` if given.

        Raises IndexError, ValueError for an `out` of another shape, DamagedSet.
        """
        stop = len(self) if stop is None else stop
        if not 0 <= start <= stop <= len(self):
            raise IndexError(f"range {start} to {stop} of {len(self)} members")
        members = np.empty(stop - start, dtype=np.uint64) if out is None else out
        if not (
            isinstance(members, np.ndarray)
            and members.shape == (stop - start,)
            and members.dtype == np.dtype(np.uint64)
            and members.flags.c_contiguous
            and members.flags.writeable
        ):
            raise ValueError(f"out must be a contiguous, writable uint64[{stop - start}]")
        written = self._decode_into(start, members) if len(members) else 0
        if written != len(members):
            raise DamagedSet(f"{len(members)} members from {start} on decode to {written}")
        return members

    def iter_from(self, position: int = 0, chunk: int = 1 << 16) -> Iterator[int]:
        """The members from a position on, decoded `chunk` at a time."""
        for start in range(position, len(self), chunk):
            yield from self.decode(start, min(start + chunk, len(self))).tolist()

    def __iter__(self) -> Iterator[int]:
        return self.iter_from()

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__}: {len(self):,} of {self.universe:,}, "
            f"{self.bits_per_member:.2f} bits each>"
        )


def _as_integers(values: Any, name: str) -> NDArray[Any]:
    """An array of integers, uint64 if nothing is in it. Raises TypeError."""
    array = np.asarray(values)
    if array.dtype.kind in "fO" and not isinstance(values, np.ndarray):
        # numpy makes floats of a list of integers of which some need 64 bits.
        whole = np.array(values, dtype=object)
        if all(isinstance(v, int) and 0 <= v < MAX_UNIVERSE for v in whole.flat):
            return whole.astype(np.uint64)
    if not array.size:
        return array.astype(np.uint64)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} must be integers, not {array.dtype}")
    return array


def as_words(words: Any) -> Words:
    """An array of 64-bit words, contiguous and in the host's byte order. Raises TypeError."""
    array = np.asarray(words)
    if array.ndim != 1 or array.dtype.kind != "u" or array.itemsize != 8:
        raise TypeError(f"words must be uint64[n], not {array.dtype}{list(array.shape)}")
    return np.ascontiguousarray(array, dtype=np.uint64)


def as_queries(values: Any) -> tuple[Words, bool]:
    """Integers as uint64[n], and whether one was given. Raises TypeError, ValueError."""
    if isinstance(values, int) and not isinstance(values, bool):
        if not 0 <= values < MAX_UNIVERSE:
            raise ValueError(f"{values} is not in [0, 2^64)")
        return np.array([values], dtype=np.uint64), True
    array = _as_integers(values, "values")
    flat = array.reshape(-1) if array.ndim != 1 else array
    if array.ndim > 1:
        raise ValueError(
            f"values must be a number or one-dimensional, not {array.ndim}-dimensional"
        )
    if array.dtype.kind == "i" and len(flat) and flat.min() < 0:
        raise ValueError(f"value {flat.min()} is negative")
    return np.ascontiguousarray(flat, dtype=np.uint64), array.ndim == 0


def as_members(members: ArrayLike, universe: int, after: int = -1) -> Words:
    """Members as uint64[n], checked. Raises TypeError, ValueError, naming the position.

    after : what the first member must exceed
    """
    array = _as_integers(members, "members")
    if array.ndim != 1:
        raise ValueError(f"members must be one-dimensional, not {array.ndim}-dimensional")
    if not len(array):
        return np.empty(0, dtype=np.uint64)
    if array.dtype.kind == "i" and array.min() < 0:
        raise ValueError(
            f"member {array[array < 0][0]} at position {np.argmax(array < 0)} is negative"
        )
    flat = np.ascontiguousarray(array, dtype=np.uint64)
    if int(flat[0]) <= after:
        raise ValueError(f"member {flat[0]} at position 0 does not exceed the one before, {after}")
    falls = flat[1:] <= flat[:-1]
    if falls.any():
        i = int(np.argmax(falls)) + 1
        kind = "repeats" if flat[i] == flat[i - 1] else "falls below"
        raise ValueError(f"member {flat[i]} at position {i} {kind} the one before")
    if int(flat[-1]) >= universe:
        raise ValueError(
            f"member {flat[-1]} at position {len(flat) - 1} is not below the universe {universe}"
        )
    return flat


def least_universe(members: Words) -> int:
    """One past the last of sorted members."""
    return int(members[-1]) + 1 if len(members) else 0


def checked_universe(universe: int) -> int:
    """A universe from 0 to 2^64."""
    number = operator.index(universe)
    if not 0 <= number <= MAX_UNIVERSE:
        raise ValueError(f"universe {number} is not in [0, 2^64]")
    return number
