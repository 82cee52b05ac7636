"""The command `report`: tables and pictures of a solution in one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from .cli_command import Command
from .cli_overview import overview_options, read_asked
from .errors import UsageError


@click.command(cls=Command, example="solver2048 report solutions/3x3\n"
               "solver2048 report solutions/3x3 --compare solutions/2x4 --out a.html")  # fmt: skip
@overview_options
@click.option("--out", type=click.Path(path_type=Path), default="report.html", show_default=True,
              metavar="FILE", help="The page.")  # fmt: skip
def report(out: Path, **asked: Any) -> None:
    """Tables and pictures of a solution in one HTML file, which loads nothing from elsewhere.

    Needs matplotlib (the extra `plot`).
    """
    if not out.absolute().parent.is_dir():
        raise UsageError(f"{out}: there is no directory {out.parent}")
    overviews = read_asked(**asked)
    from .files import write_text
    from .html_report import html_report

    write_text(out, html_report(overviews))
    click.echo(out)
