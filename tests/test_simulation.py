"""Simulated games: the rules, reproducible draws, and means where exact ones are known."""

from __future__ import annotations

import json

import naive
import numpy as np
import pytest
from conftest import faces
from test_cli import TABLE_WIDTH, run

from solver2048 import ACTIONS, game, open_solution, policies
from solver2048.board import pack_boards, parse_board, unpack_boards
from solver2048.prospects import start_distribution, tile_distribution
from solver2048.shape import SHAPES
from solver2048.simulation import simulate, summarize

START_VALUES = {"2x2": 66.96414946, "2x3": 480.25827178, "3x3": 5468.48679741}

SCORE_TAILS = {1000: 0.999949, 2000: 0.995675, 3000: 0.804536, 4000: 0.736648,
               6000: 0.539757, 8000: 0.011115}  # fmt: skip
"""3x3, P(score >= x) under optimal play: an independent public recomputation."""


@pytest.fixture(scope="module")
def naive_2x3():
    return naive.NaiveSolution(2, 3)


def flat_boards(codes, shape):
    exponents = naive_exponents(unpack_boards(codes, shape)).reshape(len(codes), -1)
    return [tuple(row) for row in exponents.tolist()]


def naive_exponents(tiles):
    return np.log2(np.maximum(tiles, 1)).astype(np.int64)


def chosen_actions(solution, states):
    """The action the policy takes on every naive state, by the rule as documented."""
    shape = solution.shape
    boards = np.array([faces(s) for s in states]).reshape(-1, shape.num_rows, shape.num_columns)
    best = solution.probe(boards).best
    return {s: ACTIONS[int(row.argmax())] for s, row in zip(states, best, strict=True)}


def exact_outcomes(solved, choose, final, reward_weight=0):
    """By state the mean of `final(last board)` + weighted rewards, for `choose`: {action: p}."""
    value = {}
    for n in sorted(solved.states, reverse=True):
        after = {}
        for a in solved.afterstates[n]:
            kinds = ((1, 1 - solved.spawn4), (2, solved.spawn4))
            after[a] = sum(p * np.mean([value[s] for s in solved.spawns(a, e)]) for e, p in kinds)
        for s in solved.states[n]:
            moves = solved.moves[s]
            value[s] = final(s) if not moves else sum(
                p * (after[moves[a][0]] + reward_weight * moves[a][1])
                for a, p in choose(s).items()
            )  # fmt: skip
    return value


def start_mean(shape, value):
    start = start_distribution(shape, 0.1)
    pairs = zip(flat_boards(start.codes, shape), start.probabilities, strict=True)
    return sum(p * value[board] for board, p in pairs)


@pytest.mark.parametrize("name", list(SHAPES))
def test_moves_and_spawns_are_those_of_the_rules(name, rng):
    shape = SHAPES[name]
    size = (300, shape.num_rows, shape.num_columns)
    # No board whose tiles add up to more than a game can have.
    exponents = rng.integers(0, min(6, shape.max_exponent - 1), size)
    tiles = np.where(exponents, 2**exponents, 0)
    codes = pack_boards(tiles, shape)
    moved, rewards = game.moves(codes, shape)
    boards = flat_boards(codes, shape)
    for i, action in enumerate(ACTIONS):
        expected = [naive.move(b, shape.num_rows, shape.num_columns, action) for b in boards]
        assert flat_boards(moved[:, i], shape) == [board for board, _ in expected]
        assert rewards[:, i].tolist() == [reward for _, reward in expected]
    has_room = np.array([0 in b for b in boards])
    spawned = game.spawn(codes[has_room], shape, rng.random((has_room.sum(), 3)), 0.5)
    pairs = zip([b for b in boards if 0 in b], flat_boards(spawned, shape), strict=True)
    for before, after in pairs:
        (cell,) = [i for i in range(len(before)) if before[i] != after[i]]
        assert before[cell] == 0
        assert after[cell] in (1, 2)
    assert game.board_ages(codes, shape).tolist() == tiles.sum(axis=(1, 2)).tolist()
    assert game.largest_exponents(codes, shape).tolist() == [max(b) for b in boards]


def test_every_empty_cell_and_tile_comes_as_often_as_it_should():
    shape = SHAPES["2x3"]
    code = pack_boards(np.array([[[2, 0, 0], [4, 0, 8]]]), shape)
    num = 30_000
    spawned = game.spawn(np.repeat(code, num), shape, game.draws(5, 14, num), 0.1)
    boards, counts = np.unique(spawned, return_counts=True)
    assert len(boards) == 6
    shares = sorted((counts / num).tolist())
    assert shares == pytest.approx([0.1 / 3] * 3 + [0.9 / 3] * 3, abs=0.01)


def test_the_same_seed_is_the_same_games(solved, monkeypatch):
    with open_solution(solved("2x3")) as solution:
        games = simulate(solution, 300, 7)
        monkeypatch.setattr(policies, "BATCH", 11)
        fewer = simulate(solution, 100, 7)
        assert fewer.scores.tolist() == games.scores[:100].tolist()
        assert fewer.num_moves.tolist() == games.num_moves[:100].tolist()
        assert simulate(solution, 100, 8).scores.tolist() != fewer.scores.tolist()


@pytest.mark.parametrize("shape", ["2x2", "2x3"])
def test_the_mean_is_v_star(shape, solved):
    with open_solution(solved(shape)) as solution:
        summary = summarize(
            solution, simulate(solution, 20_000, 1), 1, policy="optimal", start=None
        )
    assert summary["value"] == pytest.approx(START_VALUES[shape], abs=1e-7)
    assert abs(summary["mean"] - summary["value"]) < 3 * summary["standard_error"]


@pytest.mark.parametrize("trials", [5000, pytest.param(100_000, marks=pytest.mark.full)])
def test_3x3_against_published_figures(trials, solved):
    with open_solution(solved("3x3")) as solution:
        games = simulate(solution, trials, 1)
        mean, error = games.scores.mean(), games.scores.std() / trials**0.5
        assert abs(mean - START_VALUES["3x3"]) < 3 * error
        for score, share in SCORE_TAILS.items():
            error = (share * (1 - share) / trials) ** 0.5
            # The share of few games below 1,000 is no normal variable: one game more is allowed.
            assert abs((games.scores >= score).mean() - share) < 3 * error + 1 / trials, score


def test_tiles_against_an_exact_evaluation_of_the_policy(solved, naive_2x3):
    with open_solution(solved("2x3")) as solution:
        states = [s for layer in naive_2x3.states.values() for s in layer]
        action = chosen_actions(solution, states)
        at_end = tile_distribution(solution, start_distribution(solution.shape, 0.1), 10**6)
        games = simulate(solution, 20_000, 2)
    assert at_end.sum() == pytest.approx(1, abs=1e-12)
    for exponent in (4, 5, 6, 7):
        value = exact_outcomes(
            naive_2x3,
            lambda s: {action[s]: 1.0},
            lambda s, exponent=exponent: float(max(s) >= exponent),
        )
        exact = start_mean(SHAPES["2x3"], value)
        assert at_end[exponent:].sum() == pytest.approx(exact, abs=1e-12)
        share = (games.exponents >= exponent).mean()
        variance = max(exact * (1 - exact), 0.0)
        assert abs(share - exact) <= 3 * (variance / 20_000) ** 0.5 + 1e-12


@pytest.mark.parametrize("policy", ["greedy", "random"])
def test_other_policies_against_an_exact_evaluation(policy, solved):
    small = naive.NaiveSolution(2, 2)

    def choose(state):
        legal = small.moves[state]
        if policy == "random":
            return dict.fromkeys(legal, 1 / len(legal))
        top = max(reward for _, reward in legal.values())
        return {next(a for a in ACTIONS if a in legal and legal[a][1] == top): 1.0}

    exact = start_mean(SHAPES["2x2"], exact_outcomes(small, choose, lambda s: 0.0, 1))
    with open_solution(solved("2x2")) as solution:
        games = simulate(solution, 20_000, 1, policy=policy)
    assert abs(games.scores.mean() - exact) < 3 * games.scores.std() / 20_000**0.5


def test_from_a_board_and_for_a_tile(solved):
    with open_solution(solved("2x3", objective="tile:64"), "tile:64") as solution:
        board = parse_board("16 . / 2 . / . 2", solution.shape)
        games = simulate(solution, 5000, 1, start=board)
        summary = summarize(solution, games, 1, policy="optimal", start=board)
        assert summary["value"] == solution.value("16 . / 2 . / . 2")
    assert abs(summary["standard_errors_off"]) < 3
    reached = next(row for row in summary["tiles"] if row["tile"] == 64)
    assert reached["share"] == summary["mean"]


def test_command(solved):
    path = solved("2x3")
    text = run("simulate", path, "--games", 2000, "--seed", 3).stdout
    assert "standard errors off" in text
    assert max(map(len, text.splitlines())) <= TABLE_WIDTH
    summary = json.loads(run("simulate", path, "--games", 2000, "--seed", 3, "--json").stdout)
    assert sum(row["games"] for row in summary["histogram"]) == summary["games"] == 2000
    assert summary["score"]["lowest"] >= summary["histogram"][0]["from"]
    assert run("simulate", path, "--start", "2 . . / . . .").exit_code == 4
    assert run("simulate", path, "--start", "2 . . / . . 3").exit_code == 3
    assert run("simulate", path, "--policy", "lazy").exit_code == 2
    assert run("simulate", path, "--games", 0).exit_code == 2
    assert run("simulate", path, "--games", 1, "--policy", "random").exit_code == 0
    assert run("simulate", path, "--start", "64 32 16 / 8 4 2", "--games", 3).exit_code == 0
