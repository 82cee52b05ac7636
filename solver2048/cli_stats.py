"""The command `stats`: a table of statistics, one row per age."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import click

from .cli_command import Command
from .cli_options import objective_option, quiet_option, threads_option


@click.command(cls=Command, example="solver2048 stats solutions/3x3 > stats.csv\n"
               "solver2048 stats solutions/3x3 --output stats.parquet\n"
               "solver2048 stats --card")  # fmt: skip
@click.argument("path", type=click.Path(), required=False)
@objective_option
@click.option("--output", type=click.Path(path_type=Path), metavar="FILE",
              help="Write a .csv, .jsonl or .parquet file, and FILE.md about it.")  # fmt: skip
@click.option("--quick", "is_quick", is_flag=True,
              help="Read no layer: counts and sizes alone.")  # fmt: skip
@threads_option
@click.option("--card", "shows_card", is_flag=True, help="Only say what the columns mean.")
@quiet_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one object a line.")
def stats(path: str | None, objective: str, output: Path | None, is_quick: bool,
          threads: int | None, shows_card: bool, quiet: bool, as_json: bool) -> None:  # fmt: skip
    """Counts, bits on disk, values and gaps between actions, one row per age, as CSV.

    States are counted modulo all symmetries; means and shares are over all (labelled) boards.
    """
    from .age_statistics import AgeStatistics, age_statistics, statistics_card

    if shows_card:
        click.echo(statistics_card(), nl=False)
        return
    if path is None:
        raise click.UsageError("Missing argument 'PATH'.")
    from .layer_sets import LayerSets
    from .layer_values import stored_objectives
    from .objective import parse_objective
    from .options import check_threads
    from .store import Store
    from .table_files import check_format, csv_text, json_lines, write_table

    check_threads(threads)
    if output:
        check_format(output)
    sets = LayerSets(Store(path))
    table: list[AgeStatistics] = age_statistics(
        sets, parse_objective(objective, sets.shape), is_quick=is_quick, threads=threads,
        show_progress=not quiet,
    )  # fmt: skip
    others = stored_objectives(sets.store)
    if others and objective not in others and not is_quick:
        click.echo(
            f"note: no values for {objective}, their columns are empty; there are values for "
            f"{', '.join(others)} (--objective)", err=True,
        )  # fmt: skip
    rows = [dataclasses.asdict(row) for row in table]
    if output:
        write_table(output, rows, statistics_card())
    else:
        click.echo(json_lines(rows) if as_json else csv_text(rows), nl=False)
