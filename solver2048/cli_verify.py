"""The command `verify`: whether a solution is whole and right."""

from __future__ import annotations

import json
import sys

import click

from .cli_command import Command, remedy
from .cli_options import json_option, path_argument, quiet_option
from .errors import SolutionDamaged
from .location import is_url
from .options import DEFAULT_SAMPLE, DEFAULT_SHARE, LEVELS


@click.command(
    cls=Command,
    example="solver2048 verify solutions/3x3\n"
               "solver2048 verify solutions/3x3 --level quick\n"
               "solver2048 verify policies/3x3 --against solutions/3x3",
)  # fmt: skip
@path_argument
@click.option(
    "--level",
    type=click.Choice(LEVELS),
    default=LEVELS[-1],
    show_default=True,
    help="quick: what is there; sampled: some chunks too; full: every byte, set and count; "
    "semantic: values too.",
)
@click.option("--share", type=click.FloatRange(0, 1), default=DEFAULT_SHARE, show_default=True,
              help="Share of the chunks to read at level 'sampled'.")  # fmt: skip
@click.option("--sample", type=click.IntRange(0, 10**9), default=DEFAULT_SAMPLE, show_default=True,
              help="About how many values to compute again, per objective.")  # fmt: skip
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Seed of the random choice of them.",
)
@click.option("--against", type=click.Path(), metavar="DIR",
              help="Of a policy table: a solution to look --sample actions up in.")  # fmt: skip
@quiet_option
@json_option
def verify(path: str, level: str, share: float, sample: int, seed: int, against: str | None,
           quiet: bool, as_json: bool) -> None:  # fmt: skip
    """Check a solution: every file, set and count, and a sample of its values."""
    from .store import Store
    from .verify import verify as verify_store

    findings = verify_store(
        Store(path),
        level=level,
        share=share,
        sample=sample,
        seed=seed,
        against=against,
        show_progress=not quiet,
    )
    if as_json:
        click.echo(json.dumps({
            "ok": not findings.problems,
            "level": level,
            "checks": findings.checks,
            "errors": [str(error) for error in findings.errors],
        }))  # fmt: skip
    else:
        for check in findings.checks:
            click.echo(f"ok   {check}")
        for error in findings.errors:
            click.echo(f"BAD  {error}")
    if gravest := findings.gravest():
        if isinstance(gravest, SolutionDamaged) and not is_url(place := gravest.place or path):
            click.echo(remedy(place), err=True)
        sys.exit(gravest.exit_code)
