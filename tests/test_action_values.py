"""The kernel that gives a whole layer's action values, against a solution asked board by board."""

from __future__ import annotations

import numpy as np
import pytest

from elias_fano.ranked import rank_bitmap
from solver2048 import open_solution
from solver2048.board import unpack_boards
from solver2048.kernels.actions import action_values_into
from solver2048.kernels.slots import member_codes_into
from solver2048.layer_index import build_layer_index
from solver2048.shape import SHAPES
from solver2048.tables import build_tables


@pytest.mark.parametrize("name", ["2x2", "2x3"])
def test_action_values_of_whole_layers(name, solved):
    shape = SHAPES[name]
    with open_solution(solved(name, values="float64")) as solution:
        for age in range(4, shape.top_age + 1, 2):
            index = build_layer_index(shape, age)
            states = solution.sets.open(age, "states").to_bitmap()
            afterstates = solution.sets.open(age, "afterstates")
            values = solution.stored.take(age, np.arange(len(afterstates)))
            codes = np.empty(len(solution.sets.open(age, "states")), dtype=np.uint64)
            member_codes_into(
                build_tables(shape), index, states, np.uint64(0), np.uint64(len(states)), codes
            )
            found = np.empty((len(codes), 4))
            action_values_into(
                build_tables(shape), index, rank_bitmap(afterstates.to_bitmap()), values, codes,
                np.empty((len(codes), 4), dtype=np.uint64), found,
            )  # fmt: skip
            asked = solution.probe(unpack_boards(codes, shape)).afterstate_values
            assert np.array_equal(found, asked, equal_nan=True)
