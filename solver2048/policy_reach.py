"""The states that a policy itself can meet from a random start: all spawns, its action alone."""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elias_fano.bits import empty_bitmap
from elias_fano.ranked import rank_bitmap

from .background import BackgroundWriter, RunTimer
from .backward import Problem
from .bands import bands_of
from .descent import layer_work
from .errors import SolutionDamaged
from .forward import START_AGES, AfterstateLayer, mark_states, slide
from .kernels.policy import NO_ACTION, NOT_STORED, mark_policy_moves
from .layer import Band
from .layer_index import LayerIndex, build_layer_index, transposed_boards
from .layer_sets import LayerSets
from .options import STATES_MET, SolveOptions
from .policy import PolicyTable
from .policy_bands import PolicyBandBuilder, map_members
from .progress import Progress
from .progress_log import NO_LOG, REACH, PassLog
from .records import RESULT
from .shape import TRANSPOSED_ACTIONS, Shape
from .store import Store
from .tables import build_tables
from .workers import Workers

TURNED = np.array([*TRANSPOSED_ACTIONS, NO_ACTION, NOT_STORED], dtype=np.uint8)
"""For what a table says of a square board, what it says of the transpose."""


@dataclass(frozen=True)
class ReachedLayer:
    """The states of one age that a policy meets.

    states : ranked bitmap; actions : uint8[n], of each, in index order
    """

    age: int
    states: NDArray[np.uint64]
    actions: NDArray[np.uint8]


def reached_layers(
    table: PolicyTable, workers: Workers, window: dict[int, AfterstateLayer]
) -> Iterator[ReachedLayer]:
    """All ages above a window, upward; the first is 4 where that is empty.

    window : afterstates met at the two ages below, by age; it moves along
    Raises SolutionDamaged where a state is met for which there is no action.
    """
    shape = table.shape
    first = max(window, default=min(START_AGES.values()) - 2) + 2
    for age in range(first, shape.top_age + 1, 2):
        index = build_layer_index(shape, age)
        states = mark_states(shape, index, window, workers)
        ranks = rank_bitmap(states)
        actions = np.full(int(ranks[-1]), NO_ACTION, dtype=np.uint8)
        afterstates = empty_bitmap(int(index.num_slots))
        act = functools.partial(_act, table, index, actions, afterstates)
        map_members(shape, index, ranks, workers, act)
        if (actions == NOT_STORED).any():
            raise SolutionDamaged(f"age {age}: no action is stored for a state that play meets")
        slide(window, AfterstateLayer(index, afterstates))
        yield ReachedLayer(age, ranks, actions)


def _act(
    table: PolicyTable,
    index: LayerIndex,
    actions: NDArray[np.uint8],
    afterstates: NDArray[np.uint64],
    codes: NDArray[np.uint64],
    place: slice,
) -> None:
    """Fill the actions of some members of a layer, and mark the afterstates they lead to."""
    shape, tables = table.shape, build_tables(table.shape)
    actions[place] = table.actions(int(index.age), codes)
    mark_policy_moves(tables, index, codes, actions[place], afterstates)
    if shape.is_square:  # what it meets from a board it meets, transposed, from another
        codes = transposed_boards(shape, codes)
        mark_policy_moves(tables, index, codes, TURNED[actions[place]], afterstates)


def is_reached(store: Store, problem: Problem) -> bool:
    """Say which states a table is of; returns whether all of them are stored."""
    objective = problem.objective
    kind = objective.policy_kind
    store.create_kind(kind, {"objective": objective.name, "reach": STATES_MET})
    is_stored = all(store.is_done(kind, band) for band in bands_of(problem.shape))
    return is_stored and store.is_finished(kind)


def reach_pass(
    table: PolicyTable,
    store: Store,
    options: SolveOptions,
    workers: Workers,
    log: PassLog = NO_LOG,
) -> None:
    """Store the actions of the states alone that a complete policy meets.

    Goes on from the last checkpoint, and begins anew without one; no finished band is written
    again.
    """
    kind, shape = table.kind, table.shape
    window = _read_window(store, kind, shape)
    bands = [band for band in bands_of(shape) if band.first > max(window, default=0)]
    works = {counts.age: layer_work(counts) for counts in LayerSets(store).counts()}
    left = sum(works[age] for band in bands for age in band.ages)
    log.begin(REACH, left, sum(works.values()))
    with (
        RunTimer(store, f"{table.objective.directory}_reach_seconds") as timer,
        Progress(
            f"{shape.name} reach", left, enabled=options.show_progress, on_layer=log.advance
        ) as progress,
        BackgroundWriter() as writer,
    ):
        layers = reached_layers(table, workers, window)
        last_checkpoint = time.monotonic()
        for band in bands:
            reached = []
            for age in band.ages:
                reached.append(next(layers))
                progress.advance(age, works[age], len(reached[-1].actions))
            if not store.is_done(kind, band):
                builder = _build_band(table, band, reached, workers)
                writer.submit(functools.partial(builder.commit, store, kind, workers))
            if time.monotonic() - last_checkpoint >= options.checkpoint_seconds:
                writer.finish()
                store.checkpoint(kind).write({age: of.afterstates for age, of in window.items()})
                last_checkpoint = time.monotonic()
                log.saved(band.last)
            timer.save()
        writer.finish()
    _finish(table, store)


def _read_window(store: Store, kind: str, shape: Shape) -> dict[int, AfterstateLayer]:
    """The window of a pass that was stopped; empty where a band below it is not stored."""
    checkpoint = store.checkpoint(kind).read()
    below = [band for band in bands_of(shape) if band.first <= max(checkpoint, default=0)]
    if not all(store.is_done(kind, band) for band in below):
        return {}
    return {
        age: AfterstateLayer(build_layer_index(shape, age), checkpoint[age])
        for age in sorted(checkpoint)
    }


def _finish(table: PolicyTable, store: Store) -> None:
    """Take over the result of the complete table, whose values are those of these states too."""
    result = {**(table.result or {}), "identity": store.kind_identity(table.kind)}
    result.pop("sha256", None)  # that of the other record
    store.write_record(f"{table.kind}/{RESULT}", result)


def _build_band(
    table: PolicyTable, band: Band, reached: list[ReachedLayer], workers: Workers
) -> PolicyBandBuilder:
    """The actions of a band's states that are met, ready to be committed."""
    num_members = {layer.age: len(layer.actions) for layer in reached}
    builder = PolicyBandBuilder(table.shape, band, num_members)
    for layer in reached:
        masks = np.where(layer.actions < NO_ACTION, 1 << (layer.actions & 3), 0).astype(np.uint8)
        builder.add(table.index(layer.age), layer.states, masks, workers)
    return builder
