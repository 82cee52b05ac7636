"""A plan as a table for people, and as one JSON object."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

from .files import format_size
from .forecast import AgeRow, ModePlan
from .plan import Plan
from .progress import duration

KEEP_WORDS = {
    "solution": "all sets and values",
    "start": "only the values of the start boards",
    "policy": "the best actions and the values of the start boards",
}

LIMITS_OF_THE_MODEL = (
    "Time: a*slots + b*states + c*afterstates for each part of a pass, at the load of now; "
    "CPU: of one processor, whatever else runs. Sizes on disk are those measured on 3x3 and "
    "on 4x3 up to age 600; memory follows from what is held. Nobody has measured higher "
    "ages."
)


def plan_json(plan: Plan) -> dict[str, Any]:
    """The plan as one JSON object, with `fits` for the plan and for every mode."""
    record = dataclasses.asdict(plan)
    for mode, of_record in zip(plan.modes, record["modes"], strict=True):
        of_record["fits"] = mode.fits
    return {**record, "fits": plan.fits}


def format_plan(plan: Plan) -> str:
    """The plan as tables of at most 80 columns."""
    extent = "in full" if plan.max_age == plan.top_age else f"to age {plan.max_age:,}"
    lines = [
        f"{plan.shape} {extent}, objective {plan.objective}, values {plan.values}, {plan.ids} IDs",
        textwrap.fill(f"  states: {plan.counts_source}", 80, subsequent_indent="    "),
        textwrap.fill(f"  rates: {plan.rates_source}", 80, subsequent_indent="    "),
        f"  may take {format_size(plan.limits.memory)} of memory, "
        f"{format_size(plan.limits.disk)} of disk",
        "",
    ]
    lines += _table(_mode_rows(plan.modes))
    for mode in plan.modes:
        lines.append("")
        verdict = f"--keep {mode.keep} ({KEEP_WORDS[mode.keep]}): {_verdict(mode)}"
        lines.append(textwrap.fill(verdict, 80, subsequent_indent="    "))
    if len(plan.rows) > 1:
        lines += ["", f"By ages, --keep {plan.modes[0].keep}, nothing enumerated twice:", ""]
        lines += _table([_age_header(), *(_age_row(row) for row in plan.rows)])
    return "\n".join([*lines, "", textwrap.fill(LIMITS_OF_THE_MODEL, 80)])


def _mode_rows(modes: Sequence[ModePlan]) -> list[list[str]]:
    """A row for each quantity, a column for each mode."""

    def row(name: str, text: Callable[[ModePlan], str]) -> list[str]:
        return [name, *(text(mode) for mode in modes)]

    return [
        row("--keep", lambda mode: mode.keep),
        row("forward", lambda mode: duration(mode.forward_seconds)),
        row("backward", lambda m: duration(m.backward_seconds) if m.backward_seconds else "-"),
        row("in all", lambda mode: duration(mode.forward_seconds + mode.backward_seconds)),
        row("CPU", lambda mode: duration(mode.cpu_seconds)),
        row("memory", lambda mode: format_size(mode.memory_bytes)),
        row("disk at rest", lambda mode: format_size(mode.disk_bytes)),
        row("disk at peak", lambda mode: format_size(mode.disk_peak_bytes)),
        row("written", lambda mode: format_size(mode.written_bytes)),
    ]


def _verdict(mode: ModePlan) -> str:
    if not mode.fits:
        return f"does not fit: it needs {' and '.join(mode.missing)}"
    again = f"; {mode.redone_share:.0%} of the forward pass runs twice" if mode.redone_share else ""
    return f"fits{again}"


def _age_header() -> list[str]:
    return ["ages", "states", "forward", "backward", "memory", "sets", "kept"]


def _age_row(row: AgeRow) -> list[str]:
    return [
        f"{row.first}-{row.last}",
        f"{row.states / 1e6:,.0f} M" if row.states >= 1e8 else f"{row.states:,}",
        duration(row.forward_seconds),
        duration(row.backward_seconds) if row.backward_seconds else "-",
        format_size(row.memory_bytes),
        format_size(row.sets_bytes),
        format_size(row.kept_bytes) if row.kept_bytes else "-",
    ]


def _table(rows: list[list[str]]) -> list[str]:
    """Rows with their columns aligned to the right, the first to the left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  " + "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]  # fmt: skip
