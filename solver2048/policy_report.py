"""What a finished policy table holds, as one JSON object."""

from __future__ import annotations

import os
from typing import Any

from .errors import NotSolved
from .layer_sets import stored_shape
from .objective import parse_objective
from .policy import PolicyTable
from .store import Store


def policy_report(path: str | os.PathLike[str], objective: str = "score") -> dict[str, Any]:
    """Its states, size and start values. Raises NotSolved."""
    store = Store(path)
    shape = stored_shape(store)
    table = PolicyTable(store, shape, parse_objective(objective, shape))
    if table.result is None:
        raise NotSolved(f"{path} is not finished; the same command goes on")
    layers = table.layers()
    members = sum(layer["members"] for layer in layers)
    return {
        "shape": shape.name,
        "objective": objective,
        "keep": "policy",
        "reach": table.reach,
        "members": members,
        "share_predicted": sum(layer["predicted"] for layer in layers)
        / max(1, sum(layer["decided"] for layer in layers)),
        "bytes": table.num_bytes(),
        "bits_per_member": 8 * table.num_bytes() / max(members, 1),
        "start_classes": table.result["start_classes"],
        "random_start": table.result["random_start"],
    }
