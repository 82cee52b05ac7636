"""The command `counts`: how many boards every age has."""

from __future__ import annotations

import click

from .cli_command import Command
from .cli_options import json_option, path_argument
from .cli_results import print_counts


@click.command(cls=Command, example="solver2048 counts solutions/3x3 > counts.csv")
@path_argument
@json_option
def counts(path: str, as_json: bool) -> None:
    """Counts of every enumerated age as CSV, modulo all symmetries; labelled: all boards."""
    print_counts(path, as_json)
