"""The command `sample`: a stratified sample of states with values and actions."""

from __future__ import annotations

from pathlib import Path

import click

from .cli_command import Command
from .cli_options import objective_option, path_argument, quiet_option


@click.command(cls=Command, example="solver2048 sample solutions/3x3 --output states.csv\n"
               "solver2048 sample solutions/3x3 --per-age 100 --output states.parquet\n"
               "solver2048 sample solutions/3x3 --card")  # fmt: skip
@path_argument
@click.option("--per-age", type=click.IntRange(1, 10**6), default=100, show_default=True,
              metavar="N", help="States of every age; all where there are fewer.")  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True,
              help="Seed of the random choice.")  # fmt: skip
@click.option("--output", type=click.Path(path_type=Path), metavar="FILE",
              help="A .csv, .jsonl or .parquet file; FILE.md describes it.  "
              "[default: JSON lines to standard output]")  # fmt: skip
@objective_option
@click.option("--card", "shows_card", is_flag=True, help="Only say what the columns mean.")
@quiet_option
def sample(path: str, per_age: int, seed: int, output: Path | None, objective: str,
           shows_card: bool, quiet: bool) -> None:  # fmt: skip
    """Random states of every age, with values, action values and best actions.

    The same seed gives the same states.
    """
    from .opening import open_solution
    from .state_sample import sample_card, sample_states
    from .table_files import check_format, json_lines, write_table

    if output:
        check_format(output)
    with open_solution(path, objective) as solution:
        card = sample_card(solution.sets, solution.objective, per_age, seed)
        if shows_card:
            click.echo(card, nl=False)
            return
        rows = sample_states(
            solution.sets, solution.objective, per_age, seed, show_progress=not quiet
        )
        if output:
            write_table(output, list(rows), card)
            return
        for row in rows:
            click.echo(json_lines([row]), nl=False)
