"""Time the sets of elias_fano against numpy on the plain sorted array, in one run.

    python scripts/bench_elias_fano.py                    # 10^8 members, about 10 GB of memory
    python scripts/bench_elias_fano.py --members 10000000

Two data sets: uniform random 48-bit IDs, and packed 4x3 boards of one age (clustered, as real IDs
of boards are). Ratios are to np.searchsorted for queries and to np.copyto for decoding; p99 is that
of calls with 1,000 random queries, in nanoseconds a query. Bitmaps are converted with the options
given: partitions of 128 members in their smallest form, and as solver2048 stores its layers.
"""

from __future__ import annotations

import argparse
import functools
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from elias_fano import EliasFano, PartitionedEliasFano, encode_bitmap
from elias_fano.bits import empty_bitmap
from solver2048.layer_index import build_layer_index, slot_boards
from solver2048.shape import SHAPES

CLUSTERED_AGE = 630


def best_seconds(function: Callable[[], object], repeats: int = 3) -> float:
    """Least wall time of a few calls."""
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        function()
        times.append(time.perf_counter() - started)
    return min(times)


def timed(function: Callable[[NDArray[np.uint64]], object], argument: NDArray[np.uint64]) -> float:
    """Wall time of one call."""
    started = time.perf_counter()
    function(argument)
    return time.perf_counter() - started


def uniform_members(count: int, rng: np.random.Generator) -> NDArray[np.uint64]:
    members = np.unique(rng.integers(0, 2**48, count + count // 1000, dtype=np.uint64))
    return np.sort(rng.choice(members, count, replace=False, shuffle=False))


def clustered_members(count: int, rng: np.random.Generator) -> NDArray[np.uint64]:
    """Packed 4x3 boards of one age."""
    shape = SHAPES["4x3"]
    index = build_layer_index(shape, CLUSTERED_AGE)
    num_slots = int(index.num_slots)
    # Whole stretches of slots are empty, as in a real layer.
    stretches = rng.random(-(-num_slots // 64)) < min(1.0, 2.2 * count / num_slots)
    slots = np.flatnonzero(np.repeat(stretches, 64)[:num_slots]).astype(np.uint64)
    slots = slots[rng.random(len(slots)) < 0.6][:count]
    return np.unique(slot_boards(shape, index, slots))


def measure(name: str, members: NDArray[np.uint64], rng: np.random.Generator) -> None:
    count = len(members)
    universe = 2**48
    num_queries = min(10**7, count)
    random = members[rng.integers(0, count, num_queries)]
    random[::2] += rng.integers(0, 3, len(random[::2])).astype(np.uint64)  # half are near misses
    ordered = np.sort(random)
    expected = np.searchsorted(members, random)
    print(f"{name}: {count:,} members, {num_queries:,} queries")
    plain = {
        "random": best_seconds(lambda: np.searchsorted(members, random), 2),
        "sorted": best_seconds(lambda: np.searchsorted(members, ordered), 2),
    }
    copy = np.empty_like(members)
    copying = best_seconds(lambda: np.copyto(copy, members))
    per = 1e9 / num_queries
    print(f"  {'':24}{'bits':>6}{'random':>15}{'p99':>6}{'sorted':>16}{'decode':>16}{'build':>9}")
    print(
        f"  {'np.searchsorted':24}{64:6.1f}{plain['random'] * per:7.0f} ns            "
        f"{plain['sorted'] * per:9.0f} ns      {count / copying / 1e9:8.2f} G/s"
    )
    for label, kind in (("EliasFano", EliasFano), ("PartitionedEliasFano", PartitionedEliasFano)):
        stored = kind.from_members(members[:1000], universe)
        stored.index_of(random[:100])
        stored.decode(0, 10)
        building = best_seconds(lambda kind=kind: kind.from_members(members, universe), 1)
        stored = kind.from_members(members, universe)
        assert np.array_equal(stored.rank(random), expected)
        spent = {
            order: best_seconds(lambda queries=queries, stored=stored: stored.index_of(queries))
            for order, queries in (("random", random), ("sorted", ordered))
        }
        calls = [timed(stored.index_of, part) for part in np.split(random[: 10**6], 1000)]
        decoding = best_seconds(lambda stored=stored: stored.decode(out=copy))
        assert np.array_equal(stored.decode(), members)
        print(
            f"  {label:24}{stored.bits_per_member:6.1f}"
            f"{spent['random'] * per:7.0f} ns{plain['random'] / spent['random']:5.1f}x"
            f"{1e6 * np.quantile(calls, 0.99):6.0f}"
            f"{spent['sorted'] * per:8.1f} ns{plain['sorted'] / spent['sorted']:4.1f}x"
            f"{count / decoding / 1e9:7.2f} G/s{copying / decoding:4.2f}x"
            f"{1e9 * building / count:6.1f} ns",
            flush=True,
        )


def random_bitmap(universe: int, density: float, rng: np.random.Generator) -> NDArray[np.uint64]:
    bitmap = empty_bitmap(universe)
    for start in range(0, universe // 64, 1 << 20):
        part = bitmap[start : min(start + (1 << 20), universe // 64)]
        bits = rng.random(64 * len(part), dtype=np.float32) < density
        part[:] = np.packbits(bits, bitorder="little").view(np.uint64)
    return bitmap


def measure_bitmaps(count: int, rng: np.random.Generator) -> None:
    """Conversion between bitmaps and sets, at three densities."""
    print("bitmaps, members per second and share of the speed of copying the bitmap")
    for density in (0.5, 0.15, 0.02):
        universe = int(count / density)
        bitmap = random_bitmap(universe, density, rng)
        copy = np.empty_like(bitmap)
        copying = best_seconds(lambda copy=copy, bitmap=bitmap: np.copyto(copy, bitmap))
        for size, bias in ((128, 1.0), (4096, 4.0)):
            encode = functools.partial(
                encode_bitmap, bitmap, universe, partition_size=size, bitmap_bias=bias
            )
            encoding = best_seconds(encode)
            stored = PartitionedEliasFano(encode())
            decoding = best_seconds(stored.to_bitmap)
            assert np.array_equal(stored.to_bitmap(), bitmap)
            members = len(stored)
            print(
                f"  density {density:4.2f}, partitions of {size:4}, bias {bias:.0f}:"
                f"{stored.bits_per_member:6.2f} bits, from bitmap {members / encoding / 1e9:5.2f}"
                f" G/s ({copying / encoding:4.2f}), to bitmap {members / decoding / 1e9:5.2f} G/s"
                f" ({copying / decoding:4.2f})",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--members", type=int, default=10**8)
    parser.add_argument("--only", choices=["sets", "bitmaps"])
    options = parser.parse_args()
    rng = np.random.default_rng(1)
    if options.only != "bitmaps":
        measure("uniform", uniform_members(options.members, rng), rng)
        measure("clustered", clustered_members(options.members, rng), rng)
    if options.only != "sets":
        measure_bitmaps(min(options.members, 2 * 10**7), rng)


if __name__ == "__main__":
    main()
