"""The command `sets`: what sets take in one representation and another."""

from __future__ import annotations

import json

import click

from .cli_command import Command
from .cli_options import json_option, path_argument


@click.command(
    cls=Command, example="solver2048 sets solutions/3x3\n"
               "solver2048 sets solutions/4x3 --last 600"
)  # fmt: skip
@path_argument
@click.option("--first", type=int, metavar="AGE", help="Only bands from this age on.")
@click.option("--last", type=int, metavar="AGE", help="Only bands up to this age.")
@json_option
def sets(path: str, first: int | None, last: int | None, as_json: bool) -> None:
    """What the sets take, per band of ages, in one representation and another."""
    from .layer_sets import LayerSets
    from .set_sizes import format_sizes, measure_sets, size_records
    from .store import Store

    rows = measure_sets(LayerSets(Store(path)), first, last, show_progress=True)
    if as_json:
        for record in size_records(rows):
            click.echo(json.dumps(record))
    else:
        click.echo(format_sizes(rows))
