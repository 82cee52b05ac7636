"""Bits a state of policies stored in one way and another, and the speed of looking actions up.

    python scripts/bench_policy.py SOLUTION [--policy TABLE] [--sets SOLUTION]

SOLUTION is solved, with values. Of a few layers it prints, in bits a member (states modulo the
flips, terminal ones included), what the best actions take

    set       the layer's set alone, which everything that is by position needs too
    position  two bits a member in the order of the set, through Zstd
    slot      two bits a slot, free slots filled with the action before, through Zstd
    rule      by slot, the rank of the action in the order of a fixed rule, 0 in free slots
    learned   the same with a predictor learned from the layer: what a policy table does, for a band
    entropy   of what `learned` stores, were it known which slots are free: the bound of any
              structure without keys that uses the predictor
    ribbon    a ribbon retrieval structure of width 64, two bits a member, no keys

TABLE is a policy table of the same board: single look-ups and batches, one thread; or, with
--games, its mean score over random games beside its value, and whether play ever left its states.

`--sets` takes sets, of 4x3 say, reaching far enough, and prints what `learned` takes with its
weights over random values of the two ages above each of --ages, and, with --end, of a game that is
over at that age, so that actions have a meaning.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from numba import njit
from numcodecs import Zstd
from numpy.typing import NDArray

from elias_fano.ranked import rank_bitmap
from solver2048 import open_solution
from solver2048.backward import Problem, StateValues, value_layer
from solver2048.board import parse_board, unpack_boards
from solver2048.kernels.moves import moves_into
from solver2048.kernels.policy import (
    NUM_PATTERNS,
    NUM_WEIGHTS,
    encode_actions,
    learn,
    optimal_actions_into,
)
from solver2048.kernels.slots import slots_into
from solver2048.layer import Band
from solver2048.layer_index import board_slots, build_layer_index, member_boards, slot_boards
from solver2048.layer_sets import LayerSets
from solver2048.objective import Objective, merge_potentials
from solver2048.policy_bands import CODES, PolicyBandBuilder
from solver2048.policy_keeper import best_actions
from solver2048.policy_reach import reached_layers
from solver2048.shape import Shape
from solver2048.store import Store
from solver2048.tables import build_tables
from solver2048.workers import Workers

CHUNK = 1 << 17
RULE = (0, 3, 2, 1)
"""Up, right, left, down: the best of the fixed orders tried."""


def zstd_bits(data: NDArray[np.uint8], level: int = 9) -> int:
    codec, raw = Zstd(level=level), data.tobytes()
    return sum(8 * len(codec.encode(raw[i : i + CHUNK])) for i in range(0, len(raw), CHUNK))


def two_bits(codes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    quads = np.concatenate([codes, np.zeros(-len(codes) % 4, np.uint8)]).reshape(-1, 4)
    return (quads << np.array([0, 2, 4, 6], np.uint8)).sum(axis=1).astype(np.uint8)


@njit
def ribbon_fits(keys, num_rows):
    """Whether a banded system of width 64 over GF(2) with a row a key has a solution."""
    coefficients = np.zeros(num_rows, dtype=np.uint64)
    one, zero = np.uint64(1), np.uint64(0)
    for key in keys:
        mixed = key * np.uint64(0xD6E8FEB86659FD93)
        mixed ^= mixed >> np.uint64(32)
        mixed *= np.uint64(0xD6E8FEB86659FD93)
        mixed ^= mixed >> np.uint64(32)
        start = np.int64((mixed >> np.uint64(11)) % np.uint64(num_rows - 64))
        row = (mixed * np.uint64(0x9E3779B97F4A7C15)) | one
        while True:
            if coefficients[start] == zero:
                coefficients[start] = row
                break
            row ^= coefficients[start]
            if row == zero:
                return False  # one in very many keys; a real table puts it aside
            while not row & one:
                row >>= one
                start += 1
    return True


def ribbon_bits(keys: NDArray[np.uint64]) -> float:
    """Bits a key of the smallest system that has a solution, in steps of 1 %, keys by segments."""
    part = keys[: 1 << 16]
    for percent in range(1, 30):
        if ribbon_fits(part, len(part) * (100 + percent) // 100 + 64):
            return 2 * (100 + percent) / 100
    return float("nan")


def measure_layer(shape: Shape, age: int, states, afterstates, values, tolerance: float) -> None:
    """One line of the table; bitmaps, values v of the afterstates, and what ties."""
    tables, index = build_tables(shape), build_layer_index(shape, age)
    ranks = rank_bitmap(states)
    count = int(ranks[-1])
    codes = member_boards(shape, index, states)
    slots = np.empty(count, dtype=np.uint64)
    slots_into(tables, index, codes, slots)
    masks = np.empty(count, dtype=np.uint8)
    optimal_actions_into(
        tables, index, Objective().potentials(shape), tolerance, rank_bitmap(afterstates), values,
        codes, np.empty((count, 4), dtype=np.uint64), np.empty((count, 4)), masks,
    )  # fmt: skip
    first = np.array([0, 0, 1, 0, 2, 0, 1, 0, 3, 0, 1, 0, 2, 0, 1, 0], np.uint8)[masks]
    num_slots = int(index.num_slots)
    filled = np.zeros(num_slots, dtype=np.int64)
    filled[slots] = slots
    filled = np.maximum.accumulate(filled)
    raw = np.zeros(num_slots, dtype=np.uint8)
    raw[slots] = first
    by_rule = np.zeros(num_slots, dtype=np.uint8)
    legal = legal_masks(tables, codes)
    by_rule[slots] = rule_ranks(masks, legal)
    decided = masks > 0
    order = np.random.default_rng(1).permutation(np.flatnonzero(decided))
    weights = np.zeros(NUM_WEIGHTS)
    for _ in range(3):
        learn(tables, codes[order], masks[order], 0.15, 0.001,
              np.empty((4, NUM_PATTERNS), np.uint64), np.empty(4), weights)  # fmt: skip
    rounded = np.clip(np.rint(16 * weights), -127, 127).astype(np.int8)
    learned = np.zeros(16 * (len(ranks) // 2), dtype=np.uint8)
    predicted, _ = encode_actions(
        tables, index, ranks, masks, rounded, learned, np.empty(4, np.int64), np.uint64(0),
        np.uint64(len(ranks) // 2 - 1),
    )  # fmt: skip
    places, shifts = (slots >> np.uint64(2)).astype(int), (2 * (slots & np.uint64(3))).astype(int)
    stored = learned[places] >> shifts
    shares = np.bincount(stored & 3, minlength=4) / count
    entropy = -sum(share * np.log2(share) for share in shares if share)
    sizes = [
        zstd_bits(states.view(np.uint8), 3) / count,
        zstd_bits(two_bits(first)) / count,
        zstd_bits(two_bits(raw[filled])) / count,
        zstd_bits(two_bits(by_rule)) / count,
        zstd_bits(learned) / count,
        entropy,
        ribbon_bits(codes),
    ]
    print(f"{shape.name:>5}{age:6}{count:12,}{num_slots / count:7.2f}"
          f"{int(predicted) / max(1, decided.sum()):8.3f}"
          + "".join(f"{size:10.3f}" for size in sizes), flush=True)  # fmt: skip


def legal_masks(tables, codes: NDArray[np.uint64]) -> NDArray[np.uint8]:
    moved = np.empty((len(codes), 4), dtype=np.uint64)
    potentials = np.zeros(len(tables.rows))
    moves_into(tables, potentials, codes, moved, np.empty((len(codes), 4)))
    return ((moved != codes[:, None]) << np.arange(4)).sum(axis=1).astype(np.uint8)


def rule_ranks(masks: NDArray[np.uint8], legal: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Rank of the first best action among the legal ones in the order of the fixed rule."""
    ranks = np.zeros(len(masks), dtype=np.uint8)
    is_open = masks > 0
    for action in RULE:
        is_open &= (masks >> action & 1) == 0
        ranks += (is_open & ((legal >> action & 1) == 1)).astype(np.uint8)
    return ranks


def measure_solution(path: str, ages: list[int] | None) -> None:
    solution = open_solution(path)
    top = solution.shape.top_age
    for age in ages or [top * k // 20 * 2 // 2 // 2 * 2 for k in (1, 3, 5, 8, 11, 14, 17)]:
        count = len(solution.sets.open(age, "afterstates"))
        if not count:
            continue
        values = solution.stored.take(age, np.arange(count))
        states = solution.sets.open(age, "states").to_bitmap()
        afterstates = solution.sets.open(age, "afterstates").to_bitmap()
        measure_layer(solution.shape, age, states, afterstates, values,
                      2 * solution.rounding_bound)  # fmt: skip


def measure_sets(path: str, ages: list[int], ends: list[int]) -> None:
    """Policies over random values of the two ages above, and of games that end early."""
    sets = LayerSets(Store(path))
    for age in ages:
        _policy_of(sets, age, age, np.random.default_rng(1), "random values above")
        for end in ends:
            if end > age:
                _policy_of(sets, age, end, None, f"a game that ends at {end + 4}")


def _policy_of(sets: LayerSets, age: int, end: int, rng, what: str) -> None:
    shape, objective = sets.shape, Objective()
    problem = Problem(shape, objective, 0.1)
    window = {}
    with Workers() as workers:
        for above in (end + 2, end + 4):
            index = build_layer_index(shape, above)
            states = rank_bitmap(sets.open(above, "states").to_bitmap())
            count = int(states[-1])
            values = rng.random(count) if rng else _potentials(shape, index, states)
            window[above] = StateValues(index, states, values)
        for n in range(end, age - 2, -2):
            states, afterstates = (
                rank_bitmap(sets.open(n, name).to_bitmap()) for name in ("states", "afterstates")
            )
            layer, values = value_layer(problem, n, states, afterstates, window, workers)
            window[n] = layer
            window.pop(n + 4, None)
        below = StateValues(layer.index, afterstates, values)
        masks = best_actions(problem, layer, below, workers)
        builder = PolicyBandBuilder(shape, Band(age, age), {age: len(masks)})
        builder.add(layer.index, states, masks)
        arrays, record = builder.encode(workers)
    (facts,) = record["layers"]
    bits = sum(zstd_bits(array.items.view(np.uint8)) for array in arrays.values())
    print(f"{shape.name:>5}{age:6}{len(masks):12,}{int(layer.index.num_slots) / len(masks):7.2f}"
          f"{facts['predicted'] / facts['decided']:8.3f}  {bits / len(masks):.3f} bits, {what}; "
          f"codes {zstd_bits(arrays[CODES].items) / len(masks):.3f}", flush=True)  # fmt: skip


def _potentials(shape: Shape, index, states) -> NDArray[np.float64]:
    """``w`` where all that is left of a game is worth nothing."""
    bitmap = states[::2].copy()
    codes = member_boards(shape, index, bitmap)
    potentials = np.zeros(1 << 16)
    potentials[build_tables(shape).rows] = Objective().potentials(shape)
    mask = np.uint64(0xFFFF)
    return sum(potentials[codes >> np.uint64(shift) & mask] for shift in (0, 16, 32))


def measure_lookups(path: str, num_boards: int) -> None:
    policy = open_solution(path)
    board = "2 2 4 / . . . / . . 2" if policy.shape.name == "3x3" else "2 2 . . / . . . 4"
    given = parse_board(board, policy.shape)
    for what, asked in (("best_action of a text", board), ("query of a parsed board", given)):
        times = []
        for _ in range(3000):
            started = time.perf_counter()
            policy.query(asked)
            times.append(time.perf_counter() - started)
        p50, p99 = np.percentile(times[100:], [50, 99]) * 1e6
        print(f"{what}: p50 {p50:.1f} us, p99 {p99:.1f} us")
    rng = np.random.default_rng(1)
    layers = [layer for layer in policy.table.layers() if layer["states"] > 1000]
    chosen = rng.choice(len(layers), num_boards, p=_shares(layers))
    parts = []
    for number in np.unique(chosen):
        age = layers[number]["age"]
        slots = rng.integers(0, int(policy.table.index(age).num_slots), (chosen == number).sum())
        parts.append(slot_boards(policy.shape, policy.table.index(age), slots.astype(np.uint64)))
    codes = np.concatenate(parts)
    ages = np.repeat([layers[n]["age"] for n in np.unique(chosen)], [len(p) for p in parts])
    for what in ("by age", "one age"):
        if what == "one age":
            codes, ages = parts[len(parts) // 2], ages[:0]
            codes = np.tile(codes, num_boards // len(codes) + 1)[:num_boards]
            one = layers[np.unique(chosen)[len(parts) // 2]]["age"]
            ages = np.full(len(codes), one)
        bounds = np.flatnonzero(np.diff(ages, prepend=-1))
        groups = list(zip(bounds, [*bounds[1:], len(ages)], strict=True))
        for warm in (False, True):
            started = time.perf_counter()
            for start, stop in groups:
                policy.table.actions(int(ages[start]), codes[start:stop])
            taken = time.perf_counter() - started
            print(f"{len(codes):,} random packed boards {what}, {'warm' if warm else 'first'}: "
                  f"{len(codes) / taken / 1e6:.2f} million/s, {len(groups)} ages")  # fmt: skip
    tiles = unpack_boards(codes, policy.shape)
    started = time.perf_counter()
    policy.policy(tiles)
    taken = time.perf_counter() - started
    print(f"policy(boards) of tile numbers, one age: {len(codes) / taken / 1e6:.2f} million/s")


def measure_play(path: str, num_games: int) -> None:
    """Random games by ages, with membership of every board met in the states the policy reaches."""
    policy = open_solution(path)
    shape, rng = policy.shape, np.random.default_rng(1)
    cells = np.argsort(rng.random((num_games, shape.num_cells)), axis=1)[:, :2]
    exponents = 1 + (rng.random((num_games, 2)) < policy.spawn4)
    shifts = np.array(shape.cell_shifts, dtype=np.uint64)
    boards = (exponents.astype(np.uint64) << shifts[cells]).sum(axis=1).astype(np.uint64)
    ages = (2**exponents).sum(axis=1)
    scores, is_on = np.zeros(num_games), np.ones(num_games, dtype=bool)
    num_outside = 0
    with Workers() as workers:
        for layer in reached_layers(policy.table, workers):
            here = np.flatnonzero(is_on & (ages == layer.age))
            slots = board_slots(shape, policy.table.index(layer.age), boards[here])
            bits = layer.states[::2][slots >> np.uint64(6)] >> (slots & np.uint64(63))
            num_outside += int((bits & np.uint64(1) == 0).sum())
            actions = policy.table.actions(layer.age, boards[here])
            is_on[here[actions >= 4]] = False
            here, actions = here[actions < 4], actions[actions < 4]
            if not len(here):
                continue
            moved, rewards = np.empty((len(here), 4), np.uint64), np.empty((len(here), 4))
            moves_into(build_tables(shape), merge_potentials(shape), boards[here], moved, rewards)
            scores[here] += rewards[np.arange(len(here)), actions]
            boards[here] = moved[np.arange(len(here)), actions]
            is_empty = (boards[here, None] >> shifts & np.uint64(15)) == 0
            cell = np.where(is_empty, rng.random(is_empty.shape), -1.0).argmax(axis=1)
            tile = 1 + (rng.random(len(here)) < policy.spawn4)
            boards[here] |= tile.astype(np.uint64) << shifts[cell]
            ages[here] += 2**tile
    error = scores.std(ddof=1) / num_games**0.5
    value = policy.start_values["random"]
    print(f"{num_games:,} games: mean {scores.mean():.2f}, standard error {error:.2f}, value "
          f"{value:.2f}: {(scores.mean() - value) / error:+.2f} errors; {num_outside} boards "
          f"outside its states")  # fmt: skip


def _shares(layers) -> NDArray[np.float64]:
    states = np.array([layer["states"] for layer in layers], dtype=float)
    return states / states.sum()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("solution", nargs="?", help="solved, with values")
    parser.add_argument("--ages", type=int, nargs="+")
    parser.add_argument("--policy", help="a policy table")
    parser.add_argument("--boards", type=int, default=1_000_000)
    parser.add_argument("--games", type=int, help="play so many games instead")
    parser.add_argument("--sets", help="a solution of which only the sets are read")
    parser.add_argument("--end", type=int, nargs="+", default=[])
    options = parser.parse_args()
    print(f"{'':5}{'age':>6}{'states':>12}{'slots':>7}{'right':>8}" + "".join(
        f"{name:>10}" for name in
        ("set", "position", "slot", "rule", "learned", "entropy", "ribbon")))  # fmt: skip
    if options.solution:
        measure_solution(options.solution, options.ages)
    if options.sets:
        measure_sets(options.sets, options.ages or [120, 300, 600], options.end)
    if options.policy and options.games:
        measure_play(options.policy, options.games)
    elif options.policy:
        measure_lookups(options.policy, options.boards)


if __name__ == "__main__":
    main()
