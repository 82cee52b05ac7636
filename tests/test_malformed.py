"""Boards that are none: an error that names the cell, no traceback and no number."""

from __future__ import annotations

import pytest
from click.testing import CliRunner
from conftest import scaled

from solver2048 import open_solution
from solver2048.cli import main
from solver2048.errors import BoardError

BAD_CELLS = ["3", "-2", "1", "2.0", "x", "²", "2k", "6", "1e3", "0x10", "NaN", "999999999999",
             "256", "512", "None", "''", "+4", "2_0", "١", "∞"]  # fmt: skip
BAD_JSON_CELLS = ["3", "-2", "1", "2.5", '"x"', "true", "null", "[]", "{}", "6", "1e400", "NaN",
                  "99999999999999999999999999999999999999999999", "256", '"2 4"']  # fmt: skip

# By hand: the text, and what its error has to say.
BY_HAND = [
    ("", "0 cells"), (" ", "0 cells"), ("/", "0 cells"), ("//", "0 cells"), (",", "0 cells"),
    ("2", "1 cell given"), ("2 4", "2 cells"), ("2 4 / 2 4", "4 cells"),
    ("2 . 4 / . . 2 / . . .", "9 cells"), (". " * 5, "5 cells"), (". " * 7, "7 cells"),
    ("2 . . . / . .", "lengths"), ("2 . / . . / . . .", "7 cells"), ("2 . 4 . / . 2", "lengths"),
    ("2 / . . . . .", "lengths"), ("2 . 4 . . / 2", "lengths"), ("2 / . / . / . / . / 4", "6x1"),
    ("2 . 4 / . . 3", "row 2, column 3"), ("3 . 4 / . . 2", "row 1, column 1"),
    ("2 . 4 / x . 2", "row 2, column 1"), ("2 -4 4 / . . 2", "row 1, column 2"),
    ("2 . 4 / . 2.0 2", "row 2, column 2"), ("2 . 1 / . . 2", "row 1, column 3"),
    ("2 . 6 / . . 2", "row 1, column 3"), ("2 . 256 / . . 2", "row 1, column 3"),
    ("2 . 2048 / . . 2", "the largest is 128"), ("2 . 99999999999 / . . 2", "row 1, column 3"),
    ("2 . 4 / . . 0x2", "row 2, column 3"), ("2 . 4 / . . 2e0", "row 2, column 3"),
    ("2 . 4 / . . +2", "row 2, column 3"), ("2 . 4 / . . ²", "row 2, column 3"),
    ("2 . 4 / . . ٢", "row 2, column 3"), ("2 .. 4 / . . 2", "row 1, column 2"),
    ("2 - 4 / . . 2", "row 1, column 2"), ("2 * 4 / . . 2", "row 1, column 2"),
    ("2 NaN 4 / . . 2", "row 1, column 2"), ("2 inf 4 / . . 2", "row 1, column 2"),
    ("2 4;4 . / . . 2", "row 1, column 2"), ("2|.|4 / . . . . 2", "lengths"),
    ("2\u200b . 4 / . . 2", "row 1, column 1"), ("2 . 4 \\ . . 2", "7 cells"),
    ("[", "JSON"), ("[]", "0 cells"), ("[[]]", "0 cells"), ("[[2,0,4],[0,0,2]", "JSON"),
    ("[[2,0,4],[0,0]]", "5 cells"), ("[[2,0,4,0],[0,2]]", "lengths"),
    ("[[2,0,4],[0,0,3]]", "row 2, column 3"), ('[[2,0,4],[0,0,"x"]]', "row 2, column 3"),
    ("[[2,0,4],[0,0,null]]", "row 2, column 3"), ("[[2,0,4],[0,0,true]]", "row 2, column 3"),
    ("[[2,0,4],[0,0,2.0]]", "row 2, column 3"), ("[[2,0,4],[0,0,[2]]]", "row 2, column 3"),
    ("[[2,0,4],[0,0,{}]]", "row 2, column 3"), ("[[2,0,4],[0,0,1e999]]", "row 2, column 3"),
    ("[[2,0,4],[0,0,-2]]", "row 2, column 3"), ("[[2,0,4],7]", "row 2: 7 is not a list"),
    ('["2 . 4", "3 . 2"]', "2 cells"), ("[2,0,4,0,0,3]", "row 2, column 3"),
    ("[[[2,0,4]],[[0,0,2]]]", "2 cells"), ("[" * 5000, "JSON"),
    ("[[2,0,4],[0,0," + "9" * 5000 + "]]", "JSON"),
]  # fmt: skip


def test_malformed_boards_by_hand(solved):
    assert len(BY_HAND) >= 60
    path = str(solved("2x3"))
    with open_solution(path) as solution:
        for text, message in BY_HAND:
            with pytest.raises(BoardError) as caught:
                solution.query(text)
            assert message in str(caught.value), (text, str(caught.value))
    for text, message in BY_HAND[::6]:
        result = CliRunner().invoke(main, ["query", path, "--", text])
        assert result.exit_code == 3, text
        assert message in result.stderr
        assert not result.stdout
        assert "Traceback" not in result.output


@scaled(2000)
def test_malformed_boards(trials, solved, rng):
    """One cell of a proper board is none: the error names it, and nothing is answered."""
    lines, places = [], []
    for number in range(trials):
        cells = [str(tile) for tile in rng.choice([0, 2, 4, 8, 16], 6)]
        cell = int(rng.integers(6))
        is_json = number % 2 == 0
        cells[cell] = str(rng.choice(BAD_JSON_CELLS if is_json else BAD_CELLS))
        transposed = rng.random() < 0.5
        width = 2 if transposed else 3
        rows = [cells[i : i + width] for i in range(0, 6, width)]
        if is_json:
            lines.append("[" + ",".join("[" + ",".join(row) + "]" for row in rows) + "]")
        else:
            blank = str(rng.choice([" ", ",", " , ", "\t"]))
            lines.append(" / ".join(blank.join(row) for row in rows))
        places.append(f"row {cell // width + 1}, column {cell % width + 1}: ")
    text = "\n".join(lines) + "\n"
    result = CliRunner().invoke(main, ["query", str(solved("2x3")), "--json", "-"], input=text)
    assert result.exit_code == 3
    assert not result.stdout
    errors = result.stderr.splitlines()
    assert len(errors) == trials
    for number, (error, place) in enumerate(zip(errors, places, strict=True), 1):
        assert error.startswith(f"error: line {number}: {place}"), (lines[number - 1], error)
