"""What the sets of a solution take in one representation and another, measured layer by layer.

raw
    packed boards, `RAW_BITS` each;
radix_elias_fano
    the paper's IDs, sorted, as one Elias–Fano sequence a layer;
index_elias_fano
    slots of the perfect index, likewise;
index_partitioned
    the same slots as a partitioned Elias–Fano set with the smallest form of every partition;
index_disk
    that set on disk, through Zstd: the files as the store writes them, where partitions take the
    form of a bitmap up to `BITMAP_BIAS` times the smallest, because Zstd packs bitmaps better;
entropy
    ``log2(C(slots, members))``: what slots take that are told apart by their density alone.

Sets of each kind are built and counted with headers, directories and samples. A *row* is a run of
stored bands; the sets of one band are in memory at a time, and 8 bytes for each member of a layer.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elias_fano import EliasFano, PartitionedEliasFano, encode_bitmap

from .band_builder import NAMES
from .errors import NotSolved
from .ids import PARTITION_MEMBERS, IndexIds, RadixIds
from .layer import Band
from .layer_index import LayerIndex, build_layer_index
from .layer_sets import LayerSets
from .progress import Progress
from .records import SETS
from .store import Store
from .stored_array import ArrayToWrite

RAW_BITS = 48
MAX_ROWS = 16
DECODE_MEMBERS = 1 << 22

COLUMNS = (
    "raw", "radix_elias_fano", "index_elias_fano", "index_partitioned", "index_disk", "entropy"
)  # fmt: skip


@dataclass
class SetSizes:
    """Sizes of the sets of one name, "states" or "afterstates", over a run of ages.

    members, slots : boards in the sets, modulo the flips, and slots of the index
    bits : by the names of `COLUMNS`, of all members together
    """

    name: str
    first: int
    last: int
    members: int = 0
    slots: int = 0
    bits: dict[str, float] = field(default_factory=lambda: dict.fromkeys(COLUMNS, 0.0))

    def add(self, other: SetSizes) -> None:
        """Count in the sets of another run of ages."""
        self.first = min(self.first, other.first)
        self.last = max(self.last, other.last)
        self.members += other.members
        self.slots += other.slots
        for column in COLUMNS:
            self.bits[column] += other.bits[column]

    def per_member(self) -> dict[str, float]:
        """Bits a member takes; 0 if there is none."""
        return {name: bits / max(self.members, 1) for name, bits in self.bits.items()}


def measure_sets(
    sets: LayerSets,
    first: int | None = None,
    last: int | None = None,
    *,
    show_progress: bool = False,
) -> list[tuple[SetSizes, SetSizes]]:
    """Sizes of the states and of the afterstates, row by row upward.

    The rows hold the stored bands that lie between the ages `first` and `last`, several a row
    where there are many. Raises NotSolved if there is none, SolutionDamaged.
    """
    first = 4 if first is None else first
    last = sets.max_age if last is None else last
    bands = [b for b in sets.bands if first <= b.first and min(b.last, sets.max_age) <= last]
    if not sets.bands:
        raise NotSolved(f"{sets.store.path} holds no sets (any more)")
    if not bands:
        stored = ", ".join(f"{b.first} to {min(b.last, sets.max_age)}" for b in sets.bands[:3])
        raise NotSolved(
            f"no stored band of ages lies between {first} and {last}; "
            f"the bands are {stored}{', ...' if len(sets.bands) > 3 else ''}"
        )
    total = sum(_members(sets, age) for band in bands for age in _ages(sets, band))
    rows = []
    with Progress(f"{sets.shape.name} sets", float(total), enabled=show_progress) as bar:
        size = -(-len(bands) // MAX_ROWS)
        for start in range(0, len(bands), size):
            run = bands[start : start + size]
            row = [_no_sizes(sets, name, run[0]) for name in NAMES]
            for band in run:
                for sizes, more in zip(row, _measure_band(sets, band, bar), strict=True):
                    sizes.add(more)
            rows.append((row[0], row[1]))
    return rows


def total_sizes(rows: list[tuple[SetSizes, SetSizes]], number: int) -> SetSizes:
    """All rows of states (`number` = 0) or of afterstates (1) in one."""
    total = SetSizes(NAMES[number], rows[0][0].first, rows[0][0].last)
    for row in rows:
        total.add(row[number])
    return total


def size_records(rows: list[tuple[SetSizes, SetSizes]]) -> list[dict[str, Any]]:
    """The rows as JSON objects, then the totals; `bits` are per member."""
    totals = [total_sizes(rows, number) for number in range(len(NAMES))]
    return [
        {**asdict(sizes), "bits": sizes.per_member(), "is_total": is_total}
        for is_total, line in [*((False, row) for row in rows), (True, totals)]
        for sizes in line
    ]


def _ages(sets: LayerSets, band: Band) -> Iterator[int]:
    return (age for age in band.ages if age <= sets.max_age)


def _members(sets: LayerSets, age: int) -> int:
    counts = sets.layer_counts(age)
    return counts.state_members + counts.afterstate_members


def _no_sizes(sets: LayerSets, name: str, band: Band) -> SetSizes:
    return SetSizes(name, band.first, min(band.last, sets.max_age))


def _measure_band(sets: LayerSets, band: Band, bar: Progress) -> list[SetSizes]:
    stored = sets.read_band(band)
    found = [_no_sizes(sets, name, band) for name in NAMES]
    to_write: dict[str, list[NDArray[np.uint64]]] = {name: [] for name in NAMES}
    index_ids = IndexIds(sets.shape)
    for age in _ages(sets, band):
        index = build_layer_index(sets.shape, age)
        for sizes in found:
            bitmap = stored.bitmap(age, sizes.name)
            _add_layer(sizes, sets, index, bitmap)
            if sets.ids.name != index_ids.name:
                to_write[sizes.name].append(index_ids.encode(index, bitmap))
        bar.advance(age, float(_members(sets, age)), sets.layer_counts(age).states)
    if sets.ids.name == index_ids.name:
        on_disk = sets.store.stored_bytes(SETS, band)
    else:
        on_disk = _written_bytes(band, to_write)
    for sizes in found:
        sizes.bits["index_disk"] = 8.0 * on_disk[sizes.name]
    return found


def _add_layer(
    sizes: SetSizes, sets: LayerSets, index: LayerIndex, bitmap: NDArray[np.uint64]
) -> None:
    """Count in one layer, in every representation but that on disk."""
    radix = RadixIds(sets.shape)
    num_slots = int(index.num_slots)
    partitioned = PartitionedEliasFano(
        encode_bitmap(bitmap, num_slots, partition_size=PARTITION_MEMBERS)
    )
    count = len(partitioned)
    chunks = (
        partitioned.decode(start, min(start + DECODE_MEMBERS, count))
        for start in range(0, count, DECODE_MEMBERS)
    )
    in_index = EliasFano.from_chunks(chunks, num_slots, count)
    in_radix = EliasFano.from_members(radix.members(index, bitmap), radix.universe(int(index.age)))
    sizes.members += count
    sizes.slots += num_slots
    sizes.bits["raw"] += RAW_BITS * count
    sizes.bits["radix_elias_fano"] += 8 * in_radix.nbytes
    sizes.bits["index_elias_fano"] += 8 * in_index.nbytes
    sizes.bits["index_partitioned"] += 8 * partitioned.nbytes
    sizes.bits["entropy"] += entropy_bound(num_slots, count)


def entropy_bound(num_slots: int, count: int) -> float:
    """``log2(C(num_slots, count))``, the bits that tell all sets of `count` slots apart.

    >>> round(entropy_bound(52, 5), 3) == round(math.log2(2_598_960), 3)
    True
    """
    logarithm = math.lgamma(num_slots + 1) - math.lgamma(count + 1)
    return (logarithm - math.lgamma(num_slots - count + 1)) / math.log(2)


def _written_bytes(band: Band, to_write: dict[str, list[NDArray[np.uint64]]]) -> dict[str, int]:
    """Bytes on disk of a band's sets, written by the store to a place of their own."""
    arrays = {
        name: ArrayToWrite("words", np.concatenate(words)) for name, words in to_write.items()
    }
    with tempfile.TemporaryDirectory(prefix="solver2048-") as directory:
        store = Store(directory)
        store.create({})
        store.write_band(SETS, band, arrays, {})
        return store.stored_bytes(SETS, band)


def format_sizes(rows: list[tuple[SetSizes, SetSizes]]) -> str:
    """Two tables of at most 80 columns, states and afterstates, each with a line for all ages."""
    lines = []
    for number, name in enumerate(NAMES):
        lines.append(
            f"{name:<13} {'members':>17} density  raw  radix index index  index entropy\n"
            f"{'ages':>13} {'':>17} {'':>7}          EF    EF part.   disk   bound"
        )
        lines += [_line(row[number]) for row in rows]
        if len(rows) > 1:
            lines.append(_line(total_sizes(rows, number)))
        lines.append("")
    lines += [
        "Bits per member. raw: packed boards. radix, index: the IDs of the sets. EF: one",
        "Elias-Fano sequence a layer. part.: partitioned Elias-Fano. disk: the same, with",
        "more bitmaps, through Zstd as stored. entropy bound: by density alone.",
    ]
    return "\n".join(lines)


def _line(sizes: SetSizes) -> str:
    bits = sizes.per_member()
    widths = {"raw": "5.1f", "radix_elias_fano": "7.2f", "index_elias_fano": "6.2f",
              "index_partitioned": "6.2f", "index_disk": "7.2f", "entropy": "8.2f"}  # fmt: skip
    ages = f"{sizes.first}-{sizes.last}"
    density = sizes.members / max(sizes.slots, 1)
    return f"{ages:>13} {sizes.members:>17,} {density:>7.4f}" + "".join(
        format(bits[column], width) for column, width in widths.items()
    )
