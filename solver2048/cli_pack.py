"""The command `pack`: a policy table, optimal play without values, from a solution."""

from __future__ import annotations

import os

import click

from .cli_command import Command
from .cli_options import (
    force_option,
    json_option,
    memory_option,
    objective_option,
    path_argument,
    quiet_option,
    threads_option,
)
from .cli_results import print_report
from .options import EVERY_STATE, REACHES

EXAMPLE = """\
solver2048 pack solutions/3x3 --policy --out policies/3x3
solver2048 pack policies/3x3 --policy --reach optimal --out policies/met"""


@click.command(cls=Command, example=EXAMPLE, resumes=True)
@path_argument
@click.option("--policy", "is_policy", is_flag=True, required=True,
              help="Pack the best action of every state, and no values.")  # fmt: skip
@click.option("--out", type=click.Path(), required=True, metavar="DIR", help="Directory.")
@click.option("--reach", type=click.Choice(REACHES), default=EVERY_STATE, show_default=True,
              help="optimal: only states that optimal play meets from a random start.")  # fmt: skip
@objective_option
@threads_option
@memory_option
@force_option
@quiet_option
@json_option
def pack(path: str, is_policy: bool, out: str, reach: str, objective: str, threads: int | None,
         memory: str | None, force: bool, quiet: bool, as_json: bool) -> None:  # fmt: skip
    """Pack the best actions of a solution into a small table.

    All sets of PATH are needed. Actions are chosen again from values in float64, computed as in a
    solve. With --reach optimal PATH may be a policy table.
    """
    from .amounts import parse_bytes
    from .errors import SolutionDamaged
    from .lock import DirectoryLock, check_source
    from .options import SolveOptions, check_threads

    check_threads(threads)
    options = SolveOptions(
        objective=objective,
        threads=threads,
        memory_bytes=parse_bytes(memory) if memory else None,
        force=force,
        show_progress=not quiet,
    )
    check_source(path, out)
    with DirectoryLock(out) as lock:
        from .pack import pack_policy

        try:
            has_worked = pack_policy(path, out, options, reach=reach, lock=lock)
        except SolutionDamaged as error:
            # Of the table it is records alone that are read, and their errors say where they are.
            if os.path.join(out, "") in str(error):
                error.place = out
            raise
    print_report(out, objective, has_worked, as_json)
