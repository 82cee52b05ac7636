"""What is drawn of a solution: panels, each of one thing by age or by score.

A panel draws on the axes of a figure and returns its title, what it shows, or None where the
solution has nothing to show. Colours are those of Okabe and Ito, told apart by the colour-blind;
lines that share axes differ in their dashes too. This module takes axes as they come, and imports
no library that draws.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .games_format import score_quantile
from .overview import Overview

BLUE, ORANGE, GREEN, RED = "#0072B2", "#E69F00", "#009E73", "#D55E00"

NUM_BINS = 100
GAP_RANGE = 1e4
VALLEY_REACH, VALLEY_WIDTH = 4, 8
"""A valley is the least within a 4th of a tile of its multiple, and at most an 8th beyond it."""

Draw = Callable[[Any, Overview], str | None]


@dataclass(frozen=True)
class Panel:
    """A part of a picture. y_label : may contain {unit}, that of the values."""

    draw: Draw
    x_label: str
    y_label: str


def _column(overview: Overview, name: str) -> NDArray[np.float64]:
    """A column of the statistics, NaN where nothing is known."""
    found = [getattr(row, name) for row in overview.rows]
    return np.array([np.nan if value is None else value for value in found], dtype=np.float64)


def _ages(overview: Overview) -> NDArray[np.float64]:
    return _column(overview, "age")


# --- counts ---------------------------------------------------------------------------------------


def _draw_counts(axes: Any, overview: Overview) -> str:
    ages = _ages(overview)
    for name, colour, dashes in (
        ("states", BLUE, "-"), ("afterstates", ORANGE, "--"), ("terminal", RED, ":")
    ):  # fmt: skip
        counts = _column(overview, name)
        shown = np.where(counts > 0, counts, np.nan)
        label = "terminal states" if name == "terminal" else name
        axes.plot(ages, shown, dashes, color=colour, label=label)
    axes.set_yscale("log")
    states = _column(overview, "states")
    peak = int(states.argmax())
    tile = valley_tile(overview)
    multiples = np.arange(tile, overview.rows[-1].age + 1, tile)
    for multiple in multiples:
        axes.axvline(multiple, color="0.6", linewidth=0.8, zorder=0)
    deep = sum(is_valley(ages, states, multiple, tile) for multiple in multiples.tolist())
    finding = f"{states.sum():,.0f} states, most ({states[peak]:,.0f}) at age {ages[peak]:,.0f}"
    if len(multiples) > 1 and deep > len(multiples) / 2:
        finding += f"; few where a tile was just made: past {deep} of {len(multiples)} "
        finding += f"multiples of {tile:,} (lines)"
    return finding


def valley_tile(overview: Overview) -> int:
    """A quarter of the board's largest tile: at its multiples counts are looked at for valleys."""
    return 1 << max(overview.shape.max_exponent - 2, 3)


def is_valley(
    ages: NDArray[np.float64], counts: NDArray[np.float64], multiple: int, tile: int
) -> bool:
    """Whether the fewest around a multiple of a tile are just past it."""
    near = np.flatnonzero(abs(ages - multiple) <= tile // VALLEY_REACH)
    least = ages[near[counts[near].argmin()]]
    return bool(len(near) and multiple <= least <= multiple + tile // VALLEY_WIDTH)


# --- values ---------------------------------------------------------------------------------------


def _draw_values(axes: Any, overview: Overview) -> str | None:
    ages, mean = _ages(overview), _column(overview, "value_mean")
    if np.isnan(mean).all():
        return None
    least, most = _column(overview, "value_min"), _column(overview, "value_max")
    axes.fill_between(ages, least, most, color=BLUE, alpha=0.2, linewidth=0, label="least to most")
    axes.plot(ages, mean, color=BLUE, label="mean of all states")
    axes.set_ylim(bottom=0)
    low, high = greatest_rise(mean)
    decimals = 2 if overview.objective.exponent else 0
    return (
        f"The mean state has {mean[0]:,.{decimals}f} to come at age {ages[0]:.0f}; a large tile "
        f"brings it from {mean[low]:,.{decimals}f} at age {ages[low]:,.0f} to "
        f"{mean[high]:,.{decimals}f} at age {ages[high]:,.0f}"
    )


def greatest_rise(values: NDArray[np.float64]) -> tuple[int, int]:
    """Where the greatest rise from a value to a later one begins and ends; NaN is passed over."""
    known = np.flatnonzero(~np.isnan(values))
    least = np.minimum.accumulate(values[known])
    high = int((values[known] - least).argmax())
    low = int(values[known][: high + 1].argmin())
    return int(known[low]), int(known[high])


def _draw_gaps(axes: Any, overview: Overview) -> str | None:
    ages, gaps = _ages(overview), _column(overview, "gap_mean")
    if np.isnan(gaps).all():
        return None
    axes.plot(ages, np.where(gaps > 0, gaps, np.nan), color=GREEN, label="mean of all states")
    top = int(np.nanargmax(gaps))
    axes.set_yscale("log")
    # The first moves hardly matter: below, there is nothing but them.
    axes.set_ylim(gaps[top] / GAP_RANGE, 2 * gaps[top])
    decimals = 4 if overview.objective.exponent else 0
    return (
        f"To choose second best costs most at age {ages[top]:,.0f}: "
        f"{gaps[top]:,.{decimals}f} on the mean"
    )


def _draw_choices(axes: Any, overview: Overview) -> str | None:
    ages = _ages(overview)
    single, tied = _column(overview, "single_share"), _column(overview, "tied_share")
    if np.isnan(single).all():
        return None
    weights = np.where(np.isnan(single), 0.0, _column(overview, "states_labelled"))
    axes.plot(ages, 100 * single, color=ORANGE, label="a single legal action")
    axes.plot(ages, 100 * tied, "--", color=BLUE, label="several best actions")
    axes.set_ylim(0, 100)
    means = [100 * np.nansum(share * weights) / weights.sum() for share in (single, tied)]
    return (
        f"{means[0]:.1f} % of all states leave no choice; "
        f"in {means[1]:.1f} % several actions are best"
    )


# --- games ----------------------------------------------------------------------------------------


def _draw_survival(axes: Any, overview: Overview) -> str | None:
    if overview.games is None:
        return None
    ages = np.array([row.age for row in overview.games.ages])
    survival = np.array([row.survival for row in overview.games.ages])
    axes.plot(ages, 100 * survival, color=BLUE, label="gets to the age or beyond")
    axes.set_ylim(0, 102)
    half = ages[survival >= 0.5].max()
    moves = overview.games.mean_moves
    return f"Half of all optimal games get to age {half:,}; the mean one takes {moves:,.0f} moves"


def _draw_met(axes: Any, overview: Overview) -> str | None:
    games = overview.games
    if games is None:
        return None
    ages = [row.age for row in games.ages]
    met = np.array([row.states_met for row in games.ages], dtype=np.float64)
    axes.plot(ages, [row.states for row in games.ages], "--", color=ORANGE, label="all states")
    axes.plot(ages, np.where(met > 0, met, np.nan), color=BLUE, label="optimal play can meet")
    axes.set_yscale("log")
    share = 100 * games.num_states_met / games.num_states
    return f"Optimal play can meet {games.num_states_met:,} states, {share:.0f} % of all"


def _draw_scores(axes: Any, overview: Overview) -> str | None:
    if overview.games is None or overview.games.scores is None:
        return None
    scores = np.array(list(overview.games.scores))
    edges = _edges(int(scores.max()))
    shares, _ = np.histogram(scores, edges, weights=list(overview.games.scores.values()))
    axes.bar(edges[:-1], 100 * shares, np.diff(edges), align="edge", color=BLUE)
    axes.axvline(overview.games.mean_score, color=RED, linestyle="--", label="mean")
    median = score_quantile(overview.games, 0.5)
    return f"The mean score is {overview.games.mean_score:,.0f}, the median {median:,}"


def _edges(greatest: int) -> NDArray[np.int64]:
    """Edges of bins of a whole number of score steps, to the greatest score and beyond."""
    width = 4 * max(1, -(-greatest // (4 * NUM_BINS)))
    return np.arange(0, greatest + width + 1, width)


def _draw_score_tail(axes: Any, overview: Overview) -> str | None:
    if overview.games is None or overview.games.scores is None:
        return None
    scores = np.array(list(overview.games.scores))
    tails = np.cumsum(list(overview.games.scores.values())[::-1])[::-1]
    axes.step(scores, tails, where="pre", color=BLUE, label="this score or more")
    axes.set_yscale("log")
    axes.set_ylim(1e-9, 2)
    rows = overview.games.tile_at_least()
    tile = max(rows)
    return f"The largest tile that comes, {tile:,}, comes in {100 * rows[tile]:.2g} % of games"


# --- storage --------------------------------------------------------------------------------------


def _draw_storage(axes: Any, overview: Overview) -> str | None:
    ages = _ages(overview)
    parts = []
    for name, colour, dashes, label, one in (
        ("value_bits", GREEN, "-.", "values of afterstates", "a value"),
        ("afterstate_bits", ORANGE, "--", "afterstates", "an afterstate"),
        ("state_bits", BLUE, "-", "states", "a state"),
    ):
        bits = _column(overview, name)
        if not np.isnan(bits).all():
            axes.plot(ages, bits, dashes, color=colour, label=label, drawstyle="steps-post")
            parts.append(f"{one} {np.nanmedian(bits):.1f} bits")
    if not parts:
        return None
    axes.set_ylim(bottom=0)
    return f"On disk {', '.join(parts)}"


# --- pictures -------------------------------------------------------------------------------------

AGE = "age: sum of the tiles"
SCORE = "final score"

PICTURES: dict[str, list[Panel]] = {
    "states": [Panel(_draw_counts, AGE, "boards, modulo symmetries")],
    "values": [Panel(_draw_values, AGE, "{unit}")],
    "gaps": [
        Panel(_draw_gaps, AGE, "gap, {unit}"),
        Panel(_draw_choices, AGE, "% of states"),
    ],
    "survival": [
        Panel(_draw_survival, AGE, "% of games"),
        Panel(_draw_met, AGE, "states, modulo symmetries"),
    ],
    "scores": [
        Panel(_draw_scores, SCORE, "% of games"),
        Panel(_draw_score_tail, SCORE, "probability"),
    ],
    "storage": [Panel(_draw_storage, AGE, "bits each")],
}
"""Panels of every picture, one below the other."""
