"""What a solve ends with: counts, start values, times and sizes, published figures beside them."""

from __future__ import annotations

from typing import Any

from .errors import PublishedMismatch
from .layer_sets import LayerSets
from .objective import Objective
from .options import DEFAULT_SPAWN4
from .policy import PolicyTable
from .published import published_figures
from .records import RESULT, SETS
from .store import Store

START_NAMES = {"2,2": "two 2s", "2,4": "a 2 and a 4", "4,4": "two 4s"}


def make_report(sets: LayerSets, objective: Objective) -> dict[str, Any]:
    """The figures of a solution, finished or not, as one JSON object."""
    store = sets.store
    counts = sets.counts()
    run = store.read_run()
    report: dict[str, Any] = {
        "shape": sets.shape.name,
        "spawn4": store.identity()["spawn4"],
        "ids": sets.ids.name,
        "keep": store.keep,
        "objective": objective.name,
        "unit": objective.unit,
        "is_finished": False,
        "ages": len(counts),
        "max_age": sets.max_age,
        "top_age": sets.shape.top_age,
        "states": sum(c.states for c in counts),
        "afterstates": sum(c.afterstates for c in counts),
        "terminal": sum(c.terminal for c in counts),
        "forward_seconds": run.get("forward_seconds"),
        "again_seconds": run.get("again_seconds"),
        "backward_seconds": run.get(f"{objective.directory}_backward_seconds"),
        "reach_seconds": run.get(f"{objective.directory}_reach_seconds"),
        "peak_memory_bytes": run.get("peak_memory_bytes"),
        **_set_sizes(sets),
    }
    kind = objective.policy_kind if store.keep == "policy" else objective.values_kind
    result = store.read_record(f"{kind}/{RESULT}")
    if result is not None:
        report |= {"is_finished": True}
        report |= {name: result[name] for name in ("start_classes", "random_start")}
        report |= _table(sets, objective) if store.keep == "policy" else _values(sets, kind, result)
    report["published"] = _comparison(sets, objective, report)
    return report


def _values(sets: LayerSets, kind: str, result: dict[str, Any]) -> dict[str, Any]:
    """What finished values take, and how they are stored."""
    num_bytes = sum(sum(sets.store.stored_bytes(kind, band).values()) for band in sets.bands)
    num_values = sum(c.afterstate_members for c in sets.counts())
    return {
        **{name: result[name] for name in ("values", "rounding_bound")},
        "values_bytes": num_bytes,
        "bits_per_value": 8 * num_bytes / max(num_values, 1),
    }


def _table(sets: LayerSets, objective: Objective) -> dict[str, Any]:
    """What a finished policy table takes, and how many states it is of."""
    table = PolicyTable(sets.store, sets.shape, objective)
    layers, num_bytes = table.layers(), table.num_bytes()
    num_states = sum(layer["states"] for layer in layers)
    num_predicted = sum(layer["predicted"] for layer in layers)
    return {
        "reach": table.reach,
        "policy_states": num_states,
        "policy_bytes": num_bytes,
        "bits_per_action": 8 * num_bytes / max(num_states, 1),
        "share_predicted": num_predicted / max(1, sum(layer["decided"] for layer in layers)),
    }


def _set_sizes(sets: LayerSets) -> dict[str, float]:
    # What the sets take, or took.
    sizes = {name: sets.dropped_bytes.get(name, 0) for name in ("states", "afterstates")}
    for band in sets.bands:
        for name, num_bytes in sets.store.stored_bytes(SETS, band).items():
            if name in sizes:
                sizes[name] += num_bytes
    counts = sets.counts()
    return {
        "sets_bytes": sum(sizes.values()),
        "bits_per_state": 8 * sizes["states"] / max(sum(c.state_members for c in counts), 1),
        "bits_per_afterstate": 8 * sizes["afterstates"]
        / max(sum(c.afterstate_members for c in counts), 1),
    }  # fmt: skip


def _comparison(
    sets: LayerSets, objective: Objective, report: dict[str, Any]
) -> dict[str, dict[str, Any]]:
    """Published figures by name: {published, ours, agrees, source}; ours None if not there yet."""
    figures = published_figures(sets.shape)
    is_default = report["spawn4"] == DEFAULT_SPAWN4
    is_enumerated = sets.max_age == sets.shape.top_age
    compared = {}

    def compare(name: str, ours: float | int | None, decimals: int = 0) -> None:
        if name in figures:
            published = figures[name]
            agrees = None if ours is None else abs(ours - published) < 0.51 * 10.0**-decimals
            compared[name] = {
                "published": published, "decimals": decimals, "ours": ours, "agrees": agrees,
                "source": figures["source"],
            }  # fmt: skip

    for name in ("states", "afterstates", "terminal", "ages", "top_age"):
        compare(name, report[name] if is_enumerated else None)
    if is_default and not objective.exponent:
        classes = report.get("start_classes", {})
        decimals = figures.get("decimals", 0)
        for name in START_NAMES:
            compare(f"start_{name.replace(',', '')}", classes.get(name), decimals)
        compare("random_start", report.get("random_start"), decimals)
    elif is_default:
        tile = str(2**objective.exponent)
        figures = {**figures, "random_start": figures.get("tiles", {}).get(tile)}
        if figures["random_start"] is not None:
            compare("random_start", report.get("random_start"), 12)
    return compared


def check_published(report: dict[str, Any]) -> None:
    """Raise PublishedMismatch if a figure differs from the published one."""
    for name, figure in report["published"].items():
        if figure["agrees"] is False:
            raise PublishedMismatch(
                f"{name.replace('_', ' ')}: {figure['ours']} here, {figure['published']} published "
                f"({figure['source']})"
            )


def read_report(path: str, objective: Objective) -> dict[str, Any]:
    """The report of a solution's directory."""
    return make_report(LayerSets(Store(path)), objective)
