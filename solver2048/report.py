"""What a solve ends with: counts, start values, times and sizes, published figures beside them."""

from __future__ import annotations

import textwrap
from typing import Any

from .errors import PublishedMismatch
from .files import format_size
from .layer_sets import LayerSets
from .objective import Objective
from .options import DEFAULT_SPAWN4, REACHES
from .policy import PolicyTable
from .progress import duration
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


def format_report(report: dict[str, Any]) -> str:
    """The report as a table of at most 80 columns."""
    published = report["published"]
    rows: list[tuple[str, str, str]] = []

    def row(label: str, value: str, figure: str = "") -> None:
        shown = ""
        if figure in published:
            number = published[figure]["published"]
            decimals = published[figure]["decimals"]
            shown = f"{number:,.{decimals}f}"
            if published[figure]["agrees"] is False:
                shown += "  DIFFERS"
        rows.append((label, value, shown))

    row("states", f"{report['states']:,}", "states")
    row("afterstates", f"{report['afterstates']:,}", "afterstates")
    row("terminal states", f"{report['terminal']:,}", "terminal")
    row("ages", f"{report['ages']:,}", "ages")
    row("top age" if report["max_age"] == report["top_age"] else "age reached",
        f"{report['max_age']:,}", "top_age")  # fmt: skip
    if report["is_finished"]:
        decimals = 8 if report["objective"] == "score" else 12
        for name, words in START_NAMES.items():
            row(f"start, {words}", f"{report['start_classes'][name]:,.{decimals}f}",
                f"start_{name.replace(',', '')}")  # fmt: skip
        row("start, random", f"{report['random_start']:,.{decimals}f}", "random_start")
    else:
        for name, words in {**START_NAMES, "random": "random"}.items():
            figure = "random_start" if name == "random" else f"start_{name.replace(',', '')}"
            if figure in published:
                row(f"start, {words}", "-", figure)
    lines = [f"{report['shape']}, objective {report['objective']} ({report['unit']}), p(4) = "
             f"{report['spawn4']}", ""]  # fmt: skip
    if published:
        rows.insert(0, ("", "here", "published"))
    widths = [max(len(r[i]) for r in rows) for i in range(3)]
    lines += [
        f"  {label:<{widths[0]}}  {value:>{widths[1]}}  {shown:>{widths[2]}}".rstrip()
        for label, value, shown in rows
    ]
    lines.append("")
    times = [
        f"{name} {duration(report[f'{name}_seconds'])}"
        for name in ("forward", "again", "backward")
        if report[f"{name}_seconds"] is not None
    ]
    if report["peak_memory_bytes"]:
        times.append(f"peak memory {report['peak_memory_bytes'] / 1e6:,.0f} MB")
    lines.append("  " + ", ".join(times))
    sets = "sets" if report["keep"] == "solution" else "sets, not kept,"
    lines.append(
        f"  {sets} {format_size(report['sets_bytes'])}: {report['bits_per_state']:.2f} bits per "
        f"state, {report['bits_per_afterstate']:.2f} per afterstate ({report['ids']} IDs)"
    )
    if report["is_finished"] and report["keep"] == "solution":
        lines.append(
            f"  values {format_size(report['values_bytes'])}: {report['bits_per_value']:.2f} bits "
            f"each, {report['values']}, off by at most {report['rounding_bound']:.3g}"
        )
    if report["is_finished"] and report["keep"] == "policy":
        states = "all" if report["reach"] == REACHES[0] else "those that optimal play meets"
        lines.append(
            f"  actions {format_size(report['policy_bytes'])}: {report['bits_per_action']:.3f} "
            f"bits for each of {report['policy_states']:,} states, {states};\n"
            f"  {report['share_predicted']:.1%} of those with a move are as predicted"
        )
    sources = {figure["source"] for figure in published.values()}
    lines += [
        textwrap.fill(f"  published: {s}", 80, subsequent_indent="    ") for s in sorted(sources)
    ]
    return "\n".join(lines)


def read_report(path: str, objective: Objective) -> dict[str, Any]:
    """The report of a solution's directory."""
    return make_report(LayerSets(Store(path)), objective)
