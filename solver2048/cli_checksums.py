"""The command `checksums`: a list for `sha256sum -c`."""

from __future__ import annotations

import click

from .cli_command import Command
from .cli_options import path_argument


@click.command(cls=Command, example="solver2048 checksums solutions/3x3 > SHA256SUMS\n"
          "(cd solutions/3x3 && sha256sum -c ../../SHA256SUMS)")  # fmt: skip
@path_argument
def checksums(path: str) -> None:
    """SHA-256 of every file, as `sha256sum -c` reads them, for publishing a solution."""
    from .store import Store

    store = Store(path)
    store.identity()
    for digest, name in store.checksums():
        click.echo(f"{digest}  {name}")
