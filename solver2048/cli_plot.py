"""The command `plot`: pictures of a solution, or of two side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from .cli_command import Command
from .cli_overview import overview_options, read_asked
from .errors import UsageError


@click.command(cls=Command, example="solver2048 plot solutions/3x3 --out pictures\n"
               "solver2048 plot solutions/3x3 --compare solutions/2x4")  # fmt: skip
@overview_options
@click.option("--out", type=click.Path(path_type=Path), default="pictures", show_default=True,
              metavar="DIR", help="Where they go: NAME.png and NAME.svg.")  # fmt: skip
def plot(out: Path, **asked: Any) -> None:
    """Pictures: states, values, gaps between actions, survival, scores and storage.

    PNG and SVG, with matplotlib (the extra `plot`). What a solution has nothing of, because it is
    not complete or keeps no values, is left out.
    """
    if out.exists() and not out.is_dir():
        raise UsageError(f"{out} is a file; --out takes a directory")
    overviews = read_asked(**asked)
    from .pictures import draw_pictures, save_picture

    out.mkdir(parents=True, exist_ok=True)
    for name, picture in draw_pictures(overviews):
        for suffix in (".png", ".svg"):
            save_picture(picture, out / f"{name}{suffix}")
            click.echo(out / f"{name}{suffix}")
