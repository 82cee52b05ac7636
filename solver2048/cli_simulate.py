"""The command `simulate`: many games at once, their mean score beside v*."""

from __future__ import annotations

import json

import click

from .cli_command import Command
from .cli_options import json_option, objective_option, path_argument, quiet_option

POLICIES = ("optimal", "greedy", "random")


@click.command(cls=Command, example="solver2048 simulate solutions/3x3 --games 100000 --seed 1\n"
               "solver2048 simulate solutions/3x3 --policy greedy\n"
               'solver2048 simulate solutions/3x3 --start "2 4 8 / . . 2 / . . ."')  # fmt: skip
@path_argument
@click.option("--games", "num_games", type=click.IntRange(1, 10**8), default=10_000,
              show_default=True, metavar="N", help="How many.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0, 2**64 - 1), default=1, show_default=True,
              metavar="N", help="The same seed, the same games.")  # fmt: skip
@click.option("--policy", type=click.Choice(POLICIES), default=POLICIES[0], show_default=True,
              help="Takes the best action, the highest reward, or any legal action.")  # fmt: skip
@click.option("--start", metavar="BOARD", help="Start board.  [default: a random start each]")
@objective_option
@quiet_option
@json_option
def simulate(path: str, num_games: int, seed: int, policy: str, start: str | None,
             objective: str, quiet: bool, as_json: bool) -> None:  # fmt: skip
    """Play many games: mean score beside v*, tiles reached, score histogram.

    Of several best actions the first of up, down, left, right is taken.
    """
    from .board import parse_board
    from .opening import open_solution
    from .simulation import simulate as play_games
    from .simulation import summarize
    from .simulation_format import format_simulation

    with open_solution(path, objective) as solution:
        board = None if start is None else parse_board(start, solution.shape)
        games = play_games(
            solution, num_games, seed, policy=policy, start=board, show_progress=not quiet
        )
        summary = summarize(solution, games, seed, policy=policy, start=board)
    click.echo(json.dumps(summary) if as_json else format_simulation(summary))
