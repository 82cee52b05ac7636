"""A few seconds of real work in memory, from which the rates of this machine follow.

Layers of the lowest ages are enumerated as in the forward pass, some of them valued as in the
backward pass (from random values: their time does not depend on them), and sets and values written
as a band is. An empty layer gives the cost of a slot. What is left is the members': states and
afterstates in the proportion of `rates.FORWARD` and `rates.BACKWARD`, since their numbers rise
together.
"""

from __future__ import annotations

import contextlib
import dataclasses
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from elias_fano import PartitionedEliasFano
from elias_fano.bits import empty_bitmap
from elias_fano.ranked import rank_bitmap

from .backward import Problem, StateValues, value_layer
from .bands import slots_per_age
from .errors import NoSpace
from .files import seal
from .forward import AfterstateLayer, Layer, enumerate_layer, slide
from .ids import make_ids
from .objective import parse_objective
from .rates import BACKWARD, FORWARD, SPARSE_FACTOR, Cost, PassRates, Rates
from .shape import Shape
from .stored_array import ArrayToWrite
from .value_format import parse_value_format
from .workers import Workers, available_threads
from .zarr_arrays import write_group

FORWARD_SECONDS = 5.0
MAX_AGE = 200
SMALL_SLOTS = 1 << 14
"""Layers of fewer slots are all overhead."""
KEPT_LAYERS = 5
LARGE_FACTOR = 1.25
"""What boards cost more in the backward pass in layers several times as large, whose values fit no
cache: measured on 4x3 at ages 574-596 against ages up to 200."""
CHECKPOINT_BYTES = 64 << 20


class Clock:
    """Seconds spent on a kind of work, on the wall and of processors, and the boards in it."""

    def __init__(self) -> None:
        self.wall = self.cpu = 0.0
        self.slots = self.states = self.afterstates = 0

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        wall, cpu = time.perf_counter(), time.process_time()
        yield
        self.wall += time.perf_counter() - wall
        self.cpu += time.process_time() - cpu

    def count(self, *layers: Layer) -> None:
        for layer in layers:
            self.slots += layer.counts.num_slots
            self.states += layer.counts.state_members
            self.afterstates += layer.counts.afterstate_members

    def per(self, number: float) -> float:
        """Processor seconds per one of a number of things."""
        return self.cpu / number if number else 0.0

    def cost(self, known: Cost, layers: int, slot: float, layer: float) -> Cost:
        """The cost of members, in their known proportion, besides that of slots and layers."""
        slot = min(slot, 0.5 * self.per(self.slots))
        rest = self.cpu - slot * self.slots - layer * layers
        expected = known.state * self.states + known.afterstate * self.afterstates
        scale = max(rest, 0.1 * self.cpu) / expected if expected else 1.0
        return Cost(slot, scale * known.state, scale * known.afterstate, layer)


def calibrate(shape: Shape, threads: int | None, ids: str, values: str, place: Path) -> Rates:
    """The rates of this machine; a few files are written below `place`, and removed again.

    Takes about ten seconds on 4x3, less on smaller boards. Raises NoSpace.
    """
    bench = _Bench(shape, ids, values)
    with Workers(threads) as workers:
        bench.run_forward(workers, min(shape.top_age, 40))
        bench.run_backward(workers)
        bench.reset()  # what was compiled or loaded is no part of the cost
        bench.run_forward(workers, min(shape.top_age, MAX_AGE))
        bench.run_backward(workers)
    try:
        with tempfile.TemporaryDirectory(dir=place) as scratch:
            bench.write(Path(scratch))
    except OSError as error:
        raise NoSpace(f"no calibration at {place}: {error.strerror or error}") from error
    return bench.rates(workers.num_threads)


class _Bench:
    """The work, and its clocks."""

    def __init__(self, shape: Shape, ids: str, values: str) -> None:
        objective = parse_objective("score", shape)
        self._shape = shape
        self._ids = make_ids(ids, shape)
        self._format = parse_value_format(values, objective.max_value(shape))
        self._problem = Problem(shape, objective, 0.1)
        self.reset()

    def reset(self) -> None:
        names = ("enumerate", "encode", "enumerate_empty", "small", "decode", "value",
                 "value_empty", "cast", "write_sets", "write_values", "write_band",
                 "write_checkpoint")  # fmt: skip
        self._clocks = {name: Clock() for name in names}
        self._num_layers = {"enumerate": 0, "small": 0, "value": 0}
        self._layers: dict[int, Layer] = {}
        self._items = np.empty(0, dtype=self._format.dtype)

    def run_forward(self, workers: Workers, max_age: int) -> None:
        """Enumerate layers, upward until the time is up, and one without a board."""
        window: dict[int, AfterstateLayer] = {}
        started = time.perf_counter()
        for age in range(4, max_age + 1, 2):
            index_slots = window[age - 2].index.num_slots if window else 0
            name = "small" if index_slots < SMALL_SLOTS else "enumerate"
            with self._clocks[name].running():
                layer = enumerate_layer(self._shape, age, window, workers)
            self._num_layers[name] += 1
            self._clocks[name].count(layer)
            with self._clocks["encode"].running():
                for bitmap in (layer.states, layer.afterstates):
                    self._ids.encode(layer.index, bitmap)
            self._clocks["encode"].count(layer)
            slide(window, AfterstateLayer(layer.index, layer.afterstates))
            self._layers[age] = layer
            self._layers.pop(age - 2 * KEPT_LAYERS, None)
            is_late = time.perf_counter() - started > FORWARD_SECONDS
            if is_late and len(self._layers) == KEPT_LAYERS:
                break
        empty = {x: AfterstateLayer(self._layers[x].index, np.zeros_like(self._layers[x].states))
                 for x in (age - 2, age - 4)}  # fmt: skip
        with self._clocks["enumerate_empty"].running():
            enumerate_layer(self._shape, age, empty, workers)
        self._clocks["enumerate_empty"].count(layer)

    def run_backward(self, workers: Workers) -> None:
        """Value all layers kept but the two highest, whose values are random."""
        *lower, second, top = self._layers.values()
        random = np.random.default_rng(1)
        window = {
            int(layer.index.age): StateValues(
                layer.index, rank_bitmap(layer.states), random.random(layer.counts.state_members)
            )
            for layer in (top, second)
        }
        for layer in reversed(lower):
            age = int(layer.index.age)
            window[age] = self._value(layer, window, workers)
            window.pop(age + 4)
        nothing = rank_bitmap(empty_bitmap(int(lower[0].index.num_slots)))
        with self._clocks["value_empty"].running():
            value_layer(self._problem, int(lower[0].index.age), nothing, nothing, window, workers)
        self._clocks["value_empty"].count(lower[0])

    def _value(self, layer: Layer, window: dict[int, StateValues], workers: Workers) -> StateValues:
        age = int(layer.index.age)
        sets = [self._ids.encode(layer.index, bitmap)
                for bitmap in (layer.states, layer.afterstates)]  # fmt: skip
        stored = [PartitionedEliasFano(words) for words in sets]
        with self._clocks["decode"].running():
            ranks = [rank_bitmap(self._ids.bitmap(age, of_layer)) for of_layer in stored]
        with self._clocks["value"].running():
            valued, values = value_layer(self._problem, age, ranks[0], ranks[1], window, workers)
        with self._clocks["cast"].running():
            self._items = np.empty(len(values), dtype=self._format.dtype)
            for part, positions in self._ids.index_order(age, stored[1], ranks[1]):
                self._items[part] = self._format.encode(np.abs(values[positions]))
        for name in ("decode", "value", "cast"):
            self._clocks[name].count(layer)
        self._num_layers["value"] += 1
        return valued

    def write(self, scratch: Path) -> None:
        """Write the sets of the layers kept, and the values of one, as bands are written."""
        layers = list(self._layers.values())
        words = {
            name: np.concatenate([self._ids.encode(x.index, getattr(x, name)) for x in layers])
            for name in ("states", "afterstates")
        }
        sets = {name: ArrayToWrite("words", items) for name, items in words.items()}
        values = ArrayToWrite("values", self._items, self._format.missing)
        small = ArrayToWrite("words", words["states"][:1])
        self._write(scratch / "warm", {"states": small})
        tasks = {
            "write_band": {"states": small, "afterstates": small},
            "write_sets": sets,
            "write_values": {"values": values},
        }
        for name, arrays in tasks.items():
            with self._clocks[name].running():
                self._write(scratch / name, arrays)
        self._clocks["write_sets"].count(*layers)
        self._clocks["write_values"].count(layers[0])
        (scratch / "checkpoint").mkdir()
        with self._clocks["write_checkpoint"].running():
            np.save(scratch / "checkpoint/values.npy", np.ones(CHECKPOINT_BYTES // 8))
            seal(scratch / "checkpoint")

    @staticmethod
    def _write(directory: Path, arrays: dict[str, ArrayToWrite]) -> None:
        write_group(directory, arrays)
        seal(directory)

    def rates(self, threads: int) -> Rates:
        """What follows from the clocks."""
        clocks, layers = self._clocks, self._num_layers
        layer = clocks["small"].per(layers["small"])
        slot = {name: SPARSE_FACTOR * clocks[name].per(clocks[name].slots)
                for name in ("enumerate_empty", "value_empty")}  # fmt: skip
        forward = PassRates(
            clocks["enumerate"].cost(FORWARD.kernels, layers["enumerate"],
                                     slot["enumerate_empty"], layer),
            Cost(slot=clocks["encode"].per(clocks["encode"].slots)),
            self._writing("write_sets", FORWARD.writing),
        )  # fmt: skip
        backward = PassRates(
            clocks["value"].cost(BACKWARD.kernels, layers["value"], slot["value_empty"], layer),
            dataclasses.replace(
                BACKWARD.serial,
                slot=clocks["decode"].per(clocks["decode"].slots),
                afterstate=clocks["cast"].per(clocks["cast"].afterstates),
            ),
            self._writing("write_values", BACKWARD.writing),
        )
        largest = max(x.counts.num_slots for x in self._layers.values())
        if slots_per_age(self._shape).max() > 2 * largest:
            backward = dataclasses.replace(backward, kernels=backward.kernels.times(LARGE_FACTOR))
        cores = max(_share(clocks, "enumerate", "value"), 0.05)
        thread = min(max(_share(clocks, "encode", "decode", "cast"), 0.05), 1.0)
        # Writing, besides, gets a processor of its own only where one is left.
        is_all = threads >= available_threads()
        return Rates(
            forward=forward,
            backward=backward,
            cores=cores,
            thread=thread,
            capacity=cores if is_all else max(cores, thread * (threads + 1)),
            writer=_share(clocks, "write_sets", "write_values"),
            band=clocks["write_band"].cpu,
            checkpoint_byte=clocks["write_checkpoint"].wall / CHECKPOINT_BYTES,
            source=_source(threads, cores),
        )

    def _writing(self, name: str, known: Cost) -> Cost:
        """The cost of writing members, less that of the files."""
        clock = self._clocks[name]
        expected = known.state * clock.states + known.afterstate * clock.afterstates
        scale = max(clock.cpu - self._clocks["write_band"].cpu, 0.0) / expected
        return Cost(0.0, scale * known.state, scale * known.afterstate)


def _source(threads: int, cores: float) -> str:
    """Where the rates come from, in words."""
    asked = min(threads, available_threads())
    busy = "; the machine is busy with other work" if cores < 0.75 * asked else ""
    return f"calibrated here: {cores:.2f} processors for threads on {asked}{busy}"


def _share(clocks: dict[str, Clock], *names: str) -> float:
    """Processors in use on average in some kinds of work."""
    wall = sum(clocks[name].wall for name in names)
    return sum(clocks[name].cpu for name in names) / wall if wall else 1.0
