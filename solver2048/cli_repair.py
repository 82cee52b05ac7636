"""The command `repair`: what is damaged or missing, made again."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import click

from .cli_command import Command
from .cli_options import json_option, path_argument, quiet_option, threads_option

if TYPE_CHECKING:
    from .repair import Repairs


@click.command(cls=Command, example="solver2048 repair solutions/3x3", resumes=True)
@path_argument
@threads_option
@quiet_option
@json_option
def repair(path: str, threads: int | None, quiet: bool, as_json: bool) -> None:
    """Make what is damaged or missing again, to the same bytes.

    Nothing is deleted: damaged files are moved to PATH/quarantine.
    """
    from .lock import DirectoryLock
    from .options import SolveOptions, check_threads

    check_threads(threads)
    with DirectoryLock(path, is_made=True) as lock:
        from .repair import repair as repair_solution

        options = SolveOptions(threads=threads, show_progress=not quiet)
        repairs = repair_solution(path, options, lock=lock)
    if as_json:
        click.echo(json.dumps({
            "ok": not repairs.errors,
            "quarantined": repairs.quarantined,
            "restored": repairs.restored,
            "computed": repairs.computed,
            "errors": [str(error) for error in repairs.errors],
        }))  # fmt: skip
    else:
        _print_repairs(repairs)
    if repairs.errors:
        sys.exit(repairs.errors[0].exit_code)


def _print_repairs(repairs: Repairs) -> None:
    for name in repairs.quarantined:
        click.echo(f"moved     {name}")
    for name in repairs.restored:
        click.echo(f"restored  {name}")
    for name in repairs.computed:
        click.echo(f"computed  {name}")
    for error in repairs.errors:
        click.echo(f"BAD       {error}")
    if not repairs.errors:
        is_changed = repairs.quarantined or repairs.restored or repairs.computed
        click.echo("Repaired." if is_changed else "Nothing is damaged.")
