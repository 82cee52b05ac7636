"""A report as a table for people."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any

from .files import format_size
from .options import EVERY_STATE
from .progress import duration
from .report import START_NAMES

Row = tuple[str, str, str]
"""A label, the figure here, and the name of the published one."""


def format_report(report: dict[str, Any]) -> str:
    """The report as a table of at most 80 columns."""
    sources = sorted({figure["source"] for figure in report["published"].values()})
    return "\n".join([
        f"{report['shape']}, objective {report['objective']} ({report['unit']}), p(4) = "
        f"{report['spawn4']}",
        "",
        *_table([*_counts(report), *_start_values(report)], report["published"]),
        "",
        *_times(report),
        *_sizes(report),
        *(textwrap.fill(f"  published: {s}", 80, subsequent_indent="    ") for s in sources),
    ])  # fmt: skip


def _counts(report: dict[str, Any]) -> Iterator[Row]:
    yield "states", f"{report['states']:,}", "states"
    yield "afterstates", f"{report['afterstates']:,}", "afterstates"
    yield "terminal states", f"{report['terminal']:,}", "terminal"
    yield "ages", f"{report['ages']:,}", "ages"
    is_top = report["max_age"] == report["top_age"]
    yield "top age" if is_top else "age reached", f"{report['max_age']:,}", "top_age"


def _start_values(report: dict[str, Any]) -> Iterator[Row]:
    """Those that are known, or else published."""
    values = {**report.get("start_classes", {}), "random": report.get("random_start")}
    decimals = 8 if report["objective"] == "score" else 12
    for name, words in {**START_NAMES, "random": "random"}.items():
        figure = "random_start" if name == "random" else f"start_{name.replace(',', '')}"
        if report["is_finished"]:
            yield f"start, {words}", f"{values[name]:,.{decimals}f}", figure
        elif figure in report["published"]:
            yield f"start, {words}", "-", figure


def _table(rows: list[Row], published: dict[str, dict[str, Any]]) -> list[str]:
    shown = [(label, value, _published(published.get(name))) for label, value, name in rows]
    if published:
        shown.insert(0, ("", "here", "published"))
    widths = [max(len(row[i]) for row in shown) for i in range(3)]
    return [
        f"  {label:<{widths[0]}}  {value:>{widths[1]}}  {figure:>{widths[2]}}".rstrip()
        for label, value, figure in shown
    ]


def _published(figure: dict[str, Any] | None) -> str:
    if figure is None:
        return ""
    differs = "  DIFFERS" if figure["agrees"] is False else ""
    return f"{figure['published']:,.{figure['decimals']}f}{differs}"


def _times(report: dict[str, Any]) -> Iterator[str]:
    times = [
        f"{name} {duration(report[f'{name}_seconds'])}"
        for name in ("forward", "again", "backward", "reach")
        if report[f"{name}_seconds"] is not None
    ]
    if report["peak_memory_bytes"]:
        times.append(f"peak memory {report['peak_memory_bytes'] / 1e6:,.0f} MB")
    if times:
        yield "  " + ", ".join(times)


def _sizes(report: dict[str, Any]) -> Iterator[str]:
    sets = "sets" if report["keep"] == "solution" else "sets, not kept,"
    yield (
        f"  {sets} {format_size(report['sets_bytes'])}: {report['bits_per_state']:.2f} bits per "
        f"state, {report['bits_per_afterstate']:.2f} per afterstate ({report['ids']} IDs)"
    )
    if report["is_finished"] and report["keep"] == "solution":
        yield (
            f"  values {format_size(report['values_bytes'])}: {report['bits_per_value']:.2f} bits "
            f"each, {report['values']}, off by at most {report['rounding_bound']:.3g}"
        )
    if report["is_finished"] and report["keep"] == "policy":
        states = "all of them" if report["reach"] == EVERY_STATE else "those of optimal play"
        yield (
            f"  actions {format_size(report['policy_bytes'])}: {report['bits_per_action']:.3f} "
            f"bits for each of {report['policy_states']:,} states\n"
            f"  ({states}), {report['share_predicted']:.1%} of those with a move as predicted"
        )
