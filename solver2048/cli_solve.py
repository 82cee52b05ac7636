"""The command `solve`: solve a board, or go on with a solve that was stopped."""

from __future__ import annotations

import click

from .cli_command import Command
from .cli_options import (
    force_option,
    json_option,
    memory_option,
    objective_option,
    quiet_option,
    threads_option,
)
from .cli_results import print_report
from .options import DEFAULT_CHECK, KEEPS


@click.command(cls=Command, example="solver2048 solve\nsolver2048 solve 3x3 --objective tile:512\n"
          "solver2048 solve 4x3 --max-age 300\n"
          "solver2048 solve 4x3 --keep start --disk 60GiB\n"
          "solver2048 solve 3x3 --keep policy --out policies/3x3", resumes=True)  # fmt: skip
@click.argument("shape", default="3x3")
@click.option("--out", type=click.Path(), help="Directory.  [default: solutions/SHAPE]")
@threads_option
@click.option("--max-age", type=int, help="Forward pass only, up to this age.")
@objective_option
@click.option(
    "--values",
    metavar="FORMAT",
    help="float32, float64 or fixed:K (multiples of 2^-K).  [default: float32]",
)
@click.option("--spawn4", type=float, metavar="P", help="Probability of a 4.  [default: 0.1]")
@click.option("--ids", type=click.Choice(["index", "radix"]),
              help="What sets hold; radix: the paper's IDs.  [default: index]")  # fmt: skip
@click.option("--expect-counts", type=click.Path(), metavar="FILE",
              help="Compare the states of every age with a file of 'age count' lines.")  # fmt: skip
@memory_option
@force_option
@click.option("--keep", type=click.Choice(KEEPS),
              help="What stays; start: no sets, no values, but those of the start boards, and "
              "counts; policy: the best actions alone.  [default: solution]")  # fmt: skip
@click.option(
    "--disk",
    metavar="SIZE",
    help="Disk space to work in where no sets are kept.  [default: 60GiB]",
)
@click.option("--check", type=click.FloatRange(0, 1), default=DEFAULT_CHECK, show_default=True,
              metavar="SHARE",
              help="Share of the time for computing samples again, by the slow rules.")  # fmt: skip
@quiet_option
@json_option
def solve(shape: str, out: str | None, threads: int | None, max_age: int | None, objective: str,
          values: str | None, spawn4: float | None, ids: str | None, expect_counts: str | None,
          memory: str | None, force: bool, keep: str | None, disk: str | None, check: float,
          quiet: bool, as_json: bool) -> None:  # fmt: skip
    """Solve SHAPE (ROWSxCOLUMNS, default 3x3), or go on with a solve that was stopped."""
    from .amounts import parse_bytes
    from .counts_file import read_counts
    from .lock import DirectoryLock
    from .options import SolveOptions, check_mode, check_options
    from .shape import parse_shape

    board_shape = parse_shape(shape)
    check_options(board_shape, objective=objective, values=values, spawn4=spawn4, threads=threads,
                  max_age=max_age)  # fmt: skip
    memory_bytes = parse_bytes(memory) if memory else None
    budget = None if disk is None else parse_bytes(disk)
    check_mode(SolveOptions(keep=keep, values=values, disk=budget, check=check, max_age=max_age))
    expected_counts = read_counts(expect_counts) if expect_counts else {}
    path = out or f"solutions/{board_shape.name}"
    click.get_current_context().params["path"] = path  # what an error's remedy names
    # Before anything heavy is imported: who comes second must know at once.
    with DirectoryLock(path) as lock:
        from .solver import solve as solve_board

        options = SolveOptions(
            objective=objective,
            values=values,
            spawn4=spawn4,
            ids=ids,
            keep=keep,
            disk=budget,
            check=check,
            threads=threads,
            max_age=max_age,
            memory_bytes=memory_bytes,
            force=force,
            expected_counts=expected_counts,
            show_progress=not quiet,
        )
        has_worked = solve_board(board_shape, path, options, lock=lock)
    print_report(path, objective, has_worked, as_json)
