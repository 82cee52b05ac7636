"""Pictures of solutions, drawn with matplotlib: one column of panels for every solution."""

from __future__ import annotations

import functools
import io
import re
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from .errors import UsageError
from .overview import Overview
from .panels import BLUE, PICTURES, Panel

WIDTH, HEIGHT = 7.2, 3.4
"""Of a panel, in inches."""

PIXELS_PER_INCH = 100

TITLE_LENGTH = 70

# What the text of a page is drawn in, whatever colours it has: replaced in SVG for pages.
TEXT_COLOUR = "#222223"

STYLE = {
    "axes.edgecolor": TEXT_COLOUR,
    "axes.grid": True,
    "axes.labelcolor": TEXT_COLOUR,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "font.size": 10,
    "grid.alpha": 0.3,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "lines.linewidth": 1.4,
    "svg.fonttype": "none",
    "svg.hashsalt": "solver2048",
    "text.color": TEXT_COLOUR,
    "xtick.color": TEXT_COLOUR,
    "ytick.color": TEXT_COLOUR,
}


@functools.cache
def _matplotlib() -> Any:
    """matplotlib, drawing to files alone. Raises UsageError where it is missing."""
    try:
        import matplotlib
        import matplotlib.figure
        import matplotlib.ticker
    except ImportError:
        raise UsageError(
            "pictures need matplotlib: `python -m pip install 'solver2048[plot]'`"
        ) from None
    return matplotlib


def check_drawing() -> None:
    """Raise UsageError if pictures cannot be drawn here."""
    _matplotlib()


def draw_pictures(overviews: Sequence[Overview]) -> Iterator[tuple[str, Any]]:
    """Name and figure of every picture that one of the solutions has anything to show in."""
    for name, panels in PICTURES.items():
        with _matplotlib().rc_context(STYLE):
            figure = _draw_picture(panels, overviews)
        if figure is not None:
            yield name, figure


def _draw_picture(panels: list[Panel], overviews: Sequence[Overview]) -> Any | None:
    size = (WIDTH * len(overviews), HEIGHT * len(panels))
    figure = _matplotlib().figure.Figure(size, layout="constrained")
    grid = figure.subplots(len(panels), len(overviews), squeeze=False, sharey="row")
    drawn = [
        _draw_panel(panel, axes, overview, len(overviews) > 1)
        for panel, row in zip(panels, grid, strict=True)
        for axes, overview in zip(row, overviews, strict=True)
    ]
    return figure if any(drawn) else None


def _draw_panel(panel: Panel, axes: Any, overview: Overview, is_labelled: bool) -> bool:
    """Draw a panel; returns whether there was anything to show."""
    finding = panel.draw(axes, overview)
    if finding is None:
        axes.set_axis_off()
        return False
    lines = textwrap.wrap(finding, TITLE_LENGTH)
    axes.set_title("\n".join([overview.label, *lines] if is_labelled else lines))
    axes.set_xlabel(panel.x_label)
    axes.set_ylabel(panel.y_label.format(unit=overview.objective.unit))
    axes.set_xlim(left=0)
    thousands = _matplotlib().ticker.StrMethodFormatter("{x:,.0f}")
    axes.xaxis.set_major_formatter(thousands)
    if axes.get_yscale() == "linear" and axes.get_ylim()[1] > 10:
        axes.yaxis.set_major_formatter(thousands)
    axes.legend(loc="best")
    return True


def save_picture(figure: Any, path: Path) -> None:
    """Write a picture as its name says, .png or .svg; the same bytes for the same picture."""
    is_svg = path.suffix == ".svg"
    metadata = {"Date": None} if is_svg else {"Software": None}
    with _matplotlib().rc_context(STYLE):
        figure.savefig(path, dpi=PIXELS_PER_INCH, metadata=metadata)


def inline_svg(figure: Any) -> str:
    """A picture as an `svg` element for a page.

    Text and axes are in the page's colour, and what is blue in its --picture-blue if it has one.
    """
    out = io.StringIO()
    with _matplotlib().rc_context(STYLE):
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None})
    text = out.getvalue()
    text = text[text.index("<svg") :]
    # Ids of groups would be there once a picture; nothing refers to them.
    text = re.sub(r'<g id="[^"]*"', "<g", text)
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = text.replace(BLUE.lower(), f"var(--picture-blue, {BLUE})")
    return text.replace(TEXT_COLOUR, "currentColor")
