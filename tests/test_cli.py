"""The command line: results, exit codes, no traceback, nothing written by mistake."""

from __future__ import annotations

import functools
import json
import os
import re
import signal
import subprocess
import sys

import pytest
from conftest import run, solution_bytes, wait_for

from solver2048.cli import main

TABLE_WIDTH = 80


def test_solve_prints_a_table_with_published_figures(tmp_path):
    result = run("solve", "2x3", "--out", tmp_path / "s")
    assert result.exit_code == 0, result.output
    table = result.stdout
    for text in ("21,752", "14,883", "4,484", "480.25827178  480.25827178", "two 2s", "bits each"):
        assert text in table
    assert max(len(line) for line in table.splitlines() if "in " not in line) <= TABLE_WIDTH
    again = run("solve", "2x3", "--out", tmp_path / "s")
    assert again.exit_code == 0
    assert again.stdout.endswith(table)
    assert again.stdout.startswith("Made before; nothing to do.")
    report = json.loads(run("solve", "2x3", "--out", tmp_path / "s", "--json").stdout)
    assert report["states"] == 21_752
    assert report["is_finished"]


def test_default_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("solve", "2x2").exit_code == 0
    assert (tmp_path / "solutions/2x2/solution.json").is_file()


def test_max_age_prints_counts_and_goes_on(tmp_path):
    result = run("solve", "2x3", "--out", tmp_path / "s", "--max-age", 10)
    assert result.exit_code == 0
    rows = result.stdout.splitlines()
    assert rows[0] == "age,states,states_labelled,afterstates,afterstates_labelled,terminal"
    assert rows[1:5] == ["4,6,15,5,14,0", "6,14,50,5,18,0", "8,24,81,14,48,0", "10,38,142,18,66,0"]
    assert run("query", tmp_path / "s", "2 2 . / . . .").exit_code == 5
    assert "age 10 of 252" in run("status", tmp_path / "s").stdout
    assert run("solve", "2x3", "--out", tmp_path / "s").exit_code == 0
    assert run("query", tmp_path / "s", "2 2 . / . . .").exit_code == 0


def test_query_text_and_json(solved):
    path = solved("2x3")
    text = run("query", path, "2 . 4 / . . 2").stdout
    assert "* left" in text
    assert re.search(r"up +illegal", text)
    answer = json.loads(run("query", path, "--json", "2 . / . . / 4 2").stdout)
    assert answer["board"] == [[2, 0], [0, 0], [4, 2]]
    assert answer["best"] == ["up"]
    assert set(answer) == {"board", "age", "value", "best", "actions"}
    assert answer["actions"]["left"] is None
    assert set(answer["actions"]["up"]) == {"value", "reward", "afterstate_value"}


def test_query_standard_input(solved):
    boards = "2 . 4 / . . 2\n\n2 . 4 / . . 7\n[[2,0,4],[0,0,2]]\n8 . . / . . .\n"
    result = run("query", solved("2x3"), "--json", "-", stdin=boards)
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    assert len(answers) == 2
    assert answers[0] == answers[1]
    assert "line 3: row 2, column 3" in result.stderr
    assert "line 5: board 8 . . / . . . can never occur" in result.stderr
    assert result.exit_code == 3
    assert run("query", solved("2x3"), "-", stdin=b"\xff\xfe 2\n").exit_code == 3


def test_counts(solved, tmp_path):
    csv_text = run("counts", solved("2x2")).stdout
    assert csv_text.splitlines()[1] == "4,2,6,2,8,0"
    (tmp_path / "counts.csv").write_text(csv_text)
    options = ("--max-age", 20, "--expect-counts", tmp_path / "counts.csv")
    assert run("solve", "2x2", "--out", tmp_path / "s", *options).exit_code == 0
    rows = [json.loads(line) for line in run("counts", solved("2x2"), "--json").stdout.splitlines()]
    assert len(rows) == 29
    assert sum(row["states"] for row in rows) == 110


def test_checksums_are_those_of_sha256sum(tmp_path):
    run("solve", "2x2", "--out", tmp_path / "s")
    (tmp_path / "sums").write_text(run("checksums", tmp_path / "s").stdout)
    command = ["sha256sum", "--strict", "-c", tmp_path / "sums"]
    result = subprocess.run(command, cwd=tmp_path / "s", capture_output=True, text=True)
    assert result.returncode == 0, result.stdout
    named = {line.split()[1] for line in (tmp_path / "sums").read_text().splitlines()}
    assert named == set(solution_bytes(tmp_path / "s"))


def test_status_and_verify(solved):
    assert run("status", solved("2x3")).stdout.startswith("Finished.")
    assert json.loads(run("status", solved("2x4"), "--json").stdout)["is_finished"]
    result = run("verify", solved("2x3"))
    assert result.exit_code == 0
    assert "values computed again" in result.stdout
    assert json.loads(run("verify", solved("2x3"), "--json").stdout)["ok"]


BAD_CALLS = [
    (("solve", "5x5"), 2, "supported are 2x2, 2x3, 2x4, 3x3, 4x3"),
    (("solve", "threexthree"), 2, "supported are"),
    (("solve", "2x2", "--spawn4", "0"), 2, "between 0 and 1"),
    (("solve", "2x2", "--spawn4", "1"), 2, "between 0 and 1"),
    (("solve", "2x2", "--spawn4", "nan"), 2, "between 0 and 1"),
    (("solve", "2x2", "--objective", "tile:64"), 2, "the largest is 32"),
    (("solve", "2x2", "--objective", "tile:12"), 2, "12 is not a tile"),
    (("solve", "2x2", "--objective", "moves"), 2, "neither 'score' nor 'tile:N'"),
    (("solve", "2x2", "--values", "fixed:31"), 2, "the finest here is fixed:24"),
    (("solve", "2x2", "--values", "int8"), 2, "neither float32"),
    (("solve", "2x2", "--ids", "zip"), 2, "'zip' is not one of 'index', 'radix'"),
    (("solve", "2x2", "--threads", "0"), 2, "at least 1"),
    (("solve", "2x2", "--max-age", "3"), 2, "first age is 4"),
    (("solve", "2x2", "--expect-counts", "/nowhere"), 2, "could not be read"),
    (("solve", "2x2", "--no-such-option"), 2, "No such option"),
    (("query", "nowhere", "2 2 / . ."), 6, "no solution at nowhere"),
    (("counts", "nowhere"), 6, "no solution at nowhere"),
    (("status", "nowhere"), 6, "no solution at nowhere"),
    (("verify", "nowhere"), 6, "no solution at nowhere"),
    (("verify", "solved", "--level", "half"), 2, "is not one of"),
    (("repair", "nowhere"), 6, "no solution at nowhere"),
    (("repair", "other"), 6, "no solution at other"),
    (("checksums", "nowhere"), 6, "no solution at nowhere"),
    (("query", "solved", "2 . 2 / . . ."), 3, "6 cells given; a 2x2 board has 4"),
    (("query", "solved", "2 3 / . ."), 3, "row 1, column 2"),
    (("query", "solved", "64 . / . 2"), 3, "cannot occur on a 2x2 board; the largest is 32"),
    (("query", "solved", "32 32 / . ."), 4, "can never occur"),
    (("query", "solved", "2 . / . ."), 4, "can never occur"),
    (("query", "solved", "2 2 / . .", "--objective", "tile:16"), 5, "no values"),
    (("query", "partial", "2 2 / . ."), 5, "no values"),
    (("solve", "2x3", "--out", "solved"), 6, "solved with shape 2x2; you asked for 2x3"),
    (("solve", "2x2", "--out", "solved", "--spawn4", "0.2"), 6, "spawn4 0.1; you asked for 0.2"),
    (("solve", "2x2", "--out", "solved", "--ids", "radix"), 6, "ids index; you asked for radix"),
    (("solve", "2x2", "--out", "solved", "--values", "float64"), 6, "you asked for float64"),
    (("solve", "2x2", "--out", "other"), 6, "holds no solution"),
    (("solve", "2x2", "--out", "other/file"), 6, "cannot be a solution"),
]


@pytest.mark.parametrize(("arguments", "code", "message"), BAD_CALLS, ids=lambda a: str(a)[:60])
def test_bad_calls(arguments, code, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if "solved" in arguments:
        run("solve", "2x2", "--out", "solved")
    if "partial" in arguments:
        run("solve", "2x2", "--out", "partial", "--max-age", "20")
    (tmp_path / "other").mkdir()
    (tmp_path / "other/file").write_text("something else")

    def contents():
        return {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file() and p.name != "lock"}

    before = contents()
    result = run(*arguments)
    assert result.exit_code == code, result.output
    assert message in result.stderr
    assert "Traceback" not in result.output
    assert not result.stdout
    assert contents() == before


def test_a_differing_figure_has_its_exit_code(tmp_path):
    (tmp_path / "counts").write_text("4 2\n6 4\n")
    result = run("solve", "2x2", "--out", tmp_path / "s", "--expect-counts", tmp_path / "counts")
    assert result.exit_code == 10
    assert "age 6: 3 states, expected 4" in result.stderr
    (tmp_path / "counts").write_text("4 two\n")
    result = run("solve", "2x2", "--out", tmp_path / "s", "--expect-counts", tmp_path / "counts")
    assert result.exit_code == 2
    assert "line 1" in result.stderr


@pytest.mark.parametrize(
    "command",
    [[], *([name] for name in main.commands)],
)
def test_help_has_an_example(command):
    result = run(*command, "--help")
    assert result.exit_code == 0
    assert ("Exit codes:" if not command else "Example:\n    solver2048") in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= TABLE_WIDTH


def solver(*arguments):
    command = [sys.executable, "-m", "solver2048", *map(str, arguments)]
    # As from a terminal, also where the tests run in the background, with SIGINT ignored.
    listen = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=listen
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_solve_says_how_to_go_on(number, tmp_path):
    with solver("solve", "3x3", "--out", tmp_path / "s", "--threads", 1) as process:
        wait_for((tmp_path / "s/sets").is_dir)
        process.send_signal(number)
        _, errors = process.communicate(timeout=300)
    assert process.returncode == 130
    assert "goes on where it stopped" in errors
    assert "Traceback" not in errors


def test_two_solves_on_one_directory(tmp_path):
    with solver("solve", "3x3", "--out", tmp_path / "s", "--threads", 1) as first:
        wait_for((tmp_path / "s/solution.json").is_file)
        with solver("solve", "3x3", "--out", tmp_path / "s") as second:
            _, errors = second.communicate(timeout=300)
        assert second.returncode == 7
        assert f"in use by process {first.pid}" in errors
        first.kill()
    # The lock of a killed process does not block.
    with solver("solve", "3x3", "--out", tmp_path / "s", "--max-age", 4) as third:
        third.communicate()
    assert third.returncode == 0


def test_output_to_a_closed_pipe_is_no_traceback(solved):
    with solver("counts", solved("3x3")) as process:
        process.stdout.close()
        errors = process.stderr.read()
    assert "Traceback" not in errors


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_output_is_one_line(solved):
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "solver2048", "counts", str(solved("2x3"))]
        result = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert result.returncode == 9
    assert "Traceback" not in result.stderr


def test_module_and_version():
    with solver("--version") as process:
        output, _ = process.communicate()
    assert process.returncode == 0
    assert output.startswith("solver2048, version ")
    assert os.linesep in output
