"""Both passes over layers of 4x3 as large as they get: time per age, and the memory it takes.

    python scripts/bench_window.py                 # age 9,568, 298 million states
    python scripts/bench_window.py --age 10920     # the most slots
    python scripts/bench_window.py --keep policy   # best actions instead of values

Nobody has the layers below without days of work, so random boards of the right ages stand in for
the afterstates six ages below; run forward, they make a consistent window: every successor that
the backward pass looks up is there. Sets are written and read back as a solve does, values
too, each age a band of its own. The states of the two ages on top get random values.
"""

from __future__ import annotations

import argparse
import functools
import tempfile
import time

import numpy as np
from numpy.typing import NDArray

from elias_fano.bits import empty_bitmap
from elias_fano.ranked import rank_bitmap
from solver2048.background import BackgroundWriter
from solver2048.backward import Problem, StateValues, value_layer
from solver2048.band_builder import BandBuilder
from solver2048.bands import bands_of
from solver2048.forward import AfterstateLayer, enumerate_layer
from solver2048.layer_index import board_slots, build_layer_index, slot_boards
from solver2048.layer_sets import LayerSets
from solver2048.layer_values import ValueKeeper
from solver2048.objective import parse_objective
from solver2048.policy_keeper import PolicyKeeper
from solver2048.progress import peak_memory_bytes
from solver2048.shape import SHAPES
from solver2048.solver import RULES
from solver2048.store import Store
from solver2048.value_format import parse_value_format
from solver2048.workers import Workers

SHAPE = SHAPES["4x3"]
AGES_FORWARD = 4
CHUNK_WORDS = 1 << 20


def random_layer(age: int, density: float, rng: np.random.Generator) -> AfterstateLayer:
    """Random boards of an age, a share of all there are."""
    index = build_layer_index(SHAPE, age)
    members = empty_bitmap(int(index.num_slots))
    for start in range(0, len(members) - 1, CHUNK_WORDS):
        part = members[start : min(start + CHUNK_WORDS, len(members) - 1)]
        bits = rng.random(64 * len(part), dtype=np.float32) < density
        bits[int(index.num_slots) - 64 * start :] = False
        slots = np.flatnonzero(bits).astype(np.uint64) + np.uint64(64 * start)
        # A few slots are no board's: their number is that of an image with a lower slot.
        slots = slots[board_slots(SHAPE, index, slot_boards(SHAPE, index, slots)) == slots]
        bits[:] = False
        bits[slots - np.uint64(64 * start)] = True
        part[:] = np.packbits(bits, bitorder="little").view(np.uint64)
    return AfterstateLayer(index, members)


def report(name: str, age: int, seconds: float, states: int, afterstates: int) -> None:
    print(
        f"{name:<9} age {age:6,}: {states:12,} states {afterstates:12,} afterstates"
        f"{seconds:8.1f} s {1e9 * seconds / max(states, 1):6.1f} ns a state,"
        f" peak {peak_memory_bytes() / 2**30:5.2f} GiB",
        flush=True,
    )


def run_forward(store: Store, age: int, density: float, workers: Workers) -> None:
    """Enumerate and store the ages up to `age` + 4 from random layers."""
    rng = np.random.default_rng(1)
    first = age - 2 * (AGES_FORWARD - 1)
    window = {a: random_layer(a, density, rng) for a in (first - 4, first - 2)}
    with BackgroundWriter() as writer:
        for band in bands_of(SHAPE):
            for a in (a for a in band.ages if first <= a <= age + 4):
                started = time.perf_counter()
                builder = BandBuilder(LayerSets(store).ids)
                layer = enumerate_layer(SHAPE, a, window, workers)
                builder.add(layer)
                window[a] = AfterstateLayer(layer.index, layer.afterstates)
                window.pop(a - 4, None)
                counts = layer.counts
                del layer
                writer.submit(functools.partial(builder.commit, store, band, True, {}))
                report("forward", a, time.perf_counter() - started, counts.state_members,
                       counts.afterstate_members)  # fmt: skip


def run_backward(store: Store, age: int, keep: str, workers: Workers) -> None:
    """Values of the ages `age` and `age` - 2 from random ones above; stored, or their actions."""
    objective = parse_objective("score", SHAPE)
    problem = Problem(SHAPE, objective, 0.1)
    value_format = parse_value_format("float32", objective.max_value(SHAPE))
    keeper = PolicyKeeper(problem) if keep == "policy" else ValueKeeper(problem, value_format)
    bands = [b for b in bands_of(SHAPE) if age - 2 <= b.first <= age + 4]
    sets = LayerSets(store, among=bands)
    store.create_kind(keeper.kind, keeper.facts)
    rng = np.random.default_rng(2)
    window: dict[int, StateValues] = {}
    for band in bands[-2:]:
        ranks = rank_bitmap(sets.read_band(band).bitmap(band.first, "states"))
        values: NDArray[np.float64] = rng.random(int(ranks[-1])) * 1e4
        window[band.first] = StateValues(build_layer_index(SHAPE, band.first), ranks, values)
        del ranks, values
    with BackgroundWriter() as writer:
        for band in reversed(bands[:-2]):
            started = time.perf_counter()
            a = band.first
            stored = sets.read_band(band)
            kept = keeper.begin(sets, band, workers)
            afterstates = rank_bitmap(stored.bitmap(a, "afterstates"))
            layer, v = value_layer(
                problem, a, rank_bitmap(stored.bitmap(a, "states")), afterstates, window, workers
            )
            kept.add(layer, StateValues(layer.index, afterstates, v), stored)
            del v, afterstates, stored
            window[a] = layer
            window.pop(a + 4, None)
            writer.submit(functools.partial(kept.commit, store))
            del kept
            counts = sets.layer_counts(a)
            report("backward", a, time.perf_counter() - started, counts.state_members,
                   counts.afterstate_members)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--age", type=int, default=9568)
    parser.add_argument("--density", type=float, default=0.03,
                        help="share of all slots that the random layers hold")  # fmt: skip
    parser.add_argument("--keep", choices=["solution", "policy"], default="solution")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--directory", help="where to write; a temporary one by default")
    options = parser.parse_args()
    index = build_layer_index(SHAPE, options.age)
    print(f"age {options.age:,}: {int(index.num_slots):,} slots")
    with (
        tempfile.TemporaryDirectory(dir=options.directory) as directory,
        Workers(options.threads) as workers,
    ):
        store = Store(directory)
        store.create({"shape": SHAPE.name, "rules": RULES, "spawn4": 0.1, "ids": "index"})
        run_forward(store, options.age, options.density, workers)
        run_backward(store, options.age, options.keep, workers)
    print(f"peak resident memory {peak_memory_bytes() / 2**30:.2f} GiB")


if __name__ == "__main__":
    main()
