"""What comes of games under optimal play, against games played out rule by rule."""

from __future__ import annotations

import csv
import json
import math
from collections import defaultdict
from fractions import Fraction

import naive
import numpy as np
import pytest
from conftest import run

from solver2048 import open_solution, solve
from solver2048.board import pack_boards, unpack_boards
from solver2048.games import optimal_games
from solver2048.layer_index import board_slots, build_layer_index, slot_boards
from solver2048.options import SolveOptions
from solver2048.shape import ACTIONS, SHAPES


class NaiveGames:
    """All games under optimal play: by age, board and score their probability.

    A game carries its board in canonical form, which decides between best actions, and the score
    as the rules count it.
    number : type of the probabilities; fractions are exact, and slow
    """

    def __init__(self, name: str, number: type) -> None:
        self.spawn4 = number(1) / number(10)
        self.shape = SHAPES[name]
        self.rows, self.columns = self.shape.num_rows, self.shape.num_columns
        self.solution = naive.NaiveSolution(self.rows, self.columns)
        self.canonical_forms: dict[naive.Flat, naive.Flat] = {}
        self.reached: dict[int, dict[naive.Flat, dict[int, float]]] = {
            age: defaultdict(lambda: defaultdict(number)) for age in self.solution.states
        }
        self.scores: dict[int, float] = defaultdict(number)
        self.tiles: dict[int, float] = defaultdict(number)
        self.ended: dict[int, float] = defaultdict(number)
        empty = (0,) * self.shape.num_cells
        for one, p in self.spawned(empty):
            for two, q in self.spawned(one):
                self.arrive(two, 0, p * q)
        for age in sorted(self.reached):
            for board, scores in self.reached[age].items():
                self.play(age, board, scores)

    def spawned(self, board: naive.Flat):
        for exponent, share in ((1, 1 - self.spawn4), (2, self.spawn4)):
            boards = list(self.solution.spawns(board, exponent))
            for spawned in boards:
                yield spawned, share / len(boards)

    def arrive(self, board: naive.Flat, score: int, probability: float) -> None:
        self.reached[naive.age(board)][self.canonical(board)][score] += probability

    def canonical(self, board: naive.Flat) -> naive.Flat:
        if board not in self.canonical_forms:
            tiles = np.array([2**e if e else 0 for e in board]).reshape(1, self.rows, self.columns)
            index = build_layer_index(self.shape, naive.age(board))
            slots = board_slots(self.shape, index, pack_boards(tiles, self.shape))
            tiles = unpack_boards(slot_boards(self.shape, index, slots), self.shape)
            self.canonical_forms[board] = tuple(
                int(tile).bit_length() - 1 if tile else 0 for tile in tiles.ravel()
            )
        return self.canonical_forms[board]

    def play(self, age: int, board: naive.Flat, scores: dict[int, float]) -> None:
        values = self.solution.action_values(board)
        if not values:
            for score, probability in scores.items():
                self.scores[score] += probability
                self.tiles[2 ** max(board)] += probability
                self.ended[age] += probability
            return
        best = max(values.values())
        action = next(a for a in ACTIONS if values.get(a, -1.0) >= best - 1e-9)
        moved, reward = self.solution.moves[board][action]
        for spawned, share in self.spawned(moved):
            for score, probability in scores.items():
                self.arrive(spawned, score + reward, probability * share)


@pytest.fixture(scope="module", params=[("2x2", Fraction), ("2x3", float)])
def twins(request, solved):
    name, number = request.param
    with open_solution(solved(name, values="float64")) as solution:
        return optimal_games(solution.sets, solution.objective), NaiveGames(name, number)


def assert_same_distribution(found, expected):
    assert list(found) == sorted(expected)
    for key, probability in found.items():
        assert probability == pytest.approx(float(expected[key]), rel=1e-12)


def test_scores_and_tiles(twins):
    games, played = twins
    assert sum(played.scores.values()) == pytest.approx(1, rel=1e-12)
    assert_same_distribution(games.scores, played.scores)
    assert_same_distribution(games.tiles, played.tiles)
    score = sorted(games.scores)[len(games.scores) // 2]
    at_least = sum(p for value, p in played.scores.items() if value >= score)
    assert games.score_at_least(score) == pytest.approx(float(at_least), rel=1e-12)


def test_ages(twins):
    games, played = twins
    left = 1
    assert [row.age for row in games.ages] == sorted(played.reached)
    for row in games.ages:
        boards = played.reached[row.age]
        visits = sum(sum(scores.values()) for scores in boards.values())
        assert row.visits == pytest.approx(float(visits), rel=1e-12)
        assert row.ended == pytest.approx(float(played.ended[row.age]), rel=1e-12)
        assert row.survival == pytest.approx(float(left), rel=1e-9)
        assert row.states_met == played.solution.classes(set(boards))
        left -= played.ended[row.age]


def test_small_ages_by_hand(twins):
    """No game ends so early: an age is that of a start, or follows a spawn of a 2 or a 4."""
    games, _ = twins
    visits = {row.age: row.visits for row in games.ages}
    assert visits[4] == pytest.approx(0.9 * 0.9)
    assert visits[6] == pytest.approx(2 * 0.9 * 0.1 + 0.9 * visits[4])
    assert visits[8] == pytest.approx(0.1 * 0.1 + 0.9 * visits[6] + 0.1 * visits[4])
    assert visits[10] == pytest.approx(0.9 * visits[8] + 0.1 * visits[6])


@pytest.mark.parametrize(
    ("name", "options", "mean"),
    [("2x3", {}, 480.25827178), ("2x3", {"spawn4": 0.5}, None), ("2x4", {}, 2641.87303569)],
)
def test_the_mean_score_is_that_of_the_solve(name, options, mean, solved):
    with open_solution(solved(name, values="float64", **options)) as solution:
        games = optimal_games(solution.sets, solution.objective)
    value = solution.start_values["random"]
    assert games.value == value
    assert mean is None or value == pytest.approx(mean, abs=1e-8)
    assert math.fsum(score * p for score, p in games.scores.items()) == pytest.approx(value, 1e-12)
    assert games.mean_score == pytest.approx(value, rel=1e-12)


def test_play_for_a_tile(solved):
    with open_solution(solved("2x3", objective="tile:128", values="float64"), "tile:128") as solved:
        games = optimal_games(solved.sets, solved.objective)
    assert games.tile_at_least()[128] == pytest.approx(games.value, rel=1e-12)


def test_rounded_values_cost_little(solved):
    with open_solution(solved("2x3", values="float32")) as solution:
        games = optimal_games(solution.sets, solution.objective)
    assert games.mean_score == pytest.approx(games.value, abs=2e-3)
    assert games.mean_score < games.value + 1e-9


def test_threads_do_not_matter(solved):
    with open_solution(solved("2x3", values="float64")) as solution:
        found = [
            optimal_games(solution.sets, solution.objective, threads=number) for number in (1, 2, 5)
        ]
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("memory_bytes", [1, 60_000])
def test_scores_are_given_up_where_they_do_not_fit(memory_bytes, solved):
    with open_solution(solved("2x3", values="float64")) as solution:
        full = optimal_games(solution.sets, solution.objective)
        games = optimal_games(solution.sets, solution.objective, memory_bytes=memory_bytes)
    assert games.scores is None
    with pytest.raises(ValueError, match="did not fit"):
        games.score_at_least(4)
    assert games.mean_score == pytest.approx(full.mean_score, rel=1e-12)
    assert games.tiles == pytest.approx(full.tiles, rel=1e-12)
    assert [row.states_met for row in games.ages] == [row.states_met for row in full.ages]
    assert [row.survival for row in games.ages] == pytest.approx([r.survival for r in full.ages])


def test_command(solved):
    path = solved("2x2", values="float64")
    found = json.loads(run("games", path, "--json", "--quiet").stdout)
    assert found["states"] == 110
    assert found["mean_score"] == pytest.approx(66.96414946, abs=1e-8)
    for name in ("ages", "scores", "tiles"):
        rows = list(csv.DictReader(run("games", path, "--table", name).stdout.splitlines()))
        assert [{k: float(v) for k, v in row.items()} for row in rows] == found[name]
    text = run("games", path).stdout
    assert "66.964149" in text
    assert "8 to 180; quantiles: 5 % 44, 25 % 60, 50 % 64" in text
    assert all(len(line) <= 80 for line in text.splitlines())
    given_up = run("games", path, "--memory", "1K")
    assert "simulate" in given_up.stdout
    assert "scores" not in json.loads(run("games", path, "--memory", "1K", "--json").stdout)


def test_command_without_values(tmp_path):
    solve("2x3", tmp_path / "sets", SolveOptions(max_age=20))
    solve("2x2", tmp_path / "start", SolveOptions(keep="start"))
    for name, word in (("sets", "forward pass only"), ("start", "keeps only")):
        result = run("games", tmp_path / name)
        assert result.exit_code == 5
        assert word in result.stderr


@pytest.mark.full
def test_published_figures(solved):
    """3x3, as recomputed by others: digits within reach of another rule for ties."""
    with open_solution(solved("3x3", values="float64")) as solution:
        games = optimal_games(solution.sets, solution.objective)
    assert games.mean_score == pytest.approx(5468.48679741, abs=1e-6)
    assert math.fsum(s * p for s, p in games.scores.items()) == pytest.approx(5468.48679741, 1e-10)
    published = {1000: 0.999949, 2000: 0.995675, 3000: 0.804536, 4000: 0.736648, 6000: 0.539757,
                 8000: 0.011115}  # fmt: skip
    for score, probability in published.items():
        assert games.score_at_least(score) == pytest.approx(probability, abs=2e-6)
    assert (min(games.scores), max(games.scores)) == (88, 16_352)
