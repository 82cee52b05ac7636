"""The summary of simulated games as text of at most 80 columns."""

from __future__ import annotations

from typing import Any

BAR_WIDTH = 40


def format_simulation(summary: dict[str, Any]) -> str:
    """The summary of `summarize` as tables."""
    start = "random starts" if summary["start"] == "random" else summary["start"]
    title = f"{summary['shape']}, {summary['policy']} play, {summary['games']:,} games, seed " \
            f"{summary['seed']}"  # fmt: skip
    sections = [[title, f"from {start}"], _means(summary), _tiles(summary), _histogram(summary)]
    return "\n\n".join("\n".join(lines) for lines in sections)


def _means(summary: dict[str, Any]) -> list[str]:
    score = summary["score"]
    is_score = summary["objective"] == "score"
    decimals = 2 if is_score else 6
    off = summary["standard_errors_off"]
    beside = "" if off is None else f"   the mean is {off:+.2f} standard errors off"
    lines = [
        f"  score, mean            {score['mean']:12,.2f} ± {score['standard_error']:,.2f}",
        f"  lowest, median, highest  {score['lowest']:,}, {score['median']:,.0f}, "
        f"{score['highest']:,}",
        f"  moves a game           {summary['moves']:12,.2f}",
    ]
    value = f"{'v*, optimal play':<23}"
    if summary["value"] is None:
        value += "   not in a policy table"
    else:
        value += f"{summary['value']:12,.{decimals}f}{beside}"
    if is_score:
        return [lines[0], f"  {value}", *lines[1:]]
    mean = f"{summary['mean']:12,.6f} ± {summary['standard_error']:.6f}"
    return [f"  {summary['objective'] + ', share':<23}{mean}", f"  {value}", *lines]


def _tiles(summary: dict[str, Any]) -> list[str]:
    lines = ["  tile   games reaching it     share"]
    for row in summary["tiles"]:
        lines.append(
            f"{row['tile']:6,} {row['games']:19,}   {row['share']:8.5f} "
            f"± {row['standard_error']:.5f}"
        )
    return lines


def _histogram(summary: dict[str, Any]) -> list[str]:
    most = max(row["games"] for row in summary["histogram"])
    lines = ["          score     games"]
    for row in summary["histogram"]:
        bar = "#" * round(BAR_WIDTH * row["games"] / most)
        label = f"{row['from']:,} -"
        lines.append(f"{label:>10} {row['to'] - 1:6,} {row['games']:8,}  {bar}".rstrip())
    return lines
