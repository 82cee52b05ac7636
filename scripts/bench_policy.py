"""Bits a state of policies stored in one way and another, and the speed of looking actions up.

    python scripts/bench_policy.py SETS [--ages ...] [--end AGE] [--random]
    python scripts/bench_policy.py --policy TABLE [--games N]

SETS is a solution of which the sets are read. Values are computed from its top age down or, where
it does not reach so far, as of a game that is over at --end; with --random as if those of the two
ages above were random. Of some layers it prints, in bits a state (modulo all symmetries, terminal
ones included), what the best actions take

    set       the layer's set alone, which everything that is by position needs too
    position  two bits a state in the order of the set, through Zstd
    slot      two bits a slot, free slots filled with the action before, through Zstd
    rule      by slot, the rank of the action in the order of a fixed rule, 0 in free slots
    learned   the same with a predictor learned from the layer: what a policy table does, for a band
    entropy   of what `learned` stores, were it known which slots are free: the bound of any
              structure without keys that uses the predictor
    ribbon    a ribbon retrieval structure of width 64 for the states with a move: no keys

TABLE is a policy table of the same board: single look-ups and batches, one thread; or, with
--games, its mean score over random games beside its value, and whether play ever left its states.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from numba import njit
from numcodecs import Zstd
from numpy.typing import NDArray

from elias_fano.bits import empty_bitmap
from elias_fano.ranked import rank_bitmap
from solver2048 import open_solution
from solver2048.backward import Problem, StateValues, value_layer
from solver2048.board import parse_board, unpack_boards
from solver2048.kernels.moves import moves_into
from solver2048.kernels.slots import mark_slots
from solver2048.layer import Band
from solver2048.layer_index import (
    LayerIndex,
    board_slots,
    build_layer_index,
    member_boards,
    slot_boards,
)
from solver2048.layer_sets import LayerSets
from solver2048.objective import Objective, merge_potentials
from solver2048.policy_bands import CODES, PolicyBandBuilder, stored_boards
from solver2048.policy_keeper import best_actions
from solver2048.policy_reach import reached_layers
from solver2048.store import Store
from solver2048.tables import build_tables
from solver2048.workers import Workers

CHUNK = 1 << 17
RULE = (0, 3, 2, 1)
"""Up, right, left, down: the best of the fixed orders tried."""
RIBBON_KEYS = 1 << 16


def zstd_bits(data: NDArray[np.uint8], level: int = 9) -> int:
    codec, raw = Zstd(level=level), data.tobytes()
    return sum(8 * len(codec.encode(raw[i : i + CHUNK])) for i in range(0, len(raw), CHUNK))


def two_bits(codes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    quads = np.concatenate([codes, np.zeros(-len(codes) % 4, np.uint8)]).reshape(-1, 4)
    return (quads << np.array([0, 2, 4, 6], np.uint8)).sum(axis=1).astype(np.uint8)


@njit
def ribbon_row(key, num_rows):
    """Where the row of a key begins, and its 64 coefficients, the first of them 1."""
    one = np.uint64(1)
    mixed = key * np.uint64(0xD6E8FEB86659FD93)
    mixed ^= mixed >> np.uint64(32)
    mixed *= np.uint64(0xD6E8FEB86659FD93)
    mixed ^= mixed >> np.uint64(32)
    start = np.int64((mixed >> np.uint64(11)) % np.uint64(num_rows - 63))
    return start, (mixed * np.uint64(0x9E3779B97F4A7C15)) | one


@njit
def build_ribbon(keys, codes, num_rows):
    """The solution, uint8[num_rows], of a banded system over GF(2), and how many keys it fails."""
    one, zero = np.uint64(1), np.uint64(0)
    coefficients = np.zeros(num_rows, dtype=np.uint64)
    solution = np.zeros(num_rows, dtype=np.uint8)
    num_failed = 0
    for i in range(len(keys)):
        start, row = ribbon_row(keys[i], num_rows)
        code = codes[i]
        while coefficients[start] != zero:
            row ^= coefficients[start]
            code ^= solution[start]
            if row == zero:
                num_failed += code != 0
                break
            while not row & one:
                row >>= one
                start += 1
        if row != zero:
            coefficients[start] = row
            solution[start] = code
    for start in range(num_rows - 1, -1, -1):
        row = coefficients[start] >> one
        place = start
        while row:
            place += 1
            if row & one:
                solution[start] ^= solution[place]
            row >>= one
    return solution, num_failed


@njit
def count_wrong(keys, codes, solution):
    """Of how many keys the ribbon has another code."""
    num_wrong = 0
    for i in range(len(keys)):
        start, row = ribbon_row(keys[i], len(solution))
        code = codes[i]
        for j in range(64):
            if row >> np.uint64(j) & np.uint64(1):
                code ^= solution[start + j]
        num_wrong += code != 0
    return num_wrong


def ribbon_bits(keys: NDArray[np.uint64], codes: NDArray[np.uint8]) -> float:
    """Bits a key, of a segment: two a row, and 24 for each key that fails and is put aside.

    Of the numbers of rows, in steps of 1 %, the best. Every key is asked back.
    """
    keys, codes = keys[:RIBBON_KEYS], codes[:RIBBON_KEYS]
    sizes = []
    for percent in range(-4, 12):
        num_rows = len(keys) * (100 + percent) // 100 + 64
        solution, num_failed = build_ribbon(keys, codes, num_rows)
        assert count_wrong(keys, codes, solution) == num_failed
        sizes.append((2 * num_rows + 24 * num_failed) / len(keys))
    return min(sizes)


def measure_layer(problem: Problem, layer: StateValues, below: StateValues) -> None:
    """One line of the table; of `layer` the states are read, of `below` the afterstates' values."""
    shape, index = problem.shape, layer.index
    with Workers() as workers:
        masks = best_actions(problem, layer, below, workers)
        builder = PolicyBandBuilder(shape, Band(int(index.age), int(index.age)), {0: len(masks)})
        builder.add(index, layer.states, masks, workers)
        arrays, record = builder.encode(workers)
    (facts,) = record["layers"]
    count, num_slots = facts["states"], int(index.num_slots)
    learned = arrays[CODES].items
    codes = member_boards(shape, index, layer.states[::2].copy())
    codes, slots, is_turned = stored_boards(shape, index, codes)
    codes, slots, masks = (array[~is_turned] for array in (codes, slots, masks))
    bitmap = empty_bitmap(num_slots)
    mark_slots(slots, bitmap)
    first = np.array([0, 0, 1, 0, 2, 0, 1, 0, 3, 0, 1, 0, 2, 0, 1, 0], np.uint8)[masks]
    filled = np.zeros(num_slots, dtype=np.int64)
    filled[slots] = slots
    filled = np.maximum.accumulate(filled)
    raw = np.zeros(num_slots, dtype=np.uint8)
    raw[slots] = first
    raw = two_bits(raw[filled])
    del filled
    by_rule = np.zeros(num_slots, dtype=np.uint8)
    by_rule[slots] = rule_ranks(masks, legal_masks(build_tables(shape), codes))
    stored = learned[(slots >> np.uint64(2)).astype(int)] >> 2 * (slots & np.uint64(3)).astype(int)
    shares = np.bincount(stored & 3, minlength=4) / count
    entropy = -sum(share * np.log2(share) for share in shares if share)
    sizes = [
        zstd_bits(bitmap.view(np.uint8), 3) / count,
        zstd_bits(two_bits(first)) / count,
        zstd_bits(raw) / count,
        zstd_bits(two_bits(by_rule)) / count,
        zstd_bits(learned) / count,
        entropy,
        ribbon_bits(codes[masks > 0], first[masks > 0]),
    ]
    print(f"{shape.name:>5}{int(index.age):6}{count:12,}{num_slots / count:7.2f}"
          f"{facts['predicted'] / max(1, facts['decided']):8.3f}"
          + "".join(f"{size:10.3f}" for size in sizes), flush=True)  # fmt: skip


def legal_masks(tables, codes: NDArray[np.uint64]) -> NDArray[np.uint8]:
    potentials = np.zeros(len(tables.rows))
    masks = np.empty(len(codes), dtype=np.uint8)
    for start in range(0, len(codes), 1 << 20):
        part = codes[start : start + (1 << 20)]
        moved = np.empty((len(part), 4), dtype=np.uint64)
        moves_into(tables, potentials, part, moved, np.empty(moved.shape))
        masks[start : start + len(part)] = ((moved != part[:, None]) << np.arange(4)).sum(axis=1)
    return masks


def rule_ranks(masks: NDArray[np.uint8], legal: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Rank of the first best action among the legal ones in the order of the fixed rule."""
    ranks = np.zeros(len(masks), dtype=np.uint8)
    is_open = masks > 0
    for action in RULE:
        is_open &= (masks >> action & 1) == 0
        ranks += (is_open & ((legal >> action & 1) == 1)).astype(np.uint8)
    return ranks


def measure_sets(path: str, ages: list[int], end: int | None, is_random: bool) -> None:
    """Policies of a game that is over at an age, or over random values of the two ages above."""
    sets = LayerSets(Store(path))
    top = sets.shape.top_age
    ages = ages or [top * k // 20 // 2 * 2 for k in (1, 3, 5, 8, 11, 14, 17)]
    if is_random:
        for age in ages:
            measure_down(sets, [age], age, np.random.default_rng(1))
    else:
        measure_down(sets, ages, end or top, None)


def measure_down(sets: LayerSets, ages: list[int], end: int, rng) -> None:
    problem = Problem(sets.shape, Objective(), 0.1)
    window = {}
    with Workers() as workers:
        for above in (end + 2, end + 4) if end < sets.shape.top_age else ():
            index = build_layer_index(sets.shape, above)
            states = rank_bitmap(sets.open(above, "states").to_bitmap())
            values = rng.random(int(states[-1])) if rng else potentials_of(problem, index, states)
            window[above] = StateValues(index, states, values)
        for n in range(end, min(ages) - 2, -2):
            states, afterstates = (
                rank_bitmap(sets.open(n, name).to_bitmap()) for name in ("states", "afterstates")
            )
            layer, values = value_layer(problem, n, states, afterstates, window, workers)
            if n in ages and len(values):
                measure_layer(problem, layer, StateValues(layer.index, afterstates, values))
            window[n] = layer
            window.pop(n + 4, None)


def potentials_of(problem: Problem, index: LayerIndex, states: NDArray) -> NDArray[np.float64]:
    """``w`` where all that is left of a game is worth nothing."""
    codes = member_boards(problem.shape, index, states[::2].copy())
    potentials = problem.objective.row_potentials(problem.shape)
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
        for layer in reached_layers(policy.table, workers, {}):
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
    parser.add_argument("sets", nargs="?", help="a solution of which the sets are read")
    parser.add_argument("--ages", type=int, nargs="+", default=[])
    parser.add_argument("--end", type=int, help="age at which the game is over")
    parser.add_argument("--random", action="store_true", help="random values above every age")
    parser.add_argument("--policy", help="a policy table")
    parser.add_argument("--boards", type=int, default=1_000_000)
    parser.add_argument("--games", type=int, help="play so many games instead")
    options = parser.parse_args()
    if options.sets:
        names = ("set", "position", "slot", "rule", "learned", "entropy", "ribbon")
        print(f"{'':5}{'age':>6}{'states':>12}{'slots':>7}{'right':>8}"
              + "".join(f"{name:>10}" for name in names))  # fmt: skip
        measure_sets(options.sets, options.ages, options.end, options.random)
    if options.policy and options.games:
        measure_play(options.policy, options.games)
    elif options.policy:
        measure_lookups(options.policy, options.boards)


if __name__ == "__main__":
    main()
