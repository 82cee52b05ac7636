"""The command `explain`: why an action is best."""

from __future__ import annotations

import json

import click

from .cli_command import Command
from .cli_options import json_option, objective_option, path_argument


@click.command(cls=Command, example='solver2048 explain solutions/3x3 "8 2 4 / 2 . . / . . 2"\n'
               'solver2048 explain solutions/3x3 "8 2 4 / 2 . . / . . 2" --json')  # fmt: skip
@path_argument
@click.argument("board")
@click.option("--moves", "num_moves", type=click.IntRange(0, 1000), default=10,
              show_default=True, metavar="N", help="Length of the line of play.")  # fmt: skip
@click.option("--spawns", "num_spawns", type=click.IntRange(0, 1000), default=10,
              show_default=True, metavar="N", help="How far ahead to tell the risk.")  # fmt: skip
@click.option("--limit", "max_states", type=click.IntRange(1, 10**8), default=300_000,
              show_default=True, metavar="STATES",
              help="Followed one by one; with more, tiles are told from games.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0, 2**64 - 1), default=1, show_default=True,
              metavar="N", help="Of those games.")  # fmt: skip
@objective_option
@json_option
def explain(path: str, board: str, num_moves: int, num_spawns: int, max_states: int, seed: int,
            objective: str, as_json: bool) -> None:  # fmt: skip
    """Why an action is best: spawns, a line of play, tiles to expect, risk.

    Exact where the policy can come to no more than STATES states; says so where not. Of several
    best actions the first of up, down, left, right is taken.
    """
    from .board import parse_board
    from .explanation import explain as explain_board
    from .explanation_format import explanation_json, format_explanation
    from .opening import open_solution

    with open_solution(path, objective) as solution:
        explained = explain_board(
            solution,
            parse_board(board, solution.shape),
            num_moves=num_moves,
            num_spawns=num_spawns,
            max_states=max_states,
            seed=seed,
            show_progress=True,
        )
        if as_json:
            click.echo(json.dumps(explanation_json(explained, seed)))
        else:
            click.echo(
                format_explanation(explained, solution.objective, num_spawns, max_states, seed)
            )
