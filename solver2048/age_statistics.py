"""A table of statistics, one row per age: counts, bits on disk, values, and how actions differ."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elias_fano.ranked import rank_bitmap

from .bands import bands_of
from .errors import NotSolved
from .kept_records import COUNTS, read_kept
from .layer import Band, LayerCounts
from .layer_index import build_layer_index
from .layer_sets import LayerSets, stored_problem
from .layer_statistics import LayerStatistics, ValuedLayer, layer_statistics
from .layer_values import NAME, Values, stored_objectives
from .objective import Objective
from .progress import Progress
from .records import SETS
from .workers import Workers


def _column(unit: str, meaning: str) -> Any:
    return field(metadata={"unit": unit, "meaning": meaning})


@dataclass(frozen=True)
class AgeStatistics:
    """One row of the table; None where nothing is known. `columns` says what each field means.

    *States* and *afterstates* are counted modulo all symmetries of the board, as published;
    *labelled* counts all boards; *members* are those of the sets, modulo the flips. Every mean and
    share is over labelled states.
    """

    age: int = _column("sum of tiles", "age of all boards of the row")
    states: int = _column("boards", "states, modulo all symmetries")
    states_labelled: int = _column("boards", "states, all boards")
    afterstates: int = _column("boards", "afterstates, modulo all symmetries")
    afterstates_labelled: int = _column("boards", "afterstates, all boards")
    terminal: int = _column("boards", "terminal states, modulo all symmetries")
    slots: int = _column("slots", "slots of the perfect index, modulo the flips")
    state_density: float = _column("members per slot", "states modulo the flips over slots")
    afterstate_density: float = _column("members per slot", "the same of afterstates")
    state_bits: float | None = _column(
        "bits per member", "states on disk, modulo the flips; mean over the band of ages"
    )
    afterstate_bits: float | None = _column("bits per member", "the same of afterstates")
    value_bits: float | None = _column("bits per afterstate member", "values on disk, likewise")
    value_mean: float | None = _column("value", "mean value of a state")
    value_min: float | None = _column("value", "least value of a state")
    value_max: float | None = _column("value", "greatest value of a state")
    gap_mean: float | None = _column(
        "value", "mean of best less second best action value, of states with two legal or more"
    )
    single_share: float | None = _column("share of states", "those with exactly one legal action")
    tied_share: float | None = _column(
        "share of states", "those with several best actions, equal for all that is stored"
    )
    compared: int | None = _column(
        "members", "states modulo the flips that the last three rest on: all, or a random sample"
    )
    largest_tile: int | None = _column("tile", "largest tile of a state")

    @classmethod
    def columns(cls) -> dict[str, tuple[str, str]]:
        """(unit, meaning) of every column, in order."""
        return {
            f.name: (f.metadata["unit"], f.metadata["meaning"]) for f in dataclasses.fields(cls)
        }


def age_statistics(
    sets: LayerSets,
    objective: Objective,
    *,
    is_quick: bool = False,
    threads: int | None = None,
    show_progress: bool = False,
) -> list[AgeStatistics]:
    """The table of all enumerated ages, upward; of a solution ``s``: `s.sets`, `s.objective`.

    Layer after layer is read, with one band in memory, and every action compared; if `is_quick`,
    none is, and columns that need it are None. Where only the start is kept it is what the solve
    took note of: values in full, actions by a sample. Raises NotSolved, SolutionDamaged.
    """
    if not sets.max_age:
        raise NotSolved(f"{sets.store.path} holds no sets and no counts of any age")
    known: dict[int, LayerStatistics] = {}
    if objective.name in stored_objectives(sets.store):
        if sets.store.keeps_start_alone:
            known = _noted(sets, objective)
        elif not is_quick:
            known = _computed(sets, objective, threads, show_progress)
    bits = _bits(sets, objective)
    return [_row(counts, bits, known.get(counts.age)) for counts in sets.counts()]


def _row(
    counts: LayerCounts, bits: dict[int, dict[str, float]], known: LayerStatistics | None
) -> AgeStatistics:
    sizes = bits.get(counts.age, {})
    return AgeStatistics(
        **counts.published(),
        slots=counts.num_slots,
        state_density=counts.state_members / counts.num_slots,
        afterstate_density=counts.afterstate_members / counts.num_slots,
        state_bits=sizes.get("states"),
        afterstate_bits=sizes.get("afterstates"),
        value_bits=sizes.get("values"),
        **_known(known),
    )


def _known(known: LayerStatistics | None) -> dict[str, Any]:
    """The columns of values and actions."""
    columns = {f"value_{name}": f"state_{name}" for name in ("mean", "min", "max")}
    columns |= {
        n: n for n in ("gap_mean", "single_share", "tied_share", "compared", "largest_tile")
    }
    return {name: known and getattr(known, attribute) for name, attribute in columns.items()}


def _noted(sets: LayerSets, objective: Objective) -> dict[int, LayerStatistics]:
    """By age, what the records of the values say; nothing of an older solution."""
    records = (read_kept(sets.store, objective.values_kind, band) for band in bands_of(sets.shape))
    return {
        int(layer["age"]): LayerStatistics(**layer["statistics"])
        for record in records
        if record
        for layer in record["layers"]
        if "statistics" in layer
    }


def _bits(sets: LayerSets, objective: Objective) -> dict[int, dict[str, float]]:
    """By age, bits a member takes in the files of its band."""
    store = sets.store
    found: dict[int, dict[str, float]] = {}
    for band in (*sets.dropped, *sets.bands):
        kept = read_kept(store, COUNTS, band) if band in sets.dropped else None
        sizes = kept["bytes"] if kept else store.stored_bytes(SETS, band)
        values = {} if kept else store.stored_bytes(objective.values_kind, band)
        counts = [sets.layer_counts(age) for age in band.ages if age <= sets.max_age]
        states = sum(c.state_members for c in counts)
        afterstates = max(1, sum(c.afterstate_members for c in counts))
        bits = {name: 8 * sizes[name] / number for name, number in
                (("states", states), ("afterstates", afterstates))}  # fmt: skip
        if NAME in values:
            bits["values"] = 8 * values[NAME] / afterstates
        found |= {c.age: bits for c in counts}
    return found


def _computed(
    sets: LayerSets, objective: Objective, threads: int | None, show_progress: bool
) -> dict[int, LayerStatistics]:
    problem = stored_problem(sets.store, objective.name)
    values = Values(sets, objective)
    total = sum(sets.layer_counts(age).states for band in values.bands for age in band.ages)
    found = {}
    with (
        Workers(threads) as workers,
        Progress(f"{sets.shape.name} statistics", float(total), enabled=show_progress) as bar,
    ):
        for band in values.bands:
            for age, layer, states in valued_layers(sets, values, band):
                found[age] = layer_statistics(problem, layer, states, workers)
                num_states = sets.layer_counts(age).states
                bar.advance(age, float(num_states), num_states)
    return found


def valued_layers(
    sets: LayerSets, values: Values, band: Band
) -> Iterator[tuple[int, ValuedLayer, NDArray[np.uint64]]]:
    """(age, afterstates with their values, bitmap of the states) of a band's layers, upward.

    Raises SolutionDamaged.
    """
    stored = sets.read_band(band)
    items = values.read_band(band)
    for age in band.ages:
        ranks = rank_bitmap(stored.bitmap(age, NAME))
        ordered = np.empty(int(ranks[-1]))
        of_layer = items[slice(*values.places(age))]
        for part, positions in stored.index_order(age, NAME, ranks):
            ordered[positions] = values.format.decode(of_layer[part])
        index = build_layer_index(sets.shape, age)
        layer = ValuedLayer(index, ranks, ordered, values.format)
        yield age, layer, stored.bitmap(age, "states")


def statistics_card() -> str:
    """What the table is and what its columns mean, in Markdown."""
    lines = [
        "# Statistics of a solution of 2048, one row per age",
        "",
        "States and afterstates are counted modulo all symmetries of the board, or labelled: all",
        "boards. Members are the boards of the sets, modulo the two flips. Means and shares of",
        "states are over labelled states, terminal ones included. Actions tie if, for all that is",
        "stored, their values may be equal, as in `query`. An empty cell: not known, or none.",
        "",
        "| column | unit | meaning |",
        "|---|---|---|",
    ]
    lines += [
        f"| {name} | {unit} | {text} |" for name, (unit, text) in AgeStatistics.columns().items()
    ]
    return "\n".join(lines) + "\n"
