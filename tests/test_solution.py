"""Asking a solution: notations, orientations, arrays, ties, bad boards."""

from __future__ import annotations

import shutil
import subprocess
import sys

import numpy as np
import pytest

from solver2048 import open_solution
from solver2048.board import parse_board
from solver2048.errors import BoardError, NoSolution, NotSolved, UnreachableBoard
from solver2048.shape import ACTIONS, SHAPES


@pytest.fixture
def solution(solved):
    with open_solution(solved("2x3")) as opened:
        yield opened


NOTATIONS = [
    "2 . 4 / . . 2",
    "2 0 4/0 0 2",
    "2,_,4/_,_,2",
    "  2, ., 4 /  ., ., 2 ",
    "2 . 4\n. . 2\n",
    "[[2,0,4],[0,0,2]]",
    "2 . 4 . . 2",
    "[2, 0, 4, 0, 0, 2]",
    [[2, 0, 4], [0, 0, 2]],
    ((2, 0, 4), (0, 0, 2)),
    np.array([[2, 0, 4], [0, 0, 2]]),
]


@pytest.mark.parametrize("board", NOTATIONS, ids=repr)
def test_notations(board, solution):
    answer = solution.query(board)
    assert answer.board == ((2, 0, 4), (0, 0, 2))
    assert answer.age == 8
    assert answer.actions["up"] is None
    assert answer.best == ("left",)
    assert answer.value == answer.actions["left"].value
    assert solution.value(board) == answer.value
    assert solution.best_action(board) == "left"
    assert solution.actions(board) == answer.actions


def test_a_board_in_the_other_orientation_has_its_own_actions(solution):
    answer = solution.query("2 . / . . / 4 2")
    given = solution.query("2 . 4 / . . 2")
    assert answer.board == ((2, 0), (0, 0), (4, 2))
    assert answer.value == given.value
    turned = {"up": "left", "down": "right", "left": "up", "right": "down"}
    for action, other in turned.items():
        assert answer.actions[action] == given.actions[other]
    assert answer.best == ("up",)


def test_values_are_consistent(solution):
    answer = solution.query("2 2 4 / . . 2")
    for action in answer.actions.values():
        if action is not None:
            assert action.value == action.reward + action.afterstate_value
    assert answer.actions["left"].reward == 4
    assert answer.value == max(a.value for a in answer.actions.values() if a)


@pytest.mark.parametrize("values", ["float32", "float64"])
def test_equal_actions_are_all_best(values, solved):
    with open_solution(solved("2x2", values=values)) as solution:
        # All four are the same up to symmetry, two of them only to rounding.
        assert solution.query("2 . / . 2").best == ACTIONS
        assert {"left", "right"} <= set(solution.query("2 2 / . .").best)


def test_terminal_board(solution):
    answer = solution.query("64 32 16 / 8 4 2")
    assert answer.value == 0
    assert answer.best == ()
    assert answer.actions == dict.fromkeys(ACTIONS)
    assert solution.best_action("64 32 16 / 8 4 2") is None


def test_arrays_agree_with_single_boards(solution, rng):
    texts = ["2 . 4 / . . 2", "2 2 . / . . .", "64 32 16 / 8 4 2", "4 . . / . . 4", "2 4 8 / 2 . ."]
    boards = np.array([parse_board(t, solution.shape).rows for t in texts])[
        rng.integers(0, len(texts), 1000)
    ]
    probe = solution.probe(boards)
    for i in range(0, 1000, 37):
        answer = solution.query(boards[i].tolist())
        assert probe.values[i] == answer.value
        assert probe.ages[i] == answer.age
        assert tuple(n for n, b in zip(ACTIONS, probe.best[i], strict=True) if b) == answer.best
    assert solution.probe(boards[:0]).values.shape == (0,)


BAD_BOARDS = {
    "2 . 4 / . . 3": "row 2, column 3: '3' is not a tile",
    "2 . 4 / . . -2": "row 2, column 3: '-2' is not a tile",
    "2 . 4 / x . 2": "row 2, column 1: 'x' is not a tile",
    "2 . 4 / 1 . 2": "row 2, column 1: '1' is not a tile",
    "2 . 256 / . . 2": "tile '256' cannot occur on a 2x3 board; the largest is 128",
    "2 . 4 / 99999999999999999999 . 2": "row 2, column 1: '99999999999999999999' is not a tile",
    "2 . 4 / . .": "5 cells given; a 2x3 board has 6",
    "2": "1 cell given; a 2x3 board has 6",
    "": "0 cells given",
    "2 . 4 . / . 2": "rows of different lengths: 4, 2 cells",
    "2 / . / 4 / . / . / 2": "the board given is 6x1, the solution 2x3",
    "[[2,0,4],[0,0,2]": "not a JSON list of rows",
    '[[2,0,4],[0,0,"b"]]': "row 2, column 3: 'b' is not a tile",
    "[[2,0,4],[0,0,2.0]]": "row 2, column 3: 2.0 is not a tile",
    "[[2,0,4],[0,0,null]]": "row 2, column 3: None is not a tile",
    "[[2,0,4],[0,0,true]]": "row 2, column 3: True is not a tile",
    "[[2,0,4],7]": "row 2: 7 is not a list",
    "[" * 100_000: "not a JSON list of rows",
}


@pytest.mark.parametrize("board", BAD_BOARDS, ids=lambda b: b[:40])
def test_malformed_and_impossible_boards(board, solution):
    with pytest.raises(BoardError) as error:
        solution.value(board)
    assert BAD_BOARDS[board] in str(error.value)
    assert len(str(error.value)) < 200


UNREACHABLE = ["2 . . / . . .", ". . . / . . .", "128 128 64 / 4 2 2", "128 64 32 / 16 8 8",
               "8 . . / . . .", "2 2 2 / 2 2 2", "16 . . / . . 2"]  # fmt: skip


@pytest.mark.parametrize("board", UNREACHABLE)
def test_boards_that_can_never_occur(board, solution):
    with pytest.raises(UnreachableBoard, match="can never occur"):
        solution.value(board)


def test_bad_arrays(solution):
    with pytest.raises(BoardError, match="no array"):
        solution.probe([[[2, 0], [0]]])
    for boards in (np.zeros((3, 3, 2), int), np.zeros((2, 3), int), np.zeros((1, 2, 3))):
        with pytest.raises(BoardError, match="integers of shape"):
            solution.probe(boards)
    boards = np.tile(np.array([[2, 0, 4], [0, 0, 2]]), (5, 1, 1))
    boards[3, 1, 0] = 6
    with pytest.raises(BoardError, match="board 3, row 2, column 1: 6 is not a tile"):
        solution.probe(boards)


def test_boards_not_solved_yet(tmp_path):
    from solver2048.solver import SolveOptions, solve

    solve(SHAPES["2x3"], tmp_path / "s", SolveOptions(max_age=40))
    with pytest.raises(NotSolved):
        open_solution(tmp_path / "s")


def test_no_solution(tmp_path):
    with pytest.raises(NoSolution, match="no solution at"):
        open_solution(tmp_path)


def test_tile_objective(solved):
    with open_solution(solved("2x3", objective="tile:16"), "tile:16") as solution:
        assert solution.value("16 4 2 / 2 . .") == 1.0
        answer = solution.query("8 8 2 / . . .")
        assert answer.actions["left"].reward == 0
        assert answer.value == 1.0
        assert {"left", "right"} <= set(answer.best)


MANY = """
import resource, sys
from pathlib import Path
from solver2048 import open_solution
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
solutions = [open_solution(path) for path in sys.argv[1:] for _ in range(100)]
answers = [solution.query("2 . 4 / . . 2").value for solution in solutions]
print(len(answers), len(set(answers)))
"""


def test_many_solutions_are_open_at_once(solved, tmp_path):
    """Half of them without catalogues, in a process that may have few files open."""
    other = shutil.copytree(solved("2x3"), tmp_path / "s")
    for path in other.rglob("catalogue.zip"):
        path.unlink()
    command = [sys.executable, "-c", MANY, str(solved("2x3")), str(other)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert result.stdout.split() == ["200", "1"], result.stderr


def test_values_that_are_still_to_come(solved, tmp_path):
    """Right after the forward pass all boards are known, and no value."""
    path = tmp_path / "s"
    shutil.copytree(solved("2x3"), path)
    for name in ("score/result.json", "score/catalogue.zip"):
        (path / "values" / name).unlink()
    for band in (path / "values/score").glob("*-*"):
        shutil.rmtree(band)
    with open_solution(path) as solution, pytest.raises(NotSolved, match="no values yet"):
        solution.query("2 2 . / . . .")
