"""The command `plan`: what a solve will take, before anyone starts it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .cli_command import Command
from .cli_options import json_option, objective_option, threads_option
from .options import DEFAULT_IDS, DEFAULT_VALUES, KEEPS

if TYPE_CHECKING:
    from .age_counts import AgeCounts
    from .shape import Shape


@click.command(cls=Command, example="solver2048 plan 4x3\n"
               "solver2048 plan 4x3 --keep start --disk 60GiB --memory 20GiB\n"
               "solver2048 plan 4x3 --max-age 600 --json")  # fmt: skip
@click.argument("shape", default="3x3")
@click.option("--out", type=click.Path(), metavar="DIR",
              help="Where it would be solved.  [default: solutions/SHAPE]")  # fmt: skip
@click.option("--keep", type=click.Choice(KEEPS),
              help="One mode alone: all is kept, the start values, or a policy.")  # fmt: skip
@click.option("--disk", metavar="BYTES",
              help="Disk it may take, such as 60GiB.  [default: what is free]")  # fmt: skip
@click.option("--memory", metavar="BYTES",
              help="Memory it may take.  [default: the machine's, less a margin]")  # fmt: skip
@threads_option
@click.option("--max-age", type=int, help="Forward pass only, up to this age.")
@objective_option
@click.option("--values", metavar="FORMAT", default=DEFAULT_VALUES, show_default=True,
              help="float32, float64 or fixed:K.")  # fmt: skip
@click.option("--ids", type=click.Choice(["index", "radix"]), default=DEFAULT_IDS,
              show_default=True, help="What sets hold.")  # fmt: skip
@click.option("--expect-counts", type=click.Path(), metavar="FILE",
              help="Take the states of every age from a file of 'age count' lines.")  # fmt: skip
@json_option
def plan(shape: str, out: str | None, keep: str | None, disk: str | None, memory: str | None,
         threads: int | None, max_age: int | None, objective: str, values: str, ids: str,
         expect_counts: str | None, as_json: bool) -> None:  # fmt: skip
    """What solving SHAPE takes: time, memory, disk; and whether that fits.

    Runs a few seconds of real work for the time. Exit code 9 if no mode asked for fits.
    """
    from .amounts import default_memory_bytes, parse_bytes
    from .counts_file import read_counts
    from .options import SolveOptions, check_mode, check_options
    from .shape import parse_shape

    board_shape = parse_shape(shape)
    check_options(board_shape, objective=objective, values=values, spawn4=None, threads=threads,
                  max_age=max_age)  # fmt: skip
    check_mode(SolveOptions(keep=keep, max_age=max_age))
    limits = [parse_bytes(text) if text else None for text in (disk, memory)]
    expected = read_counts(expect_counts) if expect_counts else {}
    path = Path(out or f"solutions/{board_shape.name}")

    from .calibration import calibrate
    from .files import free_bytes
    from .forecast import Limits
    from .plan import make_plan
    from .plan_format import format_plan, plan_json

    counts, stored = _counts(board_shape, path, max_age, expected)
    place = next(p for p in (path.absolute(), *path.absolute().parents) if p.is_dir())
    made = make_plan(
        counts,
        calibrate(board_shape, threads, ids, values, place),
        Limits(limits[1] or default_memory_bytes(), limits[0] or free_bytes(path) + stored),
        objective=objective,
        values=values,
        ids=ids,
        keep=keep,
    )
    click.echo(json.dumps(plan_json(made)) if as_json else format_plan(made))
    if not made.fits:
        click.get_current_context().exit(9)


def _counts(
    shape: Shape, path: Path, max_age: int | None, expected: dict[int, int]
) -> tuple[AgeCounts, int]:
    """Counts of the ages, exact where the directory has them, and the bytes it takes on disk."""
    from .age_counts import count_ages
    from .errors import NoSolution
    from .layer_sets import LayerSets
    from .records import SETS
    from .store import Store

    store = Store(path)
    if not store.exists():
        return count_ages(shape, max_age, expected=expected), 0
    sets = LayerSets(store)
    if sets.shape != shape:
        raise NoSolution(
            f"{path} is solved with shape {sets.shape.name}; you asked for {shape.name}"
        )
    stored = sum(sum(store.stored_bytes(SETS, band).values()) for band in sets.bands)
    return count_ages(shape, max_age, enumerated=sets.counts(), expected=expected), stored
