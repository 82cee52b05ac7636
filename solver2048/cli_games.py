"""The command `games`: what comes of optimal play, exactly."""

from __future__ import annotations

import json

import click

from .cli_command import Command
from .cli_options import objective_option, path_argument, quiet_option, threads_option


@click.command(cls=Command, example="solver2048 games solutions/3x3\n"
               "solver2048 games solutions/3x3 --table scores > scores.csv\n"
               "solver2048 games solutions/3x3 --json > games.json")  # fmt: skip
@path_argument
@click.option("--table", type=click.Choice(["ages", "scores", "tiles"]),
              help="Print a table as CSV: by age, by score, or by largest tile.")  # fmt: skip
@objective_option
@click.option("--memory", metavar="BYTES", help="For the distribution of scores, such as 4GiB; "
              "where it needs more it is given up.  [default: half the machine's]")  # fmt: skip
@threads_option
@quiet_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON, all tables in one object.")
def games(path: str, table: str | None, objective: str, memory: str | None, threads: int | None,
          quiet: bool, as_json: bool) -> None:  # fmt: skip
    """Games under optimal play from a random start, exactly: lengths, scores, largest tiles.

    Also how many states optimal play can meet at all. Every probability is computed, none sampled.
    """
    from .amounts import parse_bytes
    from .games import optimal_games
    from .games_format import format_games, games_json, table_rows
    from .layer_sets import LayerSets
    from .objective import parse_objective
    from .options import check_threads
    from .store import Store
    from .table_files import csv_text

    check_threads(threads)
    memory_bytes = parse_bytes(memory) if memory else None
    sets = LayerSets(Store(path))
    found = optimal_games(
        sets, parse_objective(objective, sets.shape), threads=threads, memory_bytes=memory_bytes,
        show_progress=not quiet,
    )  # fmt: skip
    if as_json:
        click.echo(json.dumps(games_json(found)))
    elif table:
        click.echo(csv_text(table_rows(found, table)), nl=False)
    else:
        click.echo(format_games(found))
