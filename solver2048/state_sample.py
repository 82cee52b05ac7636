"""A stratified sample of a solution's states: as many of every age, with all that is known of them.

A state is a class of boards modulo all symmetries, as they are counted; the board given is the one
of its canonical form. All states of an age are alike likely, and ages with fewer give all of them.
The choice depends on seed, age and solution alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elias_fano.ranked import rank_bitmap

from .age_statistics import valued_layers
from .backward import Problem
from .board import unpack_boards
from .layer_index import LayerIndex, board_slots, slot_boards, transposed_boards
from .layer_sets import LayerSets, stored_problem
from .layer_statistics import States, ValuedLayer, sampled_slots
from .layer_values import Values
from .objective import Objective
from .progress import Progress
from .shape import ACTIONS, Shape

COLUMNS = {
    "age": "sum of the tiles",
    "board": "tile numbers row by row, 0 for an empty cell",
    "value": "v*: expected future score, or probability of the tile, under optimal play",
    **{f"q_{name}": f"q* of {name}: reward and what follows; empty if illegal" for name in ACTIONS},
    "best": "a best action, the first of those tied; empty on a terminal board",
    "tied": "best actions, ties within the stored precision included",
    "legal": "legal actions",
    "gap": "best less second best action value; empty with fewer than two legal actions",
    "largest_tile": "largest tile",
    "images": "labelled boards of the class: its different images under all symmetries",
    "states": "states of the age, modulo all symmetries",
    "weight": "states of the age for each of them in the sample",
}
"""Name and meaning of every column."""


def sample_states(
    sets: LayerSets, objective: Objective, per_age: int, seed: int, *, show_progress: bool = False
) -> Iterator[dict[str, Any]]:
    """Rows of `COLUMNS`, ages upward; one band is in memory. Raises NotSolved, SolutionDamaged."""
    problem = stored_problem(sets.store, objective.name)
    values = Values(sets, objective)
    total = sum(sets.layer_counts(age).states for band in values.bands for age in band.ages)
    with Progress(f"{sets.shape.name} sample", float(total), enabled=show_progress) as bar:
        for band in values.bands:
            for age, layer, bitmap in valued_layers(sets, values, band):
                rng = np.random.default_rng([seed, age])
                slots = _sampled_classes(sets.shape, layer.index, rank_bitmap(bitmap), rng, per_age)
                num_states = sets.layer_counts(age).states
                codes = slot_boards(sets.shape, layer.index, slots)
                yield from _rows(problem, layer, layer.describe(problem, codes), num_states)
                bar.advance(age, float(num_states), num_states)


def _sampled_classes(
    shape: Shape, index: LayerIndex, ranks: NDArray[np.uint64], rng: np.random.Generator, count: int
) -> NDArray[np.uint64]:
    """Rising slots of `count` states modulo all symmetries; of all if there are fewer."""
    if not shape.is_square:
        return sampled_slots(rng, ranks, count)
    # A class has one or two members, of which the lesser stands for it: at least every second
    # member does, so that 4 * count + 64 of them are enough but for one chance in 2^64.
    slots = sampled_slots(rng, ranks, 4 * count + 64)
    transposed = transposed_boards(shape, slot_boards(shape, index, slots))
    slots = slots[slots <= board_slots(shape, index, transposed)]
    return np.sort(rng.choice(slots, min(count, len(slots)), replace=False))


def _rows(
    problem: Problem, layer: ValuedLayer, states: States, num_states: int
) -> Iterator[dict[str, Any]]:
    shape = problem.shape
    order = list(shape.packed_actions)
    action_values = states.action_values[:, order]
    best = layer.best_actions(problem, states)[:, order]
    boards = unpack_boards(states.codes, shape)
    images = _all_images(shape, layer.index, states)
    for i in range(len(states.codes)):
        legal = ~np.isnan(action_values[i])
        tied = _names(best[i] & legal)
        yield {
            "age": int(layer.index.age),
            "board": boards[i].ravel().tolist(),
            "value": float(states.values[i]),
            **{
                f"q_{name}": float(action_values[i, a]) if legal[a] else None
                for a, name in enumerate(ACTIONS)
            },
            "best": tied[0] if tied else None,
            "tied": tied,
            "legal": _names(legal),
            "gap": float(states.gaps[i]) if legal.sum() > 1 else None,
            "largest_tile": 1 << int(states.largest[i]),
            "images": int(images[i]),
            "states": num_states,
            "weight": num_states / len(states.codes),
        }


def _names(chosen: NDArray[np.bool_]) -> list[str]:
    return [name for name, is_chosen in zip(ACTIONS, chosen, strict=True) if is_chosen]


def _all_images(shape: Shape, index: LayerIndex, states: States) -> NDArray[np.int64]:
    """Different images of each board under all symmetries of the shape."""
    images = states.images.astype(np.int64)
    if not shape.is_square:
        return images
    slots = board_slots(shape, index, states.codes)
    transposed = board_slots(shape, index, transposed_boards(shape, states.codes))
    return np.where(slots == transposed, images, 2 * images)


def sample_card(sets: LayerSets, objective: Objective, per_age: int, seed: int) -> str:
    """What a sample is and what its columns mean, in Markdown."""
    spawn4 = stored_problem(sets.store, objective.name).spawn4
    lines = [
        f"# A sample of the states of {sets.shape.name} 2048, exactly solved",
        "",
        f"Objective {objective.name}; a spawn is a 4 with probability {spawn4}. Of every age, the",
        f"sum of the tiles, {per_age} states at random, all of them alike likely, or all if there",
        f"are fewer; seed {seed}. States are classes of boards modulo all symmetries: weigh rows",
        "by `weight` to stand for all states, by `weight * images` for all boards. Values are as",
        "stored.",
        "",
        "| column | meaning |",
        "|---|---|",
    ]
    lines += [f"| {name} | {meaning} |" for name, meaning in COLUMNS.items()]
    return "\n".join(lines) + "\n"
