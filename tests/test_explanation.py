"""Explanations: spawns, lines of play, tiles and deaths against slow, obvious twins."""

from __future__ import annotations

import json

import naive
import pytest
from conftest import faces
from test_cli import TABLE_WIDTH, run

from solver2048 import ACTIONS, open_solution
from solver2048.board import parse_board
from solver2048.explanation import explain

BOARD = "2 . 4 / . . 2"


def explained(solution, board, **options):
    asked = {"num_moves": 10, "num_spawns": 10, "max_states": 10**6, "seed": 1, **options}
    return explain(solution, parse_board(board, solution.shape), **asked)


def naive_deaths(solution, board, num_spawns):
    """The probability that the game is over after k spawns, by following every way there."""
    rows, columns = solution.shape.num_rows, solution.shape.num_columns
    deaths = [0.0] * num_spawns

    def follow(flat, probability, depth):
        shown = [faces(flat)[i : i + columns] for i in range(0, rows * columns, columns)]
        best = solution.query(shown).best
        if not best:
            for k in range(max(depth, 1), num_spawns + 1):
                deaths[k - 1] += probability
        elif depth < num_spawns:
            after, _ = naive.move(flat, rows, columns, best[0])
            cells = [i for i, cell in enumerate(after) if cell == 0]
            for exponent, share in ((1, 0.9), (2, 0.1)):
                for i in cells:
                    spawned = (*after[:i], exponent, *after[i + 1 :])
                    follow(spawned, probability * share / len(cells), depth + 1)

    follow(board, 1.0, 0)
    return deaths


def test_deaths_are_those_of_following_every_way(solved):
    with open_solution(solved("2x2")) as solution:
        for board, flat in (("2 4 / . 8", (1, 2, 0, 3)), ("4 2 / 2 4", (2, 1, 1, 2))):
            found = explained(solution, board, num_spawns=6).deaths
            assert found == pytest.approx(naive_deaths(solution, flat, 6), abs=1e-12)


def test_spawns_of_an_action_average_to_its_value(solved):
    with open_solution(solved("2x3", values="float64")) as solution:
        answer = explained(solution, BOARD)
        assert answer.actions["up"] is None
        for name, action in answer.actions.items():
            if action is None:
                continue
            assert sum(s.probability for s in action.spawns) == pytest.approx(1)
            mean = sum(s.probability * s.value for s in action.spawns)
            assert mean == pytest.approx(action.afterstate_value, abs=1e-9)
            assert action.worst.value <= action.likeliest.value <= action.best.value
            assert action.likeliest.tile == 2
            assert (action.loss == 0) == (name in answer.answer.best)


def test_a_line_of_play_is_play(solved):
    with open_solution(solved("2x3")) as solution:
        board = parse_board(BOARD, solution.shape).rows
        line = explained(solution, BOARD, num_moves=500).line
        for step in line:
            assert step.action == solution.query(board).best[0]
            flat = tuple(t.bit_length() - 1 if t else 0 for row in board for t in row)
            moved, reward = naive.move(flat, 2, 3, step.action)
            assert step.reward == reward
            now = [t for row in step.board for t in row]
            assert sum(now) == sum(faces(moved)) + step.spawn.tile
            board = step.board
        assert solution.query(board).best == ()


def test_tiles_exact_or_from_games(solved):
    with open_solution(solved("2x3")) as solution:
        exact = explained(solution, BOARD)
        games = explained(solution, BOARD, max_states=100)
    assert exact.is_exact
    assert not games.is_exact
    assert exact.tiles[0].probability == 1.0
    simulated = {chance.tile: chance for chance in games.tiles}
    for chance in exact.tiles:
        if chance.tile in simulated:
            found = simulated[chance.tile]
            assert abs(found.probability - chance.probability) <= 4 * found.standard_error + 1e-12
    assert len(games.deaths) < 10
    assert exact.deaths[: len(games.deaths)] == games.deaths


def test_a_board_in_the_other_orientation_is_explained_as_given(solved):
    with open_solution(solved("2x3")) as solution:
        given = explained(solution, BOARD)
        turned = explained(solution, "2 . / . . / 4 2")
    names = dict(zip(ACTIONS, ("left", "right", "up", "down"), strict=True))
    for name, action in given.actions.items():
        other = turned.actions[names[name]]
        assert (action is None) == (other is None)
        if action is not None:
            spawns = {(s.column, s.row, s.tile, s.value) for s in action.spawns}
            assert {(s.row, s.column, s.tile, s.value) for s in other.spawns} == spawns
    assert turned.deaths == pytest.approx(given.deaths)


def test_a_finished_game(solved):
    with open_solution(solved("2x3")) as solution:
        over = explained(solution, "64 32 16 / 8 4 2")
    assert over.line == ()
    assert set(over.actions.values()) == {None}
    assert over.deaths == (1.0,) * 10
    assert [(c.tile, c.probability) for c in over.tiles] == [(64, 1.0)]
    assert "the game is over" in run("explain", solved("2x3"), "64 32 16 / 8 4 2").stdout


@pytest.mark.parametrize(("shape", "board", "options"), [
    ("2x3", "2 4 16 / 2 . 4", ()),
    ("2x4", "2 4 16 . / 2 . . 4", ("--limit", 50)),
    ("2x3", BOARD, ("--moves", 0, "--spawns", 0)),
])  # fmt: skip
def test_command(shape, board, options, solved):
    text = run("explain", solved(shape), board, *options)
    assert text.exit_code == 0, text.output
    assert max(map(len, text.stdout.splitlines())) <= TABLE_WIDTH
    assert ("stopped after" in text.stdout) == ("--limit" in options)
    assert ("from 10,000 games" in text.stdout) == ("--limit" in options)


def test_json(solved):
    record = json.loads(run("explain", solved("2x3"), BOARD, "--json").stdout)
    assert record["best"] == ["left"]
    assert record["actions"]["up"] is None
    assert len(record["line"]) == len(record["deaths"]) == 10
    assert run("explain", solved("2x3"), "2 . . / . . .").exit_code == 4
    assert run("explain", solved("2x3"), "2 . 4 / . . 3").exit_code == 3


def test_for_a_tile(solved):
    path = solved("2x3", objective="tile:32")
    result = run("explain", path, BOARD, "--objective", "tile:32")
    assert result.exit_code == 0
    assert "probability of tile:32 under optimal play" in result.stdout
