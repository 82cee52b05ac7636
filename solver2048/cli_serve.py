"""The command `serve`: solutions over HTTP, and a page to play on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .cli_command import Command
from .errors import NotSolved, UsageError

if TYPE_CHECKING:
    from .web.answers import ServedSolution


@click.command(cls=Command, example="solver2048 serve solutions/3x3\n"
               "solver2048 serve solutions/3x3 solutions/4x3 --port 0")  # fmt: skip
@click.argument("paths", nargs=-1, required=True, type=click.Path(), metavar="PATH...")
@click.option("--host", default="127.0.0.1", show_default=True,
              help="Address to listen on; 0.0.0.0 lets other machines ask.")  # fmt: skip
@click.option("--port", type=click.IntRange(0, 65535), default=8048, show_default=True,
              help="0 for any that is free.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the address as JSON.")
def serve(paths: tuple[str, ...], host: str, port: int, as_json: bool) -> None:
    """A page to play on and an HTTP interface, for the solutions in PATHs; Ctrl-C stops.

    All objectives in a PATH are served. Needs the extra `web`.
    """
    try:
        from .web.answers import ServedSolution
        from .web.server import serve as serve_solutions
    except ModuleNotFoundError as error:
        raise UsageError(
            f"{error.name} is not installed; run `python -m pip install 'solver2048[web]'`"
        ) from None
    from .opening import open_solution

    with ExitStack() as stack:
        served: dict[str, ServedSolution] = {}
        for path, objective in _objectives(paths):
            name = _name(path, objective, set(served))
            served[name] = ServedSolution(name, open_solution(path, objective))
            stack.callback(served[name].close)
            served[name].warm_up()

        def announce(address: str) -> None:
            if as_json:
                click.echo(json.dumps({"address": address, "solutions": list(served)}))
            else:
                click.echo(f"Serving {', '.join(served)} at {address} (Ctrl-C stops)")

        serve_solutions(served, host, port, announce)


def _objectives(paths: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Every objective of every path; the score where there are no values, for its error."""
    from .layer_values import stored_objectives
    from .location import is_url
    from .store import Store

    for path in paths:
        if is_url(path):
            yield path, "score"
            continue
        store = Store(path)
        if store.keep == "policy":
            raise NotSolved(f"{path} is a policy table; a page beside the game needs values")
        for objective in sorted(stored_objectives(store)) or ["score"]:
            yield path, objective


def _name(path: str, objective: str, taken: set[str]) -> str:
    """The name of a solution in requests: its directory's, its tile's, a number if need be."""
    stem = Path(path).absolute().name or path
    base = stem if objective == "score" else f"{stem}-{objective.replace(':', '-')}"
    names = (base if number == 1 else f"{base}-{number}" for number in range(1, len(taken) + 2))
    return next(name for name in names if name not in taken)
