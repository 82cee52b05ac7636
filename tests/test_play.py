"""Play in the terminal: what a game keeps count of, what is shown, and the terminal afterwards."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from contextlib import contextmanager

import pytest
from test_cli import run

from solver2048 import open_solution
from solver2048.board import parse_board
from solver2048.game_view import view
from solver2048.played_game import PlayedGame
from solver2048.simulation import simulate

COLOUR = re.compile(rb"\x1b\[[0-9;]*3[0-7]m")


@pytest.fixture
def solution(solved):
    with open_solution(solved("2x3")) as opened:
        yield opened


def shown(game, **options):
    return ["".join(text for text, _ in line) for line in view(game, **options)]


def test_optimal_play_is_the_first_simulated_game(solution):
    for seed in (1, 2, 3):
        game = PlayedGame(solution, seed)
        while not game.is_over:
            game.play(game.position.answer.best[0])
            game.place_drawn()
        games = simulate(solution, 1, seed)
        assert game.position.score == games.scores[0]
        assert game.position.num_moves == games.num_moves[0]
        assert game.position.lost == 0


def test_losses_and_luck_explain_the_value(solution):
    game = PlayedGame(solution, 5, parse_board("2 . 4 / . . 2", solution.shape))
    answer = game.position.answer
    assert not game.play("up")
    assert game.play("right")
    assert not game.play("left")  # the spawn comes first
    game.place((0, 0), 4)
    now = game.position
    loss = answer.value - answer.actions["right"].value
    assert (now.lost, now.num_losing, now.last.loss) == (loss, 1, loss)
    assert game.luck == pytest.approx(now.score + now.answer.value - answer.value + loss)
    game.play("left")
    assert game.undo()
    assert game.position is now
    assert game.undo()
    assert game.position.answer == answer
    assert not game.undo()
    game.new_game()
    assert (game.seed, game.position.num_moves, game.position.lost) == (6, 0, 0)


def test_the_board_may_be_turned(solution):
    game = PlayedGame(solution, 1, parse_board("2 . / . . / 4 2", solution.shape))
    game.play("up")
    game.place_drawn()
    assert len(game.rows) == 3


def test_the_screen_holds_what_it_should(solved):
    with open_solution(solved("2x4")) as solution:
        game = PlayedGame(solution, 1)
        for options in ({}, {"has_hints": False}, {"is_auto": True}, {"is_choosing": True}):
            lines = shown(game, **options)
            assert max(map(len, lines)) < 80
            assert len(lines) <= 24
            assert any("best" in line for line in lines[:8]) == ("has_hints" not in options)
        best = game.position.answer.best[0]
        game.play(best)
        cursor = game.empty_cells()[0]
        assert any("spawn here" in line for line in shown(game, cursor=cursor))
        game.place(cursor, 2)
        assert any(f"last move: {best}, a best one" in line for line in shown(game))


@contextmanager
def on_terminal(path, *arguments, rows=24, columns=80, **environment):
    """`play` on a terminal of its own: (process, write, read until a text, terminal)."""
    main, other = pty.openpty()
    fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    command = [sys.executable, "-m", "solver2048", "play", str(path), *arguments]
    plain = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    process = subprocess.Popen(
        command, stdin=other, stdout=other, stderr=subprocess.PIPE, start_new_session=True,
        env=plain | {"TERM": "xterm", "PYTHONUTF8": "1"} | environment,
    )  # fmt: skip
    output = bytearray()

    def read(*texts, start=0):
        deadline = time.monotonic() + 60
        while not all(text in output[start:] for text in texts):
            assert time.monotonic() < deadline, output
            if select.select([main], [], [], 0.1)[0]:
                output.extend(os.read(main, 65536))
        return bytes(output)

    def write(keys):
        position = len(output)
        os.write(main, keys)
        return position

    try:
        yield process, write, read, other
    finally:
        process.kill()
        process.communicate()
        os.close(main)
        os.close(other)


@pytest.mark.parametrize("leave", ["q", signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_terminal_is_left_as_it_was(leave, solved):
    with on_terminal(solved("2x3"), "--seed", "1") as (process, write, read, terminal):
        before = termios.tcgetattr(terminal)
        read(b"moves 0", b"q quit")
        assert termios.tcgetattr(terminal) != before
        read(b"last move", start=write(b" "))
        if leave == "q":
            write(b"q")
        else:
            process.send_signal(leave)
        errors = process.communicate(timeout=60)[1]
        assert process.returncode == (0 if leave == "q" else 130)
        assert errors == (b"" if leave == "q" else b"interrupted\n")
        assert termios.tcgetattr(terminal) == before


def test_a_game_by_keys(solved):
    board = "2 . 4 / . . 2"
    with on_terminal(solved("2x3"), "--seed", "1", "--board", board) as (process, write, read, _):
        read(b"q quit")
        read(b"lost; best: left", start=write(b"\x1bOC"))  # right
        write(b"u")
        read(b"spawn here", start=write(b"ca"))
        read(b"a best one", start=write(b"s4"))
        read(b"hints are off", start=write(b"i"))
        write(b"nq")
        process.communicate(timeout=60)
        assert process.returncode == 0


@pytest.mark.parametrize("no_color", ["", "1"])
def test_colour_unless_it_is_unwanted(no_color, solved):
    path = solved("2x3")
    with on_terminal(path, NO_COLOR=no_color) as (_, _, read, _):
        assert bool(COLOUR.search(read(b"q quit"))) == (not no_color)


def test_a_small_terminal_says_so(solved):
    with on_terminal(solved("2x3"), rows=8, columns=50) as (_, _, read, _):
        read(b"needed, 50x8 here")


def test_watching_optimal_play(solved):
    path = solved("2x3")
    with on_terminal(path, "--auto", "--delay", "0", "--seed", "4") as (_, write, read, _):
        read(b"the game is over")
        write(b"q")
    lines = run("play", path, "--auto", "--seed", 4).stdout.splitlines()
    with open_solution(path) as solution:
        games = simulate(solution, 1, 4)
    assert lines[-1].startswith(f"score {games.scores[0]:,} after {games.num_moves[0]} moves, 0.00")
    assert len(lines) == games.num_moves[0] + 2


def test_refusals(solved):
    path = solved("2x3")
    result = run("play", path)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "to play takes a terminal" in result.stderr
    assert run("play", path, "--auto", "--board", "2 . . / . . .").exit_code == 4
    assert run("play", "nowhere", "--auto").exit_code == 6
    with on_terminal(path, TERM="dumb") as (process, _, _, _):
        errors = process.communicate(timeout=60)[1]
        assert process.returncode == 2
        assert b"is no terminal to play on" in errors
