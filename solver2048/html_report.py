"""A report on a solution as one HTML file: tables and pictures, nothing loaded from elsewhere."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from . import __version__
from .age_statistics import AgeStatistics
from .files import format_size
from .games_format import round_scores, table_rows
from .overview import Overview
from .pictures import draw_pictures, inline_svg
from .report import START_NAMES

MAX_ROWS = 256

CAPTIONS = {
    "states": "How many different boards there are of every age, the sum of the tiles. A move "
    "keeps the age, a spawn raises it by 2 or 4.",
    "values": "The value of a state is what optimal play still has to come from it. Means are over "
    "all boards of the age, alike, not as play meets them.",
    "gaps": "What the second-best action has less than the best, over boards with two legal "
    "actions or more; and how often there is nothing to choose.",
    "survival": "Games under optimal play from a random start, exactly; and how many states they "
    "can meet at all.",
    "scores": "Final scores under optimal play from a random start, exactly.",
    "storage": "Bits on disk of states and afterstates, modulo the flips, and of values; means "
    "over the bands of ages in which they are stored.",
}

STYLE = """
:root { color-scheme: light dark; --text: #1d1d1f; --back: #ffffff; --soft: #6b6b70;
  --line: #d8d8dc; --shade: #f5f5f7; }
@media (prefers-color-scheme: dark) { :root { --text: #e8e8ea; --back: #17181a; --soft: #a0a0a6;
  --line: #3a3b3f; --shade: #222326; --picture-blue: #56b4e9; } }
body { margin: 0 auto; max-width: 54rem; padding: 1.5rem; color: var(--text);
  background: var(--back); font: 16px/1.5 system-ui, "DejaVu Sans", sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.2; } h2 { font-size: 1.2rem; margin-top: 2.5rem; }
p.soft, figcaption, footer { color: var(--soft); font-size: 0.9rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 0.2rem 0.9rem 0.2rem 0; text-align: right; white-space: nowrap; }
th { font-weight: 600; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child { text-align: left; }
tbody tr:nth-child(even) { background: var(--shade); }
.wide { overflow-x: auto; } .wide table { font-size: 0.8rem; }
.pair { display: flex; flex-wrap: wrap; gap: 0 4rem; }
figure { margin: 1.5rem 0; } figure svg { max-width: 100%; height: auto; }
summary { cursor: pointer; font-weight: 600; margin-top: 2.5rem; }
"""


def html_report(overviews: Sequence[Overview]) -> str:
    """The page: the figures of every solution, then pictures of all, side by side."""
    title = "2048 solved exactly: " + "; ".join(overview.label for overview in overviews)
    parts = [f"<h1>{escape(title)}</h1>"]
    for overview in overviews:
        parts += [f"<h2>{escape(overview.label)}</h2>", _summary(overview), _games(overview)]
    parts.append("<h2>Pictures</h2>")
    for name, picture in draw_pictures(overviews):
        parts.append(
            f"<figure>{inline_svg(picture)}<figcaption>{CAPTIONS[name]}</figcaption></figure>"
        )
    parts += [_age_table(overview) for overview in overviews]
    parts.append(f"<footer><p>Made by solver2048 {__version__}.</p></footer>")
    body = "\n".join(parts)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def _table(names: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "\n".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return (
        f'<div class="wide"><table><thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody></table></div>"
    )


def _summary(overview: Overview) -> str:
    """Counts and start values, beside what is published."""
    report = overview.report
    decimals = 12 if overview.objective.exponent else 6
    rows = [
        _row(report, "states", "states", 0),
        _row(report, "afterstates", "afterstates", 0),
        _row(report, "terminal", "terminal states", 0),
        _row(report, "max_age", "largest age", 0),
    ]
    if report["is_finished"]:
        classes = {f"start_{n.replace(',', '')}": (n, words) for n, words in START_NAMES.items()}
        start = {key: report["start_classes"][name] for key, (name, _) in classes.items()}
        rows += [
            _row({**report, **start}, key, f"{report['unit']}, {words}", decimals)
            for key, (_, words) in classes.items()
        ]
        rows.append(_row(report, "random_start", f"{report['unit']}, random start", decimals))
    sources = sorted({figure["source"] for figure in report["published"].values()})
    note = f"Spawns are 4s with probability {report['spawn4']}. Sets {_size(report, 'sets_bytes')}"
    if "values_bytes" in report:
        note += f", values {_size(report, 'values_bytes')} ({report['values']})"
    note += " on disk. Counts are modulo all symmetries of the board."
    if sources:
        note += " Published: " + "; ".join(sources) + "."
    return _table(["", "here", "published"], rows) + f'\n<p class="soft">{escape(note)}</p>'


def _size(report: dict[str, Any], name: str) -> str:
    return format_size(report[name])


def _row(report: dict[str, Any], name: str, label: str, decimals: int) -> list[str]:
    figure = report["published"].get("top_age" if name == "max_age" else name)
    published = f"{figure['published']:,.{figure['decimals']}f}" if figure else ""
    if figure and figure["agrees"] is False:
        published += " DIFFERS"
    return [label, f"{report[name]:,.{decimals}f}", published]


def _games(overview: Overview) -> str:
    """What comes of optimal play."""
    games = overview.games
    if games is None:
        return ""
    share = 100 * games.num_states_met / games.num_states
    text = (
        f"Under optimal play from a random start a game takes {games.mean_moves:,.1f} moves and "
        f"scores {games.mean_score:,.2f} on the mean. It can meet {games.num_states_met:,} states, "
        f"{share:.1f} % of all. Of several best actions the first of up, down, left, right on the "
        "canonical board is taken."
    )
    tiles = _table(
        ["largest tile", "at the end", "ever that or more"],
        [
            [f"{row['tile']:,}", f"{row['probability']:.6g}", f"{row['at_least']:.9f}"]
            for row in table_rows(games, "tiles")
        ],
    )
    scores = ""
    if games.scores:
        steps = round_scores(max(games.scores))
        rows = [[f"{step:,}", f"{games.score_at_least(step):.6g}"] for step in steps]
        scores = _table(["score", "that or more"], rows)
    return f'<p>{escape(text)}</p>\n<div class="pair">\n{tiles}\n{scores}\n</div>'


def _age_table(overview: Overview) -> str:
    """Statistics by age, of so many ages as a page bears."""
    step = -(-len(overview.rows) // MAX_ROWS)
    shown = overview.rows[::step]
    which = "every age" if step == 1 else f"one age of {step}; all by `solver2048 stats`"
    meanings = "".join(
        f"<li><b>{name}</b>: {escape(text)} ({escape(unit)})</li>"
        for name, (unit, text) in AgeStatistics.columns().items()
    )
    table = _table(
        AgeStatistics.columns(),
        ([_cell(value) for value in dataclasses.asdict(row).values()] for row in shown),
    )
    return (
        f"<details><summary>Statistics of {escape(overview.label)} by age ({which})</summary>\n"
        f'<ul class="soft">{meanings}</ul>\n{table}</details>'
    )


def _cell(value: float | int | None) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"
