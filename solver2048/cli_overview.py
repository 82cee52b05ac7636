"""What `plot` and `report` share: which solutions, and how much of them is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from .cli_options import objective_option, path_argument, quiet_option, threads_option

if TYPE_CHECKING:
    from .overview import Overview

_OPTIONS = (
    path_argument,
    click.option("--compare", type=click.Path(), metavar="OTHER",
                 help="Another solution beside it."),
    objective_option,
    click.option("--compare-objective", metavar="NAME", help="Of the other.  [default: the same]"),
    click.option("--quick", "is_quick", is_flag=True,
                 help="Read no layer: no games, and statistics as the solve took note of them."),
    threads_option,
    quiet_option,
)  # fmt: skip


def overview_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the argument and the options that `read_asked` takes."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def read_asked(path: str, compare: str | None, objective: str, compare_objective: str | None,
               is_quick: bool, threads: int | None, quiet: bool) -> list[Overview]:  # fmt: skip
    """The solution asked for, and the one to compare it with. Raises UsageError before any work."""
    from .options import check_threads
    from .overview import read_overview
    from .pictures import check_drawing

    check_threads(threads)
    check_drawing()
    asked = [(path, objective)]
    if compare:
        asked.append((compare, compare_objective or objective))
    return [
        read_overview(where, what, is_quick=is_quick, threads=threads, show_progress=not quiet)
        for where, what in asked
    ]
