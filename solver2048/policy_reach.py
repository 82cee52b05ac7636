"""The states that a policy itself can meet from a random start: all spawns, its action alone."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elias_fano.bits import empty_bitmap
from elias_fano.ranked import rank_bitmap

from .background import BackgroundWriter
from .backward import Problem
from .bands import bands_of
from .errors import SolutionDamaged
from .forward import AfterstateLayer, mark_states, slide
from .kernels.policy import NO_ACTION, NOT_STORED, mark_policy_moves
from .layer_index import build_layer_index, member_boards, transposed_boards
from .options import STATES_MET, SolveOptions
from .policy import PolicyTable
from .policy_bands import PolicyBandBuilder, member_chunks
from .progress import Progress
from .records import RESULT
from .shape import TRANSPOSED_ACTIONS
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


def reached_layers(table: PolicyTable, workers: Workers) -> Iterator[ReachedLayer]:
    """All ages upward. Raises SolutionDamaged where a state is met for which there is no action."""
    shape = table.shape
    tables = build_tables(shape)
    window: dict[int, AfterstateLayer] = {}
    for age in range(4, shape.top_age + 1, 2):
        index = build_layer_index(shape, age)
        states = mark_states(shape, index, window, workers)
        ranks = rank_bitmap(states)
        actions = np.full(int(ranks[-1]), NO_ACTION, dtype=np.uint8)
        afterstates = empty_bitmap(int(index.num_slots))
        for start, stop, place in member_chunks(ranks):
            codes = member_boards(shape, index, states, start, stop)
            actions[place] = table.actions(age, codes)
            mark_policy_moves(tables, index, codes, actions[place], afterstates)
            if shape.is_square:  # what it meets from a board it meets, transposed, from another
                codes = transposed_boards(shape, codes)
                mark_policy_moves(tables, index, codes, TURNED[actions[place]], afterstates)
        if (actions == NOT_STORED).any():
            raise SolutionDamaged(f"age {age}: no action is stored for a state that play meets")
        slide(window, AfterstateLayer(index, afterstates))
        yield ReachedLayer(age, ranks, actions)


def is_reached(store: Store, problem: Problem) -> bool:
    """Say which states a table is of; returns whether all of them are stored."""
    objective = problem.objective
    kind = objective.policy_kind
    store.create_kind(kind, {"objective": objective.name, "reach": STATES_MET})
    is_stored = all(store.is_done(kind, band) for band in bands_of(problem.shape))
    return is_stored and store.is_finished(kind)


def reach_pass(table: PolicyTable, store: Store, options: SolveOptions, workers: Workers) -> None:
    """Store the actions of the states alone that a complete policy meets.

    Begins anew where it was stopped, but writes no finished band again.
    """
    kind, shape = table.kind, table.shape
    bands = bands_of(shape)
    layers = reached_layers(table, workers)
    with (
        Progress(f"{shape.name} reach", len(bands), enabled=options.show_progress) as progress,
        BackgroundWriter() as writer,
    ):
        for band in bands:
            reached = [next(layers) for _ in band.ages]
            num_members = {layer.age: len(layer.actions) for layer in reached}
            if not store.is_done(kind, band):
                builder = PolicyBandBuilder(shape, band, num_members)
                for layer in reached:
                    masks = _masks(layer.actions)
                    builder.add(table.index(layer.age), layer.states, masks, workers)
                writer.submit(functools.partial(builder.commit, store, kind, workers))
            progress.advance(band.last, 1, sum(num_members.values()))
    result = {**(table.result or {}), "identity": store.kind_identity(kind)}
    result.pop("sha256", None)
    store.write_record(f"{kind}/{RESULT}", result)


def _masks(actions: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return np.where(actions < NO_ACTION, 1 << (actions & 3), 0).astype(np.uint8)
