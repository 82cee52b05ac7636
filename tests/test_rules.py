"""Rules: the package's tables and slow rules against independent ones."""

from __future__ import annotations

import itertools

import naive
import numpy as np
import pytest

from solver2048 import rules
from solver2048.board import pack_boards
from solver2048.kernels.moves import moves_into
from solver2048.objective import merge_potentials
from solver2048.shape import ACTIONS, SHAPES, TRANSPOSED_ACTIONS
from solver2048.tables import build_tables, slide_lines


@pytest.mark.parametrize("length", [2, 3, 4])
def test_every_line_slides_as_by_the_naive_scan(length):
    lines = np.array(list(itertools.product(range(16), repeat=length)))
    expected = naive.slide_many(lines)
    assert np.array_equal(slide_lines(lines), expected)
    for line, slid in zip(lines[::7].tolist(), expected[::7].tolist(), strict=True):
        assert naive.slide(tuple(line))[0] == tuple(slid)
        assert rules.slide_line(tuple(line)) == naive.slide(tuple(line))


def test_three_equal_tiles_merge_at_the_wall():
    assert rules.slide_line((1, 1, 1, 0)) == ((2, 1, 0, 0), 4)
    assert rules.slide_line((2, 1, 1, 0)) == ((2, 2, 0, 0), 4)
    assert rules.slide_line((1, 1, 1, 1)) == ((2, 2, 0, 0), 8)


def random_boards(shape, rng, count):
    """Random exponents whose tiles add up to a possible age: with many equal neighbours."""
    cells = rng.integers(0, shape.max_exponent + 1, (count, shape.num_cells))
    cells = np.where(rng.random(cells.shape) < 0.5, np.minimum(cells, 3), cells)
    ages = np.where(cells == 0, 0, 1 << cells).sum(axis=1)
    return cells[(ages >= 4) & (ages <= shape.top_age)]


@pytest.mark.parametrize("name", SHAPES)
def test_moves_of_random_boards_equal_the_naive_ones(name, rng):
    shape = SHAPES[name]
    boards = random_boards(shape, rng, 2_000_000 if name == "4x3" else 200_000)
    assert len(boards) > (1_000_000 if name == "4x3" else 100_000)
    tiles = np.where(boards == 0, 0, 1 << boards)
    codes = pack_boards(tiles.reshape(-1, shape.num_rows, shape.num_columns), shape)
    moved = np.empty((len(codes), 4), dtype=np.uint64)
    rewards = np.empty((len(codes), 4))
    moves_into(build_tables(shape), merge_potentials(shape), codes, moved, rewards)
    order = TRANSPOSED_ACTIONS if shape.is_transposed else range(4)
    potential = np.where(boards == 0, 0, (boards - 1) << boards).sum(axis=1)
    for action, column in zip(ACTIONS, order, strict=True):
        expected = boards.copy()
        for line in naive.lines_of(shape.num_rows, shape.num_columns, action):
            expected[:, line] = naive.slide_many(boards[:, line])
        reward = np.where(expected == 0, 0, (expected - 1) << expected).sum(axis=1) - potential
        possible = expected.max(axis=1) <= shape.max_exponent
        expected_tiles = np.where(expected == 0, 0, 1 << expected)[possible]
        expected_codes = pack_boards(
            expected_tiles.reshape(-1, shape.num_rows, shape.num_columns), shape
        )
        assert np.array_equal(moved[possible, column], expected_codes)
        assert np.array_equal(rewards[possible, column], reward[possible])


@pytest.mark.parametrize(("rows", "columns"), [(2, 2), (2, 3), (3, 3), (4, 3)])
def test_slow_rules_equal_the_naive_ones(rows, columns, rng):
    for flat in rng.integers(0, 4, (300, rows * columns)).tolist():
        board = tuple(tuple(flat[r * columns : (r + 1) * columns]) for r in range(rows))
        for action in ACTIONS:
            expected, reward = naive.move(tuple(flat), rows, columns, action)
            moved = rules.move(board, action)
            if expected == tuple(flat):
                assert moved is None
            else:
                assert moved is not None
                assert tuple(itertools.chain(*moved[0])) == expected
                assert moved[1] == reward


def test_a_reward_is_the_number_on_each_merged_tile():
    _, reward = rules.move(((1, 1, 3), (3, 0, 3)), "left")
    assert reward == 4 + 16
