"""The exact value of a policy: its expected score, or probability, from every start board."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elias_fano.ranked import rank_bitmap

from .backward import Problem, StateValues, afterstate_sums, start_values
from .backward_pass import start_record
from .board import unpack_boards
from .errors import UsageError
from .forward import AfterstateLayer, enumerate_layer, slide
from .kernels.policy import NO_ACTION, policy_values_into
from .layer_index import LayerIndex
from .objective import parse_objective
from .options import DEFAULT_SPAWN4
from .policy_bands import map_members
from .progress import Progress
from .shape import Shape, parse_shape
from .tables import build_tables
from .workers import Workers

PackedPolicy = Callable[[int, NDArray[np.uint64]], NDArray[np.uint8]]
"""Age and packed boards of it to actions of the packed boards, `NO_ACTION` where there is none."""

BoardPolicy = Callable[[NDArray[np.int64]], NDArray[Any]]
"""Tile numbers [n, rows, columns] to numbers of actions in the order of `ACTIONS`; any where the
game is over."""

MAX_SLOTS = 1 << 32
"""Layers are all in memory, a quarter of a byte a slot."""


def evaluate_policy(
    shape: Shape | str,
    policy: BoardPolicy,
    *,
    objective: str = "score",
    spawn4: float = DEFAULT_SPAWN4,
    threads: int | None = None,
    show_progress: bool = False,
) -> dict[str, Any]:
    """The exact expected outcome of a policy from every start: small boards, in memory.

    The policy is asked about one board of every class under the two flips, and its actions are
    taken to follow the flips: of one that does not, such as "the first legal action", the value is
    that of what it does on those boards.

    Returns `start_boards`, by board as text, `start_classes` and `random_start`, as result.json of
    a solution has them; NaN where the policy comes to a state for which its action is illegal.
    Time is that of a solve, and of `policy` for every state.

    >>> result = evaluate_policy("2x2", lambda boards: np.zeros(len(boards), dtype=int))
    >>> bool(np.isnan(result["random_start"]))  # up is not always legal
    True
    """
    shape = parse_shape(shape) if isinstance(shape, str) else shape
    order = np.array(shape.packed_actions, dtype=np.uint8)

    def packed(age: int, codes: NDArray[np.uint64]) -> NDArray[np.uint8]:
        numbers = np.asarray(policy(unpack_boards(codes, shape)))
        is_action = (numbers >= 0) & (numbers < 4)
        return np.where(is_action, order[np.where(is_action, numbers, 0)], NO_ACTION)

    problem = Problem(shape, parse_objective(objective, shape), spawn4)
    with Workers(threads) as workers:
        return evaluate_packed(problem, packed, workers, show_progress=show_progress)


def evaluate_packed(
    problem: Problem, policy: PackedPolicy, workers: Workers, *, show_progress: bool = False
) -> dict[str, Any]:
    """`evaluate_policy` for a policy of packed boards."""
    layers = _enumerate(problem.shape, workers)
    window: dict[int, StateValues] = {}
    starts: dict[int, float] = {}
    total = sum(len(states) for _, states, _ in layers.values())
    with Progress(f"{problem.shape.name} value", total, enabled=show_progress) as progress:
        for age in sorted(layers, reverse=True):
            index, states, afterstates = layers.pop(age)
            window[age] = _value_layer(
                problem, index, rank_bitmap(states), rank_bitmap(afterstates), window, policy,
                workers,
            )  # fmt: skip
            window.pop(age + 4, None)
            starts |= start_values(problem, window[age])
            progress.advance(age, len(states), len(window[age].values))
    return start_record(problem, starts)


def _enumerate(
    shape: Shape, workers: Workers
) -> dict[int, tuple[LayerIndex, NDArray[np.uint64], NDArray[np.uint64]]]:
    """Index and bitmaps of states and afterstates of every age."""
    layers = {}
    window: dict[int, AfterstateLayer] = {}
    num_slots = 0
    for age in range(4, shape.top_age + 1, 2):
        layer = enumerate_layer(shape, age, window, workers)
        num_slots += int(layer.index.num_slots)
        if num_slots > MAX_SLOTS:
            raise UsageError(f"{shape.name} is too large to evaluate a policy exactly in memory")
        slide(window, AfterstateLayer(layer.index, layer.afterstates))
        layers[age] = (layer.index, layer.states, layer.afterstates)
    return layers


def _value_layer(
    problem: Problem,
    index: LayerIndex,
    states: NDArray[np.uint64],
    afterstates: NDArray[np.uint64],
    window: dict[int, StateValues],
    policy: PackedPolicy,
    workers: Workers,
) -> StateValues:
    """Values of a layer's states under a policy; bitmaps are ranked."""
    shape, objective = problem.shape, problem.objective
    tables, floors = build_tables(shape), objective.floors(shape)
    values = afterstate_sums(problem, index, afterstates, window, workers)
    out = np.empty(int(states[-1]))

    def value(codes: NDArray[np.uint64], place: slice) -> None:
        policy_values_into(
            tables, index, floors, objective.floor_cap, afterstates, values, codes,
            policy(int(index.age), codes), out[place],
        )  # fmt: skip

    map_members(shape, index, states, workers, value)
    return StateValues(index, states, out)
