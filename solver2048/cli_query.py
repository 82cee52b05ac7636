"""The command `query`: some boards as text, or a stream of them into a file."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from .cli_command import Command
from .cli_options import json_option, objective_option, path_argument, quiet_option
from .errors import SolverError, UsageError
from .options import STATES_MET

if TYPE_CHECKING:
    from .board_values import BoardValue
    from .solution import Solution

FORMATS = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}


@click.command(cls=Command, example='solver2048 query solutions/3x3 "2 2 4 / . . . / . . 2"\n'
               "solver2048 query solutions/3x3 --json - < boards.txt\n"
               "solver2048 query solutions/3x3 --input boards.csv --output answers.parquet"
               )  # fmt: skip
@path_argument
@click.argument("boards", nargs=-1, metavar="[BOARD]...")
@objective_option
@json_option
@click.option("--input", "source", metavar="FILE", type=click.Path(),
              help="Read one board a line, '-' from standard input.")  # fmt: skip
@click.option("--output", "target", metavar="FILE", type=click.Path(), default="-",
              help="Write answers to --input here.  [default: standard output]")  # fmt: skip
@click.option("--format", "form", type=click.Choice(["csv", "jsonl", "parquet"]),
              help="Of the output.  [default: by its extension, else csv]")  # fmt: skip
@click.option("--threads", type=click.IntRange(1), default=1, show_default=True,
              help="Threads that look boards of --input up.")  # fmt: skip
@quiet_option
def query(path: str, boards: tuple[str, ...], objective: str, as_json: bool, source: str | None,
          target: str, form: str | None, threads: int, quiet: bool) -> None:  # fmt: skip
    """Value, actions and best action of each BOARD; '-' reads one board a line.

    Cells are divided by blanks or commas, rows by '/', and '.', '0' or '_' is an empty cell; or a
    JSON list of rows.

    --input takes such lines too, JSON objects with an entry 'board', or CSV with a column 'board',
    and --output gets a row for every one; a line without an answer has its error there, and does
    not stop the rest. The exit code is that of the first such line.
    """
    if bool(boards) == (source is not None):
        raise UsageError("give either boards, or a file of them by --input")
    if source and target != "-" and Path(source).resolve() == Path(target).resolve():
        raise UsageError(f"{target} is the input: choose another file for the output")
    from .opening import open_solution

    with open_solution(path, objective) as solution:
        if source is None:
            exit_code = _print_answers(solution, boards, objective, as_json)
        else:
            by_default = "jsonl" if as_json else "csv"
            form = form or FORMATS.get(Path(target).suffix.lower(), by_default)
            with _input(source) as lines, _output(target) as answers:
                exit_code = _answer_stream(solution, lines, answers, form, threads, quiet)
        if solution.reach == STATES_MET and not quiet:
            click.echo("note: outside the table's own play its answers mean nothing", err=True)
    if exit_code:
        sys.exit(exit_code)


def _print_answers(
    solution: Solution, boards: tuple[str, ...], objective: str, as_json: bool
) -> int:
    """Print what is known of each board; returns the exit code of the first error."""
    from .bulk import BOARD_EXIT_CODES

    exit_code = 0
    for place, text in _board_texts(boards):
        try:
            answer = solution.query(text)
        except SolverError as error:
            if error.exit_code not in BOARD_EXIT_CODES:
                raise
            click.echo(f"error: {place}{error}", err=True)
            exit_code = exit_code or error.exit_code
            continue
        click.echo(
            json.dumps(_board_json(answer)) if as_json else _board_text(answer, objective, solution)
        )
    return exit_code


def _answer_stream(solution: Solution, lines: BinaryIO, answers: BinaryIO, form: str,
                   threads: int, quiet: bool) -> int:  # fmt: skip
    """Answer all lines; returns the exit code of the first without an answer."""
    from tqdm import tqdm

    from .answer_files import WRITERS
    from .board_lines import BoardLines
    from .bulk import BadLines, answer_lines

    writer = WRITERS[form](answers)
    bad = BadLines(lambda text: click.echo(text, err=True))
    # None: only on a terminal.
    bar = tqdm(total=_num_bytes(lines), desc="query", unit="B", unit_scale=True, delay=1.0,
               file=sys.stderr, disable=True if quiet else None)  # fmt: skip
    with bar:
        for batch in answer_lines(solution, BoardLines(lines, solution.shape), threads):
            writer.write(batch)
            bad.add(batch)
            bar.update(batch.lines.num_bytes)
    writer.close()
    bad.finish()
    return bad.exit_code


def _num_bytes(file: BinaryIO) -> int | None:
    """Size of what is read, None for a stream."""
    try:
        return Path(file.name).stat().st_size or None
    except (AttributeError, OSError, TypeError):
        return None


@contextlib.contextmanager
def _input(source: str) -> Iterator[BinaryIO]:
    if source != "-":
        with open(source, "rb") as file:
            yield file
    elif sys.stdin is None:
        raise UsageError("there is no standard input to read boards from")
    else:
        yield sys.stdin.buffer


@contextlib.contextmanager
def _output(target: str) -> Iterator[BinaryIO]:
    from .files import written_aside

    if target != "-":
        with written_aside(Path(target)) as file:
            yield file
    else:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()


def _board_texts(boards: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Boards, each with what to say before an error: which of several it is."""
    for i, board in enumerate(boards, 1):
        if board == "-":
            yield from _input_texts()
        else:
            yield f"board {i}: " if len(boards) > 1 else "", board


def _input_texts() -> Iterator[tuple[str, str]]:
    """The lines of standard input that are not empty."""
    from .board_lines import line_text

    with _input("-") as lines:
        for number, line in enumerate(lines, 1):
            if text := line_text(line):
                yield f"line {number}: ", text


def _board_json(answer: BoardValue) -> dict[str, Any]:
    return {
        "board": answer.board,
        "age": answer.age,
        "value": None if math.isnan(answer.value) else answer.value,
        "best": answer.best,
        "actions": {
            name: action and dataclasses.asdict(action) for name, action in answer.actions.items()
        },
    }


def _board_text(answer: BoardValue, objective: str, solution: Solution) -> str:
    from .board import format_board

    if math.isnan(answer.value):  # of a policy table
        best = answer.best[0] if answer.best else "none: the game is over"
        return f"{format_board(answer.board)}   age {answer.age}\n  best   {best}"
    bound = solution.rounding_bound
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
