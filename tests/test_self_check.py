"""A wrong bit of a set or a value stops a solve before it is stored, and loses nothing."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import pytest
from conftest import solution_bytes

from solver2048 import (
    SolveOptions,
    descent,
    self_check,
    solve,
)  # fmt: skip
from solver2048 import forward_pass as forward_module
from solver2048.errors import SelfCheckFailed
from solver2048.store import Store
from solver2048.verify import verify


def flipped(bitmap: np.ndarray, slot: int) -> np.ndarray:
    bitmap = bitmap.copy()
    bitmap[slot >> 6] ^= np.uint64(1) << np.uint64(slot & 63)
    return bitmap


@pytest.mark.parametrize("fault", ["state lost", "afterstate lost", "state too many"])
@pytest.mark.parametrize("number", [0, 3])
def test_a_wrong_bit_of_a_set_is_caught(fault, number, tmp_path, monkeypatch):
    enumerate_layer = forward_module.enumerate_layer
    name = f"{fault.split()[0]}s"

    def wrong(shape, age, window, workers):
        layer = enumerate_layer(shape, age, window, workers)
        if age != 20:
            return layer
        bitmap = getattr(layer, name)
        taken = np.unpackbits(bitmap.view(np.uint8), bitorder="little")
        is_lost = fault.endswith("lost")
        slots = np.flatnonzero(taken[: int(layer.index.num_slots)] == is_lost)
        harmed = flipped(bitmap, int(slots[number]))
        return dataclasses.replace(layer, **{name: harmed})

    assert_caught(tmp_path, monkeypatch, forward_module, "enumerate_layer", wrong)


@pytest.mark.parametrize("part", ["states", "afterstates"])
@pytest.mark.parametrize("objective", ["score", "tile:16"])
def test_a_wrong_bit_of_a_value_is_caught(part, objective, tmp_path, monkeypatch):
    value_layer = descent.value_layer

    def wrong(problem, age, *arguments):
        layer, values = value_layer(problem, age, *arguments)
        if age == 20:
            harmed = layer.values if part == "states" else values
            harmed.view(np.uint64)[len(harmed) // 2] ^= np.uint64(1 << 30)
        return layer, values

    assert_caught(tmp_path, monkeypatch, descent, "value_layer", wrong, objective)


def assert_caught(tmp_path, monkeypatch, module, name, wrong, objective="score") -> None:
    """The solve stops before the layer is stored, and loses nothing."""
    options = functools.partial(SolveOptions, objective=objective)
    with monkeypatch.context() as patch:
        patch.setattr(module, name, wrong)
        # Every board is in the sample.
        patch.setattr(self_check, "FORWARD_CHECK_NS", 1e-3)
        patch.setattr(self_check, "BACKWARD_CHECK_NS", 1e-3)
        with pytest.raises(SelfCheckFailed, match=r"age 20, board .* tries again"):
            solve("2x2", tmp_path / "s", options())
    assert verify(Store(tmp_path / "s"), level="full").problems == []
    solve("2x2", tmp_path / "s", options(check=1.0))
    solve("2x2", tmp_path / "plain", options(check=0.0))
    assert solution_bytes(tmp_path / "s") == solution_bytes(tmp_path / "plain")
