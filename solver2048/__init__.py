"""Exactly solved 2048 on small boards: solve a board, then ask for values and best actions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

__all__ = ["ACTIONS", "Solution", "SolveOptions", "open_solution", "parse_shape", "solve"]

_HOMES = {
    "ACTIONS": "shape",
    "SolveOptions": "options",
    "Solution": "solution",
    "open_solution": "opening",
    "parse_shape": "shape",
    "solve": "solver",
}

if TYPE_CHECKING:
    from .opening import open_solution
    from .options import SolveOptions
    from .shape import ACTIONS, parse_shape
    from .solution import Solution
    from .solver import solve


def __dir__() -> list[str]:
    return [*globals(), *__all__]


def __getattr__(name: str) -> Any:
    # Loaded when asked for: the command line must be able to fail fast, before numba is there.
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(f".{_HOMES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
