"""`query --input`: lines in, rows out, in every format; bad lines named, nothing lost."""

from __future__ import annotations

import builtins
import csv
import io
import itertools
import json
import sys

import numpy as np
import pytest
from conftest import run

from solver2048 import ACTIONS, bulk, open_solution
from solver2048.board import parse_board
from solver2048.board_lines import BoardLines
from solver2048.errors import BoardError
from solver2048.files import written_aside
from solver2048.kernels.board_text import READ, read_lines_into
from solver2048.shape import SHAPES

LINES = [
    "2 . 4 / . . 2",
    "",
    "2,0,4,0,0,2",
    "[[2,0,4],[0,0,2]]",
    "2 . / . . / 4 2",
    "2 . 4 / . . 7",
    '{"board": [[2, 0, 4], [0, 0, 2]], "age": 8}',
    "8 . . / . . .",
    "64 32 16 / 8 4 2",
    '{"boards": 1}',
    "2 2 . / . . .",
]
BAD = {6: "row 2, column 3: '7' is not a tile", 8: "can never occur", 10: "cells given"}


@pytest.fixture
def boards_file(tmp_path):
    path = tmp_path / "boards.txt"
    path.write_text("\n".join(LINES))
    return path


def read_rows(path):
    if path.suffix == ".csv":
        return list(csv.DictReader(path.read_text().splitlines()))
    import pyarrow.parquet

    return pyarrow.parquet.read_table(path).to_pylist()


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_tables(suffix, solved, boards_file, tmp_path):
    target = tmp_path / f"answers.{suffix}"
    result = run("query", solved("2x3"), "--input", boards_file, "--output", target)
    assert result.exit_code == 3
    assert result.stdout == ""
    assert [line.split(": ")[1] for line in result.stderr.splitlines()] == [
        f"line {number}" for number in BAD
    ]
    rows = read_rows(target)
    assert list(rows[0]) == ["line", "board", "age", "value", "best", *ACTIONS, "error"]
    assert [int(row["line"]) for row in rows] == [1, *range(3, 12)]
    with open_solution(solved("2x3")) as solution:
        for row in rows:
            if int(row["line"]) in BAD:
                assert BAD[int(row["line"])] in row["error"]
                assert row["board"] == LINES[int(row["line"]) - 1]
                assert not any(row[name] for name in ("age", "value", "best", *ACTIONS))
                continue
            answer = solution.query(row["board"])
            assert int(row["age"]) == answer.age
            assert float(row["value"]) == answer.value
            assert row["best"] == " ".join(answer.best)
            for name, action in answer.actions.items():
                assert (float(row[name]) if row[name] else None) == (action and action.value)
            assert not row["error"]


def test_json_lines_are_what_query_prints(solved, boards_file, tmp_path):
    target = tmp_path / "answers.jsonl"
    assert run("query", solved("2x3"), "--input", boards_file, "--output", target).exit_code == 3
    rows = [json.loads(line) for line in target.read_text().splitlines()]
    good = [row for row in rows if "error" not in row]
    printed = run("query", solved("2x3"), "--json", *(json.dumps(row["board"]) for row in good))
    for row, line in zip(good, printed.stdout.splitlines(), strict=True):
        assert {"line": row["line"], **json.loads(line)} == row
    assert {row["line"]: row["board"] for row in rows if "error" in row} == {
        number: LINES[number - 1] for number in BAD
    }
    again = run("query", solved("2x3"), "--input", target, "--json")
    assert json.loads(again.stdout.splitlines()[0]) == rows[0]


def test_standard_streams_and_a_table_fed_back(solved, tmp_path):
    text = "2 . 4 / . . 2\n2 2 . / . . .\n"
    first = run("query", solved("2x3"), "--input", "-", stdin=text)
    assert first.exit_code == 0
    again = run("query", solved("2x3"), "--input", "-", stdin=first.stdout)
    # The header is line 1.
    moved = [row.split(",", 1)[1] for row in again.stdout.splitlines()]
    assert moved == [row.split(",", 1)[1] for row in first.stdout.splitlines()]
    assert run("query", solved("2x3"), "--input", "-", stdin="").stdout.startswith("line,board")


def test_many_bad_lines_are_counted(solved, tmp_path):
    source = tmp_path / "boards.txt"
    source.write_text("x\n" * 1000 + "2 2 . / . . .\n")
    result = run("query", solved("2x3"), "--input", source, "--output", tmp_path / "a.csv")
    assert result.exit_code == 3
    assert len(result.stderr.splitlines()) == bulk.BadLines.SHOWN + 1
    assert f"{1000 - bulk.BadLines.SHOWN} more lines" in result.stderr
    assert len((tmp_path / "a.csv").read_text().splitlines()) == 1002


def test_an_output_is_whole_or_as_it_was(solved, boards_file, tmp_path, monkeypatch):
    target = tmp_path / "answers.csv"
    target.write_text("of old")

    def broken(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("solver2048.answer_files.CsvWriter.write", broken)
    result = run("query", solved("2x3"), "--input", boards_file, "--output", target)
    assert result.exit_code == 9
    assert "No space left" in result.stderr
    assert target.read_text() == "of old"
    assert {path.name for path in tmp_path.iterdir()} == {"answers.csv", "boards.txt"}


def test_a_pipe_is_written_as_it_is():
    from pathlib import Path

    with written_aside(Path("/dev/null")) as file:
        file.write(b"x")
    assert Path("/dev/null").is_char_device()


def test_calls_that_cannot_be(solved, boards_file, tmp_path, monkeypatch):
    path = solved("2x3")
    assert run("query", path).exit_code == 2
    assert run("query", path, "2 2 . / . . .", "--input", "-").exit_code == 2
    assert run("query", path, "--input", boards_file, "--output", boards_file).exit_code == 2
    assert boards_file.read_text() == "\n".join(LINES)
    missing = run("query", path, "--input", tmp_path / "none.txt")
    assert missing.exit_code == 6
    assert "No such file" in missing.stderr

    real_import = builtins.__import__

    def without(name, *rest):
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return real_import(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    for name in [name for name in sys.modules if name.startswith("pyarrow")]:
        monkeypatch.delitem(sys.modules, name)
    (tmp_path / "boards.txt").write_text("2 2 . / . . .\n")
    result = run("query", path, "--input", tmp_path / "boards.txt",
                 "--output", tmp_path / "a.parquet")  # fmt: skip
    assert result.exit_code == 2
    assert "solver2048[parquet]" in result.stderr
    assert not (tmp_path / "a.parquet").exists()


def test_lines_read_fast_are_read_as_boards_are(rng):
    """Whatever the kernel reads at all it reads as `parse_board` does, transposed or not."""
    shape = SHAPES["2x3"]
    tokens = ["2", "4", "128", "0", ".", "_", "16", "6", "x", "", "02", "1234567890", "-2"]
    gaps = [" ", ",", " , ", " / ", "/", "\t", ",,", "[", "]", "],["]
    lines = [line for line in LINES if line]
    lines += [
        "[[2,0,4],[0,0,02]]",
        "[ [2 ,0, 4] , [0,0,2] ] ",
        "[[2,0,4],[0,0,2]]]",
        "[2,0,4,0,0,2]",
    ]
    for _ in range(3000):
        cells = rng.choice(tokens, 6, p=[0.3, 0.2, 0.1, 0.1, 0.1, 0.05] + [0.15 / 7] * 7)
        places = rng.choice(gaps, 5, p=[0.6] + [0.4 / 9] * 9)
        places[2] = rng.choice(gaps)
        lines.append("".join(itertools.chain(*zip(cells, [*places, ""], strict=True))))
    kinds = np.empty(len(lines), dtype=np.uint8)
    tiles = np.empty((len(lines), 6), dtype=np.int64)
    text = np.frombuffer("".join(f"{line}\n" for line in lines).encode(), dtype=np.uint8)
    read_lines_into(text, 2, 3, tiles, kinds)
    assert 200 < (kinds == READ).sum() < 3000
    for line, kind, cells in zip(lines, kinds, tiles, strict=True):
        if kind != READ:
            continue
        if any(cell == 1 or cell & (cell - 1) or cell > 128 for cell in cells.tolist()):
            with pytest.raises(BoardError, match=r"is not a tile|cannot occur"):
                parse_board(line, shape)
            continue
        given = parse_board(line, shape)
        assert not given.is_transposed
        assert given.oriented.ravel().tolist() == cells.tolist(), line


def test_batches_do_not_show(solved, monkeypatch, tmp_path):
    source = tmp_path / "boards.txt"
    source.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(LINES * 50).encode())
    outputs = []
    for size in (1 << 21, 100):
        monkeypatch.setattr("solver2048.board_lines.BATCH_BYTES", size)
        result = run("query", solved("2x3"), "--input", source, "--threads", 2)
        outputs.append(result.stdout)
    assert outputs[0] == outputs[1]
    assert len(outputs[0].splitlines()) == 1 + 50 * 10
    with source.open("rb") as stream:
        batches = list(BoardLines(stream, SHAPES["2x3"]))
    assert len(batches) > 10
    assert sum(len(batch.lines) for batch in batches) == 500
    assert isinstance(outputs[0], str)
    assert (
        io.StringIO(outputs[0]).readline()
        == "line,board,age,value,best," + ",".join(ACTIONS) + ",error\n"
    )
