"""The command `status`: how far a solve is, and how a running one is doing."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from .cli_command import Command
from .cli_options import json_option, path_argument


@click.command(cls=Command, example="solver2048 status solutions/3x3\n"
               "solver2048 status solutions/4x3 --watch")  # fmt: skip
@path_argument
@click.option("--watch", "is_watching", is_flag=True,
              help="Show a running solve until it ends; once, if this is no terminal.")  # fmt: skip
@click.option("--interval", type=click.FloatRange(0.05, 3600), default=2.0, show_default=True,
              metavar="SECONDS", help="Between two looks at it.")  # fmt: skip
@json_option
def status(path: str, is_watching: bool, interval: float, as_json: bool) -> None:
    """How far a solve is, and what it takes on disk."""
    from .layer_sets import LayerSets
    from .layer_values import stored_objectives
    from .objective import parse_objective
    from .report import make_report
    from .report_format import format_report
    from .store import Store
    from .watch import format_progress, running_progress

    Store(path).identity()
    if is_watching and not as_json and sys.stdout.isatty():
        _show(path, interval)
    progress = running_progress(Path(path))
    sets = LayerSets(Store(path))
    objectives = stored_objectives(sets.store)
    reports = [
        make_report(sets, parse_objective(name, sets.shape)) for name in objectives or ["score"]
    ]
    if as_json:
        for report in reports:
            click.echo(json.dumps(report | ({"progress": progress} if progress else {})))
        return
    if progress:
        click.echo(format_progress(progress))
    for report in reports:
        click.echo(_state(report, bool(objectives)))
        click.echo(format_report(report))


def _show(path: str, interval: float) -> None:
    """Redraw how a running solve is doing, until it ends."""
    from .watch import watch

    for text in watch(Path(path), interval):
        click.clear()
        click.echo(text)


def _state(report: dict[str, Any], has_values: bool) -> str:
    if report["is_finished"]:
        return "Finished."
    if report["max_age"] < report["top_age"]:
        return f"Forward pass: enumerated to age {report['max_age']} of {report['top_age']}."
    what = "actions" if report["keep"] == "policy" else "values"
    return f"Enumerated; {what} not finished." if has_values else f"Enumerated; no {what} yet."
