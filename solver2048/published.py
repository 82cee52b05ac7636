"""Published figures that results are compared with; `data/published.toml` names their sources."""

from __future__ import annotations

import functools
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

from .shape import Shape


@functools.cache
def _figures() -> dict[str, Any]:
    # Installed, the data lie in the package; in a checkout, beside it.
    packaged = files(__package__) / "data" / "published.toml"
    if packaged.is_file():
        return tomllib.loads(packaged.read_text(encoding="utf-8"))
    checkout = Path(__file__).parent.parent / "data" / "published.toml"
    return tomllib.loads(checkout.read_text(encoding="utf-8"))


def published_figures(shape: Shape) -> dict[str, Any]:
    """The published figures of a shape, and under ``source`` where they come from."""
    return dict(_figures().get(shape.name, {}))
