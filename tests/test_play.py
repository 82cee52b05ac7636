"""Play in the terminal: what a game keeps count of, what is shown, and the terminal afterwards."""

from __future__ import annotations

import fcntl
import functools
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

import pyte
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


class Terminal:
    """`play` on a terminal of its own; `screen` is what it shows."""

    def __init__(self, path, *arguments, rows=24, columns=80, **environment):
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)
        self._main, self._other = pty.openpty()
        self.output = b""
        fcntl.ioctl(self._other, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        command = [sys.executable, "-m", "solver2048", "play", str(path), *arguments]
        plain = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
        self.process = subprocess.Popen(
            command, stdin=self._other, stdout=self._other, stderr=subprocess.PIPE,
            env=plain | {"TERM": "linux", "PYTHONUTF8": "1"} | environment, start_new_session=True,
            # Of a process that ignores SIGINT a child would too.
            preexec_fn=functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
        )  # fmt: skip

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()
        os.close(self._main)
        os.close(self._other)

    @property
    def modes(self):
        return termios.tcgetattr(self._other)

    def write(self, keys):
        os.write(self._main, keys)

    def _read(self):
        if select.select([self._main], [], [], 0.05)[0]:
            read = os.read(self._main, 65536)
            self.output += read
            self._stream.feed(read)

    def wait_for(self, text):
        """Read until a text is on the screen."""
        deadline = time.monotonic() + 300
        while not any(text in line for line in self.screen.display):
            assert time.monotonic() < deadline, "\n".join(self.screen.display)
            self._read()

    def end(self):
        """(exit code, standard error), read to the end."""
        deadline = time.monotonic() + 300
        while self.process.poll() is None:
            assert time.monotonic() < deadline
            self._read()
        self._read()
        return self.process.returncode, self.process.stderr.read()


@pytest.mark.parametrize("leave", ["q", signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_terminal_is_left_as_it_was(leave, solved):
    with Terminal(solved("2x3"), "--seed", "1") as terminal:
        before = terminal.modes
        terminal.wait_for("q quit")
        assert terminal.modes != before
        terminal.write(b" ")
        terminal.wait_for("a best one")
        if leave == "q":
            terminal.write(b"q")
            assert terminal.end() == (0, b"")
        else:
            terminal.process.send_signal(leave)
            assert terminal.end() == (130, b"interrupted\n")
        assert terminal.modes == before


def test_a_game_by_keys(solved):
    with Terminal(solved("2x3"), "--seed", "1", "--board", "2 . 4 / . . 2") as terminal:
        terminal.wait_for("moves 0")
        for keys, text in (
            (b"\x1b[C", "lost; best: left"),  # the arrow to the right
            (b"u", "moves 0"),
            (b"ca", "spawn here"),
            (b"s4", "last move: left, a best one"),
            (b"i", "hints are off"),
            (b"n", "moves 0"),
        ):
            terminal.write(keys)
            terminal.wait_for(text)
        terminal.write(b"q")
        assert terminal.end()[0] == 0


@pytest.mark.parametrize("no_color", ["", "1"])
def test_colour_unless_it_is_unwanted(no_color, solved):
    with Terminal(solved("2x3"), NO_COLOR=no_color) as terminal:
        terminal.wait_for("q quit")
        assert bool(COLOUR.search(terminal.output)) == (not no_color)


def test_a_small_terminal_says_so(solved):
    with Terminal(solved("2x3"), rows=8, columns=50) as terminal:
        terminal.wait_for("needed, 50x8 here")


def test_watching_optimal_play(solved):
    path = solved("2x3")
    with Terminal(path, "--auto", "--delay", "0", "--seed", "4") as terminal:
        terminal.wait_for("the game is over")
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
    with Terminal(path, TERM="dumb") as terminal:
        code, errors = terminal.end()
    assert code == 2
    assert b"is no terminal to play on" in errors
