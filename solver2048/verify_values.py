"""Samples of stored values, computed again by the slow rules from the values two spawns later."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from . import rules
from .errors import NotSolved, SolutionDamaged
from .layer_index import build_layer_index, slot_boards
from .samples import random_members, rule_boards, rule_codes
from .shape import ACTIONS
from .solution import Solution


def check_values(solution: Solution, sample: int, seed: int) -> str:
    """Compute about `sample` random afterstate values again, and compare the start values.

    Returns what was found in order. Raises SolutionDamaged.
    """
    rng = np.random.default_rng(seed)
    num_checked = 0
    largest = 0.0
    valued = solution.stored.bands if sample else []
    num_ages = sum(len(band.ages) for band in valued)
    for band in valued:
        stored = solution.sets.read_band(band)
        for age in band.ages:
            members = stored.bitmap(age, "afterstates")
            slots = random_members(rng, members, math.ceil(sample / max(num_ages, 1)))
            try:
                difference = _check_sample(solution, age, slots)
            except NotSolved:
                continue  # the values of the ages above are not stored yet
            num_checked += len(slots)
            largest = max(largest, difference)
    if solution.stored.result is not None:
        _check_start_values(solution)
    return (
        f"{solution.stored.kind}: {num_checked} values computed again, off by at most "
        f"{largest:.2g} (allowed {_tolerance(solution):.2g})"
    )


def _tolerance(solution: Solution) -> float:
    """How far a value computed again can be from the one stored: both sides are rounded."""
    return 2 * solution.rounding_bound + solution.arithmetic_allowance


def _check_sample(solution: Solution, age: int, slots: NDArray[np.uint64]) -> float:
    """Compute afterstate values again by the slow rules; returns the largest difference."""
    shape = solution.shape
    if not len(slots):
        return 0.0
    codes = slot_boards(shape, build_layer_index(shape, age), slots)
    stored = solution.afterstate_values(age, codes)
    largest = 0.0
    for board, value in zip(rule_boards(shape, codes), stored, strict=True):
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


def _state_value(solution: Solution, age: int, state: rules.Board) -> float:
    """Value of a state by the slow rules and the stored afterstate values."""
    exponent = solution.objective.exponent
    if exponent and max(max(row) for row in state) >= exponent:
        return 1.0
    moves = [move for action in ACTIONS if (move := rules.move(state, action))]
    if not moves:
        return 0.0
    codes = rule_codes(solution.shape, [board for board, _ in moves])
    values = solution.afterstate_values(age, codes)
    rewards = [0 if exponent else reward for _, reward in moves]
    return max(float(value) + reward for value, reward in zip(values, rewards, strict=True))


def _check_start_values(solution: Solution) -> None:
    """The start values, kept in full, against the stored ones."""
    result = solution.stored.result or {}
    for board, value in result["start_boards"].items():
        stored = solution.value(board)
        if not abs(stored - value) <= _tolerance(solution):
            raise SolutionDamaged(f"start board {board}: {value} in result.json, {stored} stored")
