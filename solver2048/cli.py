"""The command line: options in, one call of the library, results out."""

from __future__ import annotations

import dataclasses
import errno
import functools
import json
import math
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import __version__
from .errors import INTERRUPTED_EXIT_CODE, SolverError, UsageError

if TYPE_CHECKING:
    from .shape import Shape
    from .solution import BoardValue

EXIT_CODES = """\b
Exit codes:
  0  fine                          6  no solution there, or of another kind
  2  usage                         7  in use by another process
  3  malformed or impossible board 8  damaged
  4  unreachable board             9  not enough space or memory
  5  not solved (yet)             10  differs from a published figure
130  interrupted
"""


class _Command(click.Command):
    """A command whose help ends with its example as written, and whose errors are one line."""

    def __init__(self, *args: Any, example: str = "", **kwargs: Any) -> None:
        kwargs["epilog"] = "\b\nExample:\n" + "".join(f"  {line}\n" for line in example.split("\n"))
        super().__init__(*args, **kwargs)

    def invoke(self, context: click.Context) -> Any:
        try:
            return super().invoke(context)
        except SolverError as error:
            click.echo(f"error: {error}", err=True)
            context.exit(error.exit_code)
        except MemoryError:
            click.echo("error: not enough memory; nothing finished is lost", err=True)
            context.exit(9)
        except RuntimeError as error:
            if "start new thread" not in str(error):
                raise
            click.echo("error: no memory for a thread; nothing finished is lost", err=True)
            context.exit(9)
        except BrokenPipeError:
            # The reader has seen enough; nothing more may be written, not even at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            context.exit(0)
        except (OSError, UnicodeError) as error:
            click.echo(f"error: {error}", err=True)
            is_full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
            context.exit(9 if is_full else 6)
        except KeyboardInterrupt:
            # One is enough: another would only spoil the clean end.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            click.echo("interrupted; the same command goes on where it stopped", err=True)
            context.exit(INTERRUPTED_EXIT_CODE)


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


_command = functools.partial(main.command, cls=_Command)
_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_objective_option = click.option(
    "--objective", default="score", show_default=True, metavar="NAME",
    help="'score', or 'tile:N' for the probability of ever holding tile N.",
)  # fmt: skip
_path_argument = click.argument("path", type=click.Path())


@_command(example="solver2048 solve\nsolver2048 solve 3x3 --objective tile:512\n"
          "solver2048 solve 4x3 --max-age 300")  # fmt: skip
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
@click.option("--expect-counts", type=click.Path(), metavar="FILE",
              help="Compare the states of every age with a file of 'age count' lines.")  # fmt: skip
@click.option("--quiet", is_flag=True, help="Show no progress.")
@_json_option
def solve(shape: str, out: str | None, threads: int | None, max_age: int | None, objective: str,
          values: str | None, spawn4: float | None, expect_counts: str | None, quiet: bool,
          as_json: bool) -> None:  # fmt: skip
    """Solve SHAPE (ROWSxCOLUMNS, default 3x3), or go on with a solve that was stopped."""
    # A service that ends us gets the same clean end as Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    from .lock import DirectoryLock
    from .options import check_options
    from .shape import parse_shape

    board_shape = parse_shape(shape)
    check_options(board_shape, objective=objective, values=values, spawn4=spawn4, threads=threads,
                  max_age=max_age)  # fmt: skip
    expected_counts = _read_counts(expect_counts) if expect_counts else {}
    path = out or f"solutions/{board_shape.name}"
    # Before anything heavy is imported: who comes second must know at once.
    with DirectoryLock(path) as lock:
        from .objective import parse_objective
        from .report import check_published, format_report, read_report
        from .solver import SolveOptions
        from .solver import solve as solve_board

        options = SolveOptions(
            objective=objective,
            values=values,
            spawn4=spawn4,
            threads=threads,
            max_age=max_age,
            expected_counts=expected_counts,
            show_progress=not quiet,
        )
        if max_age is None:
            _warn_of_size(board_shape, path)
        has_worked = solve_board(board_shape, path, options, lock=lock)
    report = read_report(path, parse_objective(objective, board_shape))
    if as_json:
        click.echo(json.dumps(report))
    else:
        if not report["is_finished"]:
            _print_counts(path, as_json=False)
            click.echo()
        if not has_worked:
            click.echo("Solved before; nothing to do. Times are those of that solve.")
        click.echo(format_report(report))
        click.echo(f"  in {path}")
    check_published(report)


def _warn_of_size(shape: Shape, path: str) -> None:
    """Say so if a complete solve will not fit on the disk that is there."""
    from .files import format_size, free_bytes
    from .report import expected_bytes

    needed, free = expected_bytes(shape), free_bytes(path)
    if needed > free:
        click.echo(
            f"warning: {shape.name} in full takes about {format_size(needed)}; "
            f"{format_size(free)} are free. It stops cleanly where the disk is full.",
            err=True,
        )


def _read_counts(path: str) -> dict[int, int]:
    """Number of states by age: lines of 'age count', or the CSV that `counts` prints."""
    counts = {}
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} could not be read: {error}") from None
    for number, line in enumerate(lines, 1):
        fields = line.replace(",", " ").split()
        if not fields or fields[0].startswith("#") or fields[:2] == ["age", "states"]:
            continue
        if len(fields) < 2 or not all(
            f.isascii() and f.isdecimal() and len(f) < 19 for f in fields[:2]
        ):
            raise UsageError(f"{path}, line {number}: {line[:40]!r} is not 'age count'")
        counts[int(fields[0])] = int(fields[1])
    return counts


@_command(example='solver2048 query solutions/3x3 "2 2 4 / . . . / . . 2"\n'
          "solver2048 query solutions/3x3 --json - < boards.txt")  # fmt: skip
@_path_argument
@click.argument("boards", nargs=-1, required=True, metavar="BOARD...")
@_objective_option
@_json_option
def query(path: str, boards: tuple[str, ...], objective: str, as_json: bool) -> None:
    """Value, actions and best action of each BOARD; '-' reads one board a line.

    Cells are divided by blanks or commas, rows by '/', and '.', '0' or '_' is an empty cell; or a
    JSON list of rows.
    """
    from .solution import open_solution

    failure: SolverError | None = None
    with open_solution(path, objective) as solution:
        for place, text in _board_texts(boards):
            try:
                answer = solution.query(text)
            except SolverError as error:
                if error.exit_code not in (3, 4, 5):
                    raise
                click.echo(f"error: {place}{error}", err=True)
                failure = failure or error
                continue
            click.echo(
                json.dumps(_board_json(answer))
                if as_json
                else _board_text(answer, objective, solution.rounding_bound)
            )
    if failure is not None:
        sys.exit(failure.exit_code)


def _board_texts(boards: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Boards, each with what to say before an error: which of several it is."""
    for i, board in enumerate(boards, 1):
        if board != "-":
            yield f"board {i}: " if len(boards) > 1 else "", board
            continue
        for number, raw in enumerate(sys.stdin.buffer, 1):
            line = raw.decode("utf-8", errors="replace").strip("\ufeff \t\r\n")
            if line:
                yield f"line {number}: ", line


def _board_json(answer: BoardValue) -> dict[str, Any]:
    return {
        "board": answer.board,
        "age": answer.age,
        "value": answer.value,
        "best": answer.best,
        "actions": {
            name: action and dataclasses.asdict(action) for name, action in answer.actions.items()
        },
    }


def _board_text(answer: BoardValue, objective: str, bound: float) -> str:
    from .board import format_board

    # As many decimals as are stored, give or take the last.
    decimals = min(10, math.ceil(-math.log10(bound))) if bound else 10
    lines = [f"{format_board(answer.board)}   age {answer.age}"]
    lines.append(f"  value  {answer.value:,.{decimals}f}")
    for name, action in answer.actions.items():
        if action is None:
            lines.append(f"    {name:<6}illegal")
            continue
        mark = "*" if name in answer.best else " "
        terms = f"{action.reward:,.0f} + {action.afterstate_value:,.{decimals}f}"
        lines.append(
            f"  {mark} {name:<6}{action.value:,.{decimals}f}"
            + (f"  = {terms}" if objective == "score" else "")
        )
    lines.append(f"  best   {' or '.join(answer.best) or 'none: the game is over'}")
    return "\n".join(lines)


@_command(example="solver2048 counts solutions/3x3 > counts.csv")
@_path_argument
@_json_option
def counts(path: str, as_json: bool) -> None:
    """Counts of every enumerated age as CSV, modulo all symmetries; labelled: all boards."""
    _print_counts(path, as_json)


def _print_counts(path: str, as_json: bool) -> None:
    from .layer import LayerCounts
    from .layer_sets import LayerSets
    from .store import Store

    sets = LayerSets(Store(path))
    if not as_json:
        click.echo(",".join(LayerCounts.PUBLISHED))
    for layer in sets.counts():
        row = layer.published()
        click.echo(json.dumps(row) if as_json else ",".join(map(str, row.values())))


@_command(example="solver2048 status solutions/3x3")
@_path_argument
@_json_option
def status(path: str, as_json: bool) -> None:
    """How far a solve is, and what it takes on disk."""
    from .layer_sets import LayerSets
    from .layer_values import stored_objectives
    from .objective import parse_objective
    from .report import format_report, make_report
    from .store import Store

    sets = LayerSets(Store(path))
    objectives = stored_objectives(sets.store)
    reports = [
        make_report(sets, parse_objective(name, sets.shape)) for name in objectives or ["score"]
    ]
    if as_json:
        for report in reports:
            click.echo(json.dumps(report))
        return
    for report in reports:
        click.echo(_state(report, bool(objectives)))
        click.echo(format_report(report))


def _state(report: dict[str, Any], has_values: bool) -> str:
    if report["is_finished"]:
        return "Finished."
    if report["max_age"] < report["top_age"]:
        return f"Forward pass: enumerated to age {report['max_age']} of {report['top_age']}."
    return "Enumerated; values not finished." if has_values else "Enumerated; no values yet."


@_command(
    example="solver2048 verify solutions/3x3\nsolver2048 verify solutions/3x3 --sample 100000"
)
@_path_argument
@click.option("--sample", type=click.IntRange(0, 10**9), default=2000, show_default=True,
              help="About how many values to compute again, per objective.")  # fmt: skip
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Seed of the random choice of them.",
)
@_json_option
def verify(path: str, sample: int, seed: int, as_json: bool) -> None:
    """Check every file, set and count of a solution, and a sample of its values."""
    from .store import Store
    from .verify import verify as verify_store

    findings = verify_store(Store(path), sample=sample, seed=seed)
    if as_json:
        click.echo(json.dumps({
            "ok": not findings.errors,
            "checks": findings.checks,
            "errors": [str(error) for error in findings.errors],
        }))  # fmt: skip
    else:
        for check in findings.checks:
            click.echo(f"ok   {check}")
        for error in findings.errors:
            click.echo(f"BAD  {error}")
    if gravest := findings.gravest():
        sys.exit(gravest.exit_code)


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
