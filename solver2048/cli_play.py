"""The command `play`: a game in the terminal, beside what the solution says."""

from __future__ import annotations

import secrets
import signal
import sys

import click

from .cli_command import Command
from .cli_options import objective_option, path_argument
from .errors import UsageError


@click.command(cls=Command, example="solver2048 play solutions/3x3\n"
               "solver2048 play solutions/3x3 --auto --delay 0.1 --seed 7\n"
               'solver2048 play solutions/3x3 --board "8 2 4 / 2 . . / . . 2"')  # fmt: skip
@path_argument
@click.option("--auto", "is_auto", is_flag=True,
              help="Watch optimal play; in plain lines where this is no terminal.")  # fmt: skip
@click.option("--delay", type=click.FloatRange(0, 60), metavar="SECONDS",
              help="Between moves of --auto.  [default: 0.3, in plain lines 0]")  # fmt: skip
@click.option("--seed", type=click.IntRange(0, 2**63), metavar="N",
              help="The same seed, the same spawns.  [default: another one each time]")  # fmt: skip
@click.option("--board", metavar="BOARD", help="Where to start.  [default: a random start]")
@objective_option
def play(path: str, is_auto: bool, delay: float | None, seed: int | None, board: str | None,
         objective: str) -> None:  # fmt: skip
    """Play with hints: the value of each action, and what your moves have lost.

    Arrows, wasd or hjkl move; space makes the best move, u takes one back, n begins again, i shows
    or hides hints, c lets you choose spawns, q quits. Without colour where NO_COLOR is set.
    """
    is_screen = all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))
    if not is_screen and not is_auto:
        raise UsageError("to play takes a terminal; `play --auto` prints plain lines without one")

    from .board import parse_board
    from .opening import open_solution
    from .played_game import PlayedGame

    with open_solution(path, objective) as solution:
        given = None if board is None else parse_board(board, solution.shape)
        game = PlayedGame(solution, secrets.randbits(32) if seed is None else seed, given)
        from .terminal import play as play_on_screen
        from .terminal import play_plain, standing

        # Whoever ends us gets the terminal back, as with Ctrl-C.
        signal.signal(signal.SIGHUP, signal.default_int_handler)
        if is_screen:
            play_on_screen(game, is_auto=is_auto, delay=0.3 if delay is None else delay)
        else:
            play_plain(game, delay or 0.0, click.echo)
    click.echo(f"{standing(game)} (seed {game.seed})")
