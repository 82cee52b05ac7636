"""The exact value of a policy: its expected score, or probability, from every start board.

Of a policy that follows the flips of a board, as a table's does, one value a state is enough, and
the backward pass computes the rest. Any other may do one thing on a board and another on its
image: values are then those of all four images of every state, see `kernels.policy_values`.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elias_fano.ranked import rank_bitmap

from .backward import Problem, StateValues, afterstate_sums, start_values
from .backward_pass import start_record
from .board import unpack_boards
from .errors import UsageError
from .forward import SPAWN_EXPONENTS, AfterstateLayer, enumerate_layer, slide
from .kernels.policy import NO_ACTION
from .kernels.policy_values import (
    NUM_IMAGES,
    add_spawn_images,
    image_numbers_into,
    images_into,
    policy_values_into,
)
from .layer_index import LayerIndex
from .objective import parse_objective
from .options import DEFAULT_SPAWN4
from .policy_bands import map_members
from .progress import Progress
from .shape import ACTIONS, Shape, parse_shape
from .tables import build_tables
from .workers import Workers

PackedPolicy = Callable[[int, NDArray[np.uint64]], NDArray[np.uint8]]
"""Age and packed boards of it to actions of the packed boards, `NO_ACTION` where there is none."""

BoardPolicy = Callable[[NDArray[np.int64]], NDArray[Any]]
"""Tile numbers [n, rows, columns] to n integers, the numbers of actions in the order of `ACTIONS`;
any where the game is over. A board has one action, whenever and beside whatever it is asked."""

IMAGE_ACTIONS = np.array([[0, 1, 2, 3], [1, 0, 2, 3], [0, 1, 3, 2], [1, 0, 3, 2]], dtype=np.uint8)
"""By image and packed action, the action of the canonical board that leads to that image of it."""

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

    policy : is asked about every reachable board as it lies, from `threads` threads at a time
    Returns `start_boards`, by board as text, `start_classes` and `random_start`, as result.json of
    a solution has them; NaN where the policy comes to a state for which its action is illegal.
    Time is some microseconds a state, and that of `policy` for four boards a state. Raises
    UsageError where `policy` gives anything but n integers, or the board is too large.

    >>> result = evaluate_policy("2x2", lambda boards: np.zeros(len(boards), dtype=int))
    >>> bool(np.isnan(result["random_start"]))  # up is not always legal
    True
    """
    shape = parse_shape(shape) if isinstance(shape, str) else shape
    problem = Problem(shape, parse_objective(objective, shape), spawn4)
    with Workers(threads) as workers:
        evaluation = _OfImages(problem, policy, workers)
        return _evaluate(problem, evaluation, workers, show_progress)


def evaluate_packed(
    problem: Problem, policy: PackedPolicy, workers: Workers, *, show_progress: bool = False
) -> dict[str, Any]:
    """`evaluate_policy` for a policy of packed boards that follows the flips."""
    return _evaluate(problem, _OfClasses(problem, policy, workers), workers, show_progress)


def _evaluate(
    problem: Problem, evaluation: _Evaluation, workers: Workers, show_progress: bool
) -> dict[str, Any]:
    """The values of all layers downward, and what they are for the start boards."""
    layers = _enumerate(problem.shape, workers)
    window: dict[int, StateValues] = {}
    starts: dict[int, float] = {}
    total = sum(len(states) for _, states, _ in layers.values())
    with Progress(f"{problem.shape.name} value", total, enabled=show_progress) as progress:
        for age in sorted(layers, reverse=True):
            index, *bitmaps = layers.pop(age)
            states, afterstates = map(rank_bitmap, bitmaps)
            window[age] = evaluation.value_layer(index, states, afterstates, window)
            window.pop(age + 4, None)
            starts |= evaluation.start_values(window[age])
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


class _Evaluation(ABC):
    """How the layers of a policy are valued, by those of the two ages above."""

    def __init__(self, problem: Problem, workers: Workers) -> None:
        self.problem, self.workers = problem, workers
        self.shape, self.tables = problem.shape, build_tables(problem.shape)

    def value_layer(
        self,
        index: LayerIndex,
        states: NDArray[np.uint64],
        afterstates: NDArray[np.uint64],
        window: dict[int, StateValues],
    ) -> StateValues:
        """``w`` of a layer's states, float64[n, images]; bitmaps are ranked."""
        objective = self.problem.objective
        floors = objective.floors(self.shape)
        values = self.afterstate_values(index, afterstates, window)
        out = np.empty((int(states[-1]), values.shape[1]))

        def value(codes: NDArray[np.uint64], place: slice) -> None:
            policy_values_into(
                self.tables, index, floors, objective.floor_cap, afterstates, values, codes,
                self.actions(int(index.age), codes), out[place],
            )  # fmt: skip

        map_members(self.shape, index, states, self.workers, value)
        return StateValues(index, states, out)

    @abstractmethod
    def afterstate_values(
        self, index: LayerIndex, afterstates: NDArray[np.uint64], window: dict[int, StateValues]
    ) -> NDArray[np.float64]:
        """``w`` of a layer's afterstates, float64[n, images]."""

    @abstractmethod
    def actions(self, age: int, codes: NDArray[np.uint64]) -> NDArray[np.uint8]:
        """What is done on the images of canonical boards, as actions of these: uint8[n, images]."""

    def start_values(self, layer: StateValues) -> dict[int, float]:
        """Value of every start board of a layer's age, by its code."""
        num_images = layer.values.shape[1]
        by_image = [start_values(self.problem, _of_image(layer, i)) for i in range(num_images)]
        codes = np.array(sorted(by_image[0]), dtype=np.uint64)
        numbers = np.empty(len(codes), dtype=np.uint64)
        image_numbers_into(self.tables, layer.index, codes, numbers)
        return {
            code: by_image[number % num_images][code]
            for code, number in zip(codes.tolist(), numbers.tolist(), strict=True)
        }


def _of_image(layer: StateValues, number: int) -> StateValues:
    """The values of one image alone, float64[n]."""
    return dataclasses.replace(layer, values=np.ascontiguousarray(layer.values[:, number]))


class _OfClasses(_Evaluation):
    """One value for all images, by the kernels of the backward pass."""

    def __init__(self, problem: Problem, policy: PackedPolicy, workers: Workers) -> None:
        super().__init__(problem, workers)
        self._policy = policy

    def afterstate_values(
        self, index: LayerIndex, afterstates: NDArray[np.uint64], window: dict[int, StateValues]
    ) -> NDArray[np.float64]:
        flat = {age: _of_image(layer, 0) for age, layer in window.items()}
        return afterstate_sums(self.problem, index, afterstates, flat, self.workers)[:, None]

    def actions(self, age: int, codes: NDArray[np.uint64]) -> NDArray[np.uint8]:
        return self._policy(age, codes)[:, None]


class _OfImages(_Evaluation):
    """A value for each image of a board."""

    def __init__(self, problem: Problem, policy: BoardPolicy, workers: Workers) -> None:
        super().__init__(problem, workers)
        self._policy = policy
        self._order = np.array([*self.shape.packed_actions, NO_ACTION], dtype=np.uint8)

    def afterstate_values(
        self, index: LayerIndex, afterstates: NDArray[np.uint64], window: dict[int, StateValues]
    ) -> NDArray[np.float64]:
        problem = self.problem
        gain = problem.objective.spawn_gain(problem.spawn4)
        values = np.full((int(afterstates[-1]), NUM_IMAGES), -gain)

        def average(codes: NDArray[np.uint64], place: slice) -> None:
            for exponent in SPAWN_EXPONENTS:
                layer = window[int(index.age) + 2**exponent]
                add_spawn_images(
                    self.tables, layer.index, np.uint64(exponent),
                    problem.spawn_probability(exponent), layer.states, layer.values, codes,
                    values[place],
                )  # fmt: skip

        map_members(self.shape, index, afterstates, self.workers, average)
        return values

    def actions(self, age: int, codes: NDArray[np.uint64]) -> NDArray[np.uint8]:
        images = np.empty((len(codes), NUM_IMAGES), dtype=np.uint64)
        images_into(self.tables, codes, images)
        numbers = np.asarray(self._policy(unpack_boards(images.reshape(-1), self.shape)))
        if numbers.shape != (images.size,) or not np.issubdtype(numbers.dtype, np.integer):
            raise UsageError(
                f"the policy gave {numbers.dtype}{list(numbers.shape)} for {images.size} boards: "
                f"as many integers are needed, the numbers of actions in {ACTIONS}"
            )
        is_action = (numbers >= 0) & (numbers < 4)
        of_images = self._order[np.where(is_action, numbers, 4)].reshape(images.shape)
        turned = np.take_along_axis(IMAGE_ACTIONS.T, (of_images & 3).astype(np.intp), axis=0)
        return np.where(of_images < NO_ACTION, turned, NO_ACTION)
