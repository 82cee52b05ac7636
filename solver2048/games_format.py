"""What games come to, as text and as tables."""

from __future__ import annotations

import dataclasses
from typing import Any

from .game_totals import Games, tail_sums

TABLES = ("ages", "scores", "tiles")

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
SHOWN_SCORES = 20
SCORE_STEPS = (10, 20, 50)


def table_rows(games: Games, name: str) -> list[dict[str, Any]]:
    """The rows of a table of `TABLES`; of scores none where they are not known."""
    if name == "ages":
        return [dataclasses.asdict(row) for row in games.ages]
    distribution = games.tiles if name == "tiles" else games.scores or {}
    at_least = tail_sums(list(distribution.values()))
    return [
        {name[:-1]: value, "probability": probability, "at_least": tail}
        for (value, probability), tail in zip(distribution.items(), at_least, strict=True)
    ]


def games_json(games: Games) -> dict[str, Any]:
    """All of it as one JSON object."""
    return {
        **games.meta,
        "value": games.value,
        "mean_score": games.mean_score,
        "mean_moves": games.mean_moves,
        "states": games.num_states,
        "states_met": games.num_states_met,
        **{name: table_rows(games, name) for name in TABLES if name != "scores" or games.scores},
    }


def score_quantile(games: Games, share: float) -> int:
    """The least score such that a game gets it or less with a probability of `share`, or more."""
    rows = table_rows(games, "scores")
    above = [*(row["at_least"] for row in rows[1:]), 0.0]
    return next(int(r["score"]) for r, tail in zip(rows, above, strict=True) if tail <= 1.0 - share)


def round_scores(greatest: int) -> list[int]:
    """Round scores up to the greatest, at most `SHOWN_SCORES`.

    >>> round_scores(480)
    [50, 100, 150, 200, 250, 300, 350, 400, 450]
    """
    step, number = 1, 0
    while greatest // step > SHOWN_SCORES:
        step = SCORE_STEPS[number % 3] * 10 ** (number // 3)
        number += 1
    return list(range(step, greatest + 1, step))


def format_games(games: Games) -> str:
    """What games come to, of at most 80 columns."""
    meta = games.meta
    share = 100 * games.num_states_met / games.num_states
    lines = [
        f"{meta['shape']}, optimal play for {meta['objective']}, p(4) = {meta['spawn4']}, values "
        f"{meta['values']}; of several",
        "best actions the first of up, down, left, right on the canonical board",
        "",
        f"  mean score   {games.mean_score:,.6f}   (v* of a random start: {games.value:,.6f})",
        f"  mean length  {games.mean_moves:,.2f} moves, to age "
        f"{sum(row.ended * row.age for row in games.ages):,.1f}",
        f"  states met   {games.num_states_met:,} of {games.num_states:,} ({share:.1f} %)",
        "",
        "   largest tile   at the end          at least",
    ]
    lines += [
        f"  {row['tile']:>13,}  {row['probability']:>11.6g}  {row['at_least']:>16.9f}"
        for row in table_rows(games, "tiles")
    ]
    return "\n".join([*lines, "", *_score_lines(games)])


def _score_lines(games: Games) -> list[str]:
    if games.scores is None:
        return [
            "  The distribution of scores did not fit into memory (--memory);",
            "  `solver2048 simulate` plays games and shows theirs.",
        ]
    quantiles = ", ".join(f"{100 * q:.0f} % {score_quantile(games, q):,}" for q in QUANTILES)
    return [
        f"  scores {min(games.scores):,} to {max(games.scores):,}; quantiles: {quantiles}",
        "",
        "          score     at least",
        *(
            f"  {score:>13,}  {games.score_at_least(score):>11.6g}"
            for score in round_scores(max(games.scores))
        ),
    ]
