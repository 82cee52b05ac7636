"""Checking a stored solution: its files, its sets and counts, and samples of its values."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from . import rules
from .board import pack_boards, tile_exponents, unpack_boards
from .errors import NotSolved, PublishedMismatch, SolutionDamaged, SolverError
from .kernels.members import count_members, count_missing_images
from .layer import Band
from .layer_index import build_layer_index, slot_boards
from .layer_sets import KIND as SETS
from .layer_sets import NAMES, LayerSets, check_parents
from .layer_values import stored_objectives
from .report import check_published, make_report
from .shape import ACTIONS
from .solution import Solution
from .store import Store
from .tables import build_tables

DEFAULT_SAMPLE = 2000


@dataclass
class Findings:
    """What was checked, and what was found wrong."""

    checks: list[str] = field(default_factory=list)
    errors: list[SolverError] = field(default_factory=list)

    def gravest(self) -> SolverError | None:
        """The error to end with, damage before a differing figure; None if all is well."""
        return min(self.errors, key=lambda e: isinstance(e, PublishedMismatch), default=None)

    def attempt(self, check: Callable[[], str]) -> bool:
        """Run a check that returns what it found in order, and keep its error if it raises one."""
        try:
            self.checks.append(check())
        except SolverError as error:
            self.errors.append(error)
            return False
        return True


def verify(store: Store, *, sample: int = DEFAULT_SAMPLE, seed: int = 0) -> Findings:
    """Check everything stored, and about `sample` random afterstate values per objective.

    Files are compared with their digests, sets are decoded and counted, counts are compared with
    published ones; the sampled values are computed again, by the slow rules, from the values two
    and four ages later. Raises NoSolution if there is none.
    """
    findings = Findings()
    try:
        sets = LayerSets(store)
        objectives = stored_objectives(store)
    except SolutionDamaged as error:
        findings.errors.append(error)
        return findings
    good_bands = [
        band for band in sets.bands if findings.attempt(functools.partial(_check_sets, sets, band))
    ]
    findings.attempt(functools.partial(_check_no_gap, sets))
    for objective in objectives:
        findings.attempt(
            functools.partial(_check_values, store, objective, good_bands, sample, seed)
        )
    return findings


def _check_sets(sets: LayerSets, band: Band) -> str:
    """The band's files, and the members and counts of its layers."""
    tables = build_tables(sets.shape)
    stored = sets.read_band(band)
    check_parents(sets.store, SETS, band)
    for age in (age for age in band.ages if age <= sets.max_age):
        counts = sets.layer_counts(age)
        index = build_layer_index(sets.shape, age)
        for name in NAMES:
            bitmap = stored.bitmap(age, name)
            labelled = 4 * int(count_members(bitmap)) - int(
                count_missing_images(tables, index, bitmap)
            )
            if labelled != getattr(counts, f"{name}_labelled"):
                raise SolutionDamaged(
                    f"age {age}: {labelled} labelled {name} in the set, "
                    f"{getattr(counts, f'{name}_labelled')} in the record"
                )
    return f"{SETS}/{band.name}: files, members and counts agree"


def _check_no_gap(sets: LayerSets) -> str:
    """No band is stored above one that is missing."""
    for band in sets.gaps:
        raise SolutionDamaged(f"{SETS}/{band.name}: the band is missing")
    return f"{SETS}: ages 4 to {sets.max_age} of {sets.shape.top_age}"


def _check_values(store: Store, objective: str, bands: list[Band], sample: int, seed: int) -> str:
    """The files of an objective's values, samples of them, and the figures that came of them."""
    solution = Solution(store, objective)
    kind = solution.stored.kind
    for band in solution.stored.bands:
        store.check_band(kind, band)
        solution.stored.check_parents(band)
    is_finished = solution.stored.result is not None
    rng = np.random.default_rng(seed)
    num_checked = 0
    largest = 0.0
    valued = [band for band in bands if sample and band in solution.stored.bands]
    num_ages = sum(len(band.ages) for band in valued)
    for band in valued:
        stored = solution.sets.read_band(band)
        for age in band.ages:
            members = stored.bitmap(age, "afterstates")
            slots = _random_members(rng, members, math.ceil(sample / max(num_ages, 1)))
            try:
                difference = _check_sample(solution, age, slots)
            except NotSolved:
                continue  # the values of the ages above are not stored yet
            num_checked += len(slots)
            largest = max(largest, difference)
    report = make_report(solution.sets, solution.objective)
    check_published(report)
    if is_finished:
        _check_start_values(solution)
    state = "complete" if is_finished else "not complete yet"
    return (
        f"{kind}: {state}; {num_checked} values computed again, "
        f"off by at most {largest:.2g} (allowed {_tolerance(solution):.2g})"
    )


def _tolerance(solution: Solution) -> float:
    """How far a value computed again can be from the one stored: both sides are rounded."""
    return 2 * solution.rounding_bound + solution.arithmetic_allowance


def _random_members(
    rng: np.random.Generator, bitmap: NDArray[np.uint64], count: int
) -> NDArray[np.uint64]:
    """Some members of a bitmap, at most one a word."""
    words = np.flatnonzero(bitmap)
    chosen = rng.choice(words, min(count, len(words)), replace=False)
    slots = [
        64 * int(word) + int(rng.choice([i for i in range(64) if int(bitmap[word]) >> i & 1]))
        for word in chosen
    ]
    return np.array(slots, dtype=np.uint64)


def _check_sample(solution: Solution, age: int, slots: NDArray[np.uint64]) -> float:
    """Compute afterstate values again by the slow rules; returns the largest difference."""
    shape = solution.shape
    if not len(slots):
        return 0.0
    codes = slot_boards(shape, build_layer_index(shape, age), slots)
    stored = solution.afterstate_values(age, codes)
    largest = 0.0
    for board, value in zip(_rule_boards(codes, solution), stored, strict=True):
        expected = 0.0
        for exponent, probability in ((1, 1.0 - solution.spawn4), (2, solution.spawn4)):
            states = list(rules.spawns(board, exponent))
            values = [_state_value(solution, age + 2**exponent, state) for state in states]
            expected += probability * math.fsum(values) / len(values)
        difference = abs(expected - float(value))
        if not difference <= _tolerance(solution):
            raise SolutionDamaged(
                f"age {age}, afterstate {board}: value {value} stored, {expected} computed again"
            )
        largest = max(largest, difference)
    return largest


def _rule_boards(codes: NDArray[np.uint64], solution: Solution) -> list[rules.Board]:
    exponents = tile_exponents(unpack_boards(codes, solution.shape))
    return [tuple(tuple(int(cell) for cell in row) for row in board) for board in exponents]


def _state_value(solution: Solution, age: int, state: rules.Board) -> float:
    """Value of a state by the slow rules and the stored afterstate values."""
    exponent = solution.objective.exponent
    if exponent and max(max(row) for row in state) >= exponent:
        return 1.0
    moves = [move for action in ACTIONS if (move := rules.move(state, action))]
    if not moves:
        return 0.0
    tiles = np.array([board for board, _ in moves], dtype=np.int64)
    tiles = np.where(tiles == 0, 0, 1 << tiles)
    values = solution.afterstate_values(age, pack_boards(tiles, solution.shape))
    rewards = [0 if exponent else reward for _, reward in moves]
    return max(float(value) + reward for value, reward in zip(values, rewards, strict=True))


def _check_start_values(solution: Solution) -> None:
    """The start values, kept in full, against the stored ones."""
    result = solution.stored.result or {}
    for board, value in result["start_boards"].items():
        stored = solution.value(board)
        if not abs(stored - value) <= _tolerance(solution):
            raise SolutionDamaged(f"start board {board}: {value} in result.json, {stored} stored")
