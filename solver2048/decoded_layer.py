"""A layer in memory as kernels look boards up in it: bitmaps and values in index order."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elias_fano import DamagedSet
from elias_fano.ranked import rank_bitmap

from .bands import slots_per_age
from .errors import SolutionDamaged
from .layer_index import LayerIndex, build_layer_index
from .layer_sets import LayerSets
from .layer_values import Values

SLOT_BYTES = 3 / 8
"""What a slot takes: a bit for a state, one for an afterstate, and as much again for its rank."""


class DecodedLayer(NamedTuple):
    """The states of one age, and its afterstates with their values.

    layer_index : the age's, without its blocks
    states : bitmap; afterstates : ranked bitmap
    values : stored values of the afterstates, in index order
    """

    layer_index: LayerIndex
    states: NDArray[np.uint64]
    afterstates: NDArray[np.uint64]
    values: NDArray[Any]


def layer_bytes(layer: DecodedLayer) -> int:
    """Bytes that a layer takes in memory."""
    arrays = (layer.layer_index.bases, layer.states, layer.afterstates, layer.values)
    return sum(array.nbytes for array in arrays)


def forecast_bytes(sets: LayerSets, stored: Values, age: int) -> int:
    """About what `layer_bytes` will be."""
    num_slots = int(slots_per_age(sets.shape)[age // 2])
    num_values = sets.layer_counts(age).afterstate_members
    return int(SLOT_BYTES * num_slots) + num_values * stored.format.dtype.itemsize


def decode_layer(sets: LayerSets, stored: Values, age: int) -> DecodedLayer:
    """The layer of an age, read whole. Raises NotSolved, SolutionDamaged."""
    index = build_layer_index(sets.shape, age)
    states = decode_states(sets, age)
    afterstates, values = decode_values(sets, stored, age)
    # Looking boards up takes no blocks, and 3x3 has a thousand layers.
    index = index._replace(
        block_class0=index.block_class0[:0].copy(),
        block_class1=index.block_class1[:0].copy(),
        block_base=index.block_base[:0].copy(),
    )
    return DecodedLayer(index, states, afterstates, values)


def decode_states(sets: LayerSets, age: int) -> NDArray[np.uint64]:
    """The bitmap of the states of an age. Raises SolutionDamaged."""
    return _bitmap(sets, age, "states")


def decode_values(
    sets: LayerSets, stored: Values, age: int
) -> tuple[NDArray[np.uint64], NDArray[Any]]:
    """The ranked bitmap of the afterstates of an age, and their stored values in index order."""
    items = stored.read(age)
    ranks = rank_bitmap(_bitmap(sets, age, "afterstates"))
    values = np.empty_like(items)
    for part, positions in sets.ids.index_order(age, sets.open(age, "afterstates"), ranks):
        values[positions] = items[part]
    return ranks, values


def _bitmap(sets: LayerSets, age: int, name: str) -> NDArray[np.uint64]:
    try:
        return sets.ids.bitmap(age, sets.open(age, name))
    except DamagedSet as error:
        raise SolutionDamaged(f"age {age}, {name}: {error}") from None
