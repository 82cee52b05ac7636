"""All that pictures and reports of a solution show, in one place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .age_statistics import AgeStatistics, age_statistics
from .game_totals import Games
from .games import optimal_games
from .layer_sets import LayerSets
from .objective import Objective, parse_objective
from .report import make_report
from .shape import Shape
from .store import Store


@dataclass(frozen=True)
class Overview:
    """A solution at a glance.

    report : the figures a solve ends with
    rows : statistics per age
    games : what comes of optimal play; None where there are no values, or it was not asked for
    """

    shape: Shape
    objective: Objective
    report: dict[str, Any]
    rows: list[AgeStatistics]
    games: Games | None

    @property
    def label(self) -> str:
        """The board and what is played for."""
        aim = f"tile {2**self.objective.exponent:,}" if self.objective.exponent else "score"
        part = "" if self.report["max_age"] == self.shape.top_age else ", not complete"
        return f"{self.shape.name.replace('x', '×')}, for the {aim}{part}"


def read_overview(
    path: str,
    objective: str,
    *,
    is_quick: bool = False,
    threads: int | None = None,
    show_progress: bool = False,
) -> Overview:
    """Read, and unless `is_quick` compute, all that is to be shown of a solution.

    is_quick : no layer is read: statistics as the solve took note of them, and no games
    Raises NoSolution, SolutionDamaged.
    """
    sets = LayerSets(Store(path))
    aim = parse_objective(objective, sets.shape)
    report = make_report(sets, aim)
    has_games = report["is_finished"] and report["keep"] == "solution" and not is_quick
    rows = age_statistics(
        sets, aim, is_quick=is_quick, threads=threads, show_progress=show_progress
    )
    games = None
    if has_games:
        games = optimal_games(sets, aim, threads=threads, show_progress=show_progress)
    return Overview(sets.shape, aim, report, rows, games)
