"""The command line: options in, one call of the library, results out."""

from __future__ import annotations

import functools
import json
import sys
from typing import TYPE_CHECKING

import click

from . import __version__
from .cli_command import EXIT_CODES, Command, remedy
from .cli_explain import explain
from .cli_games import games
from .cli_pack import pack
from .cli_plan import plan
from .cli_play import play
from .cli_plot import plot
from .cli_query import query
from .cli_report import report
from .cli_results import print_counts, print_report
from .cli_sample import sample
from .cli_serve import serve
from .cli_simulate import simulate
from .cli_stats import stats
from .cli_status import status
from .errors import SolutionDamaged
from .options import DEFAULT_CHECK, DEFAULT_SAMPLE, DEFAULT_SHARE, KEEPS, LEVELS

if TYPE_CHECKING:
    from .repair import Repairs


@click.group(
    epilog="\b\nExample:\n  solver2048 solve 3x3 && solver2048 status solutions/3x3\n\n"
    + EXIT_CODES,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="solver2048")
def main() -> None:
    """Solve 2048 on small boards exactly, and ask the solution.

    Boards: 2x2, 2x3, 2x4, 3x3, 4x3 and their transposes.
    """


main.add_command(explain)
main.add_command(games)
main.add_command(pack)
main.add_command(plan)
main.add_command(play)
main.add_command(plot)
main.add_command(query)
main.add_command(report)
main.add_command(sample)
main.add_command(serve)
main.add_command(simulate)
main.add_command(stats)
main.add_command(status)
_command = functools.partial(main.command, cls=Command)
_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_objective_option = click.option(
    "--objective", default="score", show_default=True, metavar="NAME",
    help="'score', or 'tile:N' for the probability of ever holding tile N.",
)  # fmt: skip
_path_argument = click.argument("path", type=click.Path())


@_command(example="solver2048 solve\nsolver2048 solve 3x3 --objective tile:512\n"
          "solver2048 solve 4x3 --max-age 300\n"
          "solver2048 solve 4x3 --keep start --disk 60GiB", resumes=True)  # fmt: skip
@click.argument("shape", default="3x3")
@click.option("--out", type=click.Path(), help="Directory.  [default: solutions/SHAPE]")
@click.option("--threads", type=int, help="Number of threads.  [default: all processors]")
@click.option("--max-age", type=int, help="Forward pass only, up to this age.")
@_objective_option
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
@click.option("--memory", metavar="BYTES",
              help="Bound, such as 20GiB.  [default: the machine's, less a margin]")  # fmt: skip
@click.option("--force", is_flag=True, help="Go on even if it is forecast not to fit.")
@click.option("--keep", type=click.Choice(KEEPS),
              help="What stays; start: no sets, no values, but those of the start boards, and "
              "counts; policy: the best actions alone.  [default: solution]")  # fmt: skip
@click.option(
    "--disk",
    metavar="SIZE",
    help="Disk space to work in where only the start is kept.  [default: 60GiB]",
)
@click.option("--check", type=click.FloatRange(0, 1), default=DEFAULT_CHECK, show_default=True,
              metavar="SHARE",
              help="Share of the time for computing samples again, by the slow rules.")  # fmt: skip
@click.option("--quiet", is_flag=True, help="Show no progress.")
@_json_option
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


@_command(example="solver2048 counts solutions/3x3 > counts.csv")
@_path_argument
@_json_option
def counts(path: str, as_json: bool) -> None:
    """Counts of every enumerated age as CSV, modulo all symmetries; labelled: all boards."""
    print_counts(path, as_json)


@_command(example="solver2048 verify solutions/3x3\nsolver2048 verify solutions/3x3 --level quick")
@_path_argument
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
@click.option("--quiet", is_flag=True, help="Show no progress.")
@_json_option
def verify(path: str, level: str, share: float, sample: int, seed: int, quiet: bool,
           as_json: bool) -> None:  # fmt: skip
    """Check a solution: every file, set and count, and a sample of its values."""
    from .store import Store
    from .verify import verify as verify_store

    findings = verify_store(
        Store(path), level=level, share=share, sample=sample, seed=seed, show_progress=not quiet
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
        if isinstance(gravest, SolutionDamaged):
            click.echo(remedy(path), err=True)
        sys.exit(gravest.exit_code)


@_command(example="solver2048 sets solutions/3x3\nsolver2048 sets solutions/4x3 --last 600")
@_path_argument
@click.option("--first", type=int, metavar="AGE", help="Only bands from this age on.")
@click.option("--last", type=int, metavar="AGE", help="Only bands up to this age.")
@_json_option
def sets(path: str, first: int | None, last: int | None, as_json: bool) -> None:
    """What the sets take, per band of ages, in one representation and another."""
    from .layer_sets import LayerSets
    from .set_sizes import format_sizes, measure_sets, size_records
    from .store import Store

    rows = measure_sets(LayerSets(Store(path)), first, last, progress=True)
    if as_json:
        for record in size_records(rows):
            click.echo(json.dumps(record))
    else:
        click.echo(format_sizes(rows))


@_command(example="solver2048 repair solutions/3x3", resumes=True)
@_path_argument
@click.option("--threads", type=int, help="Number of threads.  [default: all processors]")
@click.option("--quiet", is_flag=True, help="Show no progress.")
@_json_option
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


@_command(example="solver2048 checksums solutions/3x3 > SHA256SUMS\n"
          "(cd solutions/3x3 && sha256sum -c ../../SHA256SUMS)")  # fmt: skip
@_path_argument
def checksums(path: str) -> None:
    """SHA-256 of every file, as `sha256sum -c` reads them, for publishing a solution."""
    from .store import Store

    store = Store(path)
    store.identity()
    for digest, name in store.checksums():
        click.echo(f"{digest}  {name}")


def entry() -> None:
    """The console script."""
    main(prog_name="solver2048")
