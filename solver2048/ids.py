"""IDs: the numbers by which a set stores the boards of a layer.

``index``
    the slots of the perfect index (`.layer_index`), which kernels work on anyway;
``radix``
    the paper's: the exponents of a board's cells as digits of a number, the last cell left out
    because the age gives it back, and of the four images under the flips the least::

        ID = min over images of  e[0] b^(cells - 2) + e[1] b^(cells - 3) + ... + e[cells - 2]

    ``e`` lists the cells in the order of the packed board; the base ``b`` is one more than the
    largest exponent possible at the age, ``floor(log2(age)) + 1``.

Kernels always see bitmaps in index order: IDs appear where a set is written or read. A layer's
values lie in the order of its set, so the position of a value is that of the ID among the members.

T. Kaneko and S. Yamashita, "Strongly Solving 2048 4x3" (2026).
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from elias_fano import DamagedSet, PartitionedEliasFano, encode_bitmap, encode_members
from elias_fano.bits import empty_bitmap
from elias_fano.interface import HEADER_WORDS

from .bands import slots_per_age
from .errors import UsageError
from .kernels.radix import radix_codes_into, radix_ids_into
from .kernels.slots import mark_slots
from .kernels.values import positions_into
from .layer_index import LayerIndex, board_slots, build_layer_index, member_boards, slot_boards
from .radix import build_radix, radix_base
from .shape import Shape

# Measured on 4x3 layers: larger partitions save little, and a bitmap of a layer through Zstd takes
# half of what Elias–Fano does, though it is larger before.
PARTITION_MEMBERS = 4096
BITMAP_BIAS = 4.0

CHUNK_WORDS = 1 << 14
CHUNK_MEMBERS = 1 << 18
OPEN_INDICES = 32

Words = NDArray[np.uint64]
Part = slice | Words
"""A part of an array: a range, or positions."""


def directory_words(num_members: int) -> int:
    """Words of a set's header and directory, which come first."""
    return HEADER_WORDS + 2 * -(-num_members // PARTITION_MEMBERS)


class Ids(ABC):
    """What a store has to know of IDs. All numbers and packed boards are uint64[n].

    A layer's bitmap is in index order, a spare word included; a set is a partitioned Elias–Fano
    set of IDs.
    """

    name: ClassVar[str]

    def __init__(self, shape: Shape) -> None:
        self.shape = shape

    @abstractmethod
    def universe(self, age: int) -> int:
        """What all IDs of an age are below."""

    @abstractmethod
    def of_boards(self, age: int, codes: Words) -> Words:
        """IDs of packed boards of an age, the same for all four images of a board."""

    @abstractmethod
    def boards(self, age: int, ids: Words) -> Words:
        """A packed board of every ID of an age; the inverse of `of_boards` up to the flips."""

    @abstractmethod
    def encode(self, index: LayerIndex, bitmap: Words) -> Words:
        """The serialised set of the members of a layer's bitmap."""

    @abstractmethod
    def bitmap(self, age: int, stored: PartitionedEliasFano) -> Words:
        """The bitmap of a layer's set. Raises DamagedSet."""

    @abstractmethod
    def index_order(
        self, age: int, stored: PartitionedEliasFano, ranks: Words
    ) -> Iterator[tuple[slice, Part]]:
        """Parts of a layer's set, upward, each with where its members lie in index order.

        ranks : the ranked bitmap of the same layer
        """

    @abstractmethod
    def release(self) -> None:
        """Let go of what is kept to answer the next call faster."""


class IndexIds(Ids):
    """Slots of the perfect index."""

    name = "index"

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self._index = functools.lru_cache(maxsize=OPEN_INDICES)(
            functools.partial(build_layer_index, shape)
        )

    def universe(self, age: int) -> int:
        return int(slots_per_age(self.shape)[age // 2])

    def of_boards(self, age: int, codes: Words) -> Words:
        return board_slots(self.shape, self._index(age), codes)

    def boards(self, age: int, ids: Words) -> Words:
        return slot_boards(self.shape, self._index(age), ids)

    def encode(self, index: LayerIndex, bitmap: Words) -> Words:
        return encode_bitmap(
            bitmap,
            int(index.num_slots),
            partition_size=PARTITION_MEMBERS,
            bitmap_bias=BITMAP_BIAS,
        )

    def bitmap(self, age: int, stored: PartitionedEliasFano) -> Words:
        return stored.to_bitmap()

    def index_order(
        self, age: int, stored: PartitionedEliasFano, ranks: Words
    ) -> Iterator[tuple[slice, Part]]:
        for start in range(0, len(stored), CHUNK_MEMBERS):
            part = slice(start, min(start + CHUNK_MEMBERS, len(stored)))
            yield part, part

    def release(self) -> None:
        self._index.cache_clear()


class RadixIds(Ids):
    """The paper's IDs.

    A layer is converted chunk by chunk, but for the sorting: `members` and `encode` hold all IDs
    of the layer, 8 bytes each.
    """

    name = "radix"

    def universe(self, age: int) -> int:
        return int(radix_base(age) ** (self.shape.num_cells - 1))

    def of_boards(self, age: int, codes: Words) -> Words:
        ids = np.empty(len(codes), dtype=np.uint64)
        radix_ids_into(build_radix(self.shape, age), codes, ids)
        return ids

    def boards(self, age: int, ids: Words) -> Words:
        """A packed board of every ID of an age. Raises DamagedSet for what is no board's ID."""
        codes = np.empty(len(ids), dtype=np.uint64)
        num_boards = int(radix_codes_into(build_radix(self.shape, age), ids, codes))
        if num_boards < len(ids):
            raise DamagedSet(f"{ids[num_boards]} is the radix ID of no board")
        return codes

    def members(self, index: LayerIndex, bitmap: Words) -> Words:
        """Sorted IDs of the members of a layer's bitmap. Time O(members log members)."""
        radix = build_radix(self.shape, int(index.age))
        ids = np.empty(int(np.bitwise_count(bitmap).sum(dtype=np.int64)), dtype=np.uint64)
        done = 0
        for start in range(0, len(bitmap), CHUNK_WORDS):
            stop = min(start + CHUNK_WORDS, len(bitmap))
            codes = member_boards(self.shape, index, bitmap, start, stop)
            radix_ids_into(radix, codes, ids[done : done + len(codes)])
            done += len(codes)
        ids.sort()
        return ids

    def encode(self, index: LayerIndex, bitmap: Words) -> Words:
        return encode_members(
            self.members(index, bitmap),
            self.universe(int(index.age)),
            partition_size=PARTITION_MEMBERS,
            bitmap_bias=BITMAP_BIAS,
        )

    def bitmap(self, age: int, stored: PartitionedEliasFano) -> Words:
        bitmap = empty_bitmap(int(slots_per_age(self.shape)[age // 2]))
        for _, slots in self._slots(age, stored):
            mark_slots(slots, bitmap)
        return bitmap

    def index_order(
        self, age: int, stored: PartitionedEliasFano, ranks: Words
    ) -> Iterator[tuple[slice, Part]]:
        for part, slots in self._slots(age, stored):
            positions = np.empty(len(slots), dtype=np.uint64)
            positions_into(ranks, slots, positions)
            yield part, positions

    def release(self) -> None:
        """Nothing is kept."""

    def _slots(self, age: int, stored: PartitionedEliasFano) -> Iterator[tuple[slice, Words]]:
        """Parts of a set, each with the slots of its members. Raises DamagedSet."""
        index = build_layer_index(self.shape, age)
        for start in range(0, len(stored), CHUNK_MEMBERS):
            stop = min(start + CHUNK_MEMBERS, len(stored))
            codes = self.boards(age, stored.decode(start, stop))
            yield slice(start, stop), board_slots(self.shape, index, codes)


_KINDS: dict[str, type[Ids]] = {kind.name: kind for kind in (IndexIds, RadixIds)}


def make_ids(name: str, shape: Shape) -> Ids:
    """The IDs of a name, ``index`` or ``radix``. Raises UsageError.

    >>> from .shape import SHAPES
    >>> make_ids("radix", SHAPES["4x3"]).universe(1030) == 11**11
    True
    """
    if name not in _KINDS:
        raise UsageError(f"ids {name!r} are neither {' nor '.join(_KINDS)}")
    return _KINDS[name](shape)
