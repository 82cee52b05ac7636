"""Search trees over sorted keys: every level reads two neighbouring cache lines, compared at once.

A tree is an array of nodes of 16 keys, level after level from the root down. The leaves are the
keys themselves, padded with 2^64 - 1; the keys of every level above are the first keys of the nodes
below. Binary search would touch a cache line per step: log2(n) of them where this touches
log16(n).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .bits import ALL_ONES, EIGHT, FOUR, KEYS, ONE, TWO, ZERO, keys_at_most, prefetch
from .jit import inlined, kernel


class SearchTree(NamedTuple):
    """A tree over rising keys.

    keys : uint64[...], all nodes
    levels : uint64[levels + 1], where each level begins, the root first, then the end
    """

    keys: NDArray[np.uint64]
    levels: NDArray[np.uint64]


def build_tree(keys: NDArray[np.uint64]) -> SearchTree:
    """The tree over rising keys, at least one node large. Time O(keys)."""
    levels = []
    while True:
        padded = np.full(max(-(-len(keys) // KEYS), 1) * KEYS, ALL_ONES, dtype=np.uint64)
        padded[: len(keys)] = keys
        levels.append(padded)
        if len(padded) == KEYS:
            break
        keys = padded[::KEYS]
    levels.reverse()
    starts = np.cumsum([0, *map(len, levels)], dtype=np.uint64)
    return SearchTree(np.concatenate(levels), starts)


@inlined
def descend(tree, level, node, value):
    """From a node of a level to its last key at most `value`, a node of the next level.

    If all its keys are larger, to its first key. Asks for the cache lines of the next level.
    """
    start = tree.levels[level]
    # Padding keys are 2^64 - 1, which a value may be too, and have no node below them.
    at = min(node << FOUR, tree.levels[level + ONE] - start - np.uint64(KEYS))
    below = keys_at_most(tree.keys, start + at, value)
    at += below - np.uint64(below != ZERO)
    if level + TWO < np.uint64(len(tree.levels)):
        prefetch(tree.keys, tree.levels[level + ONE] + (at << FOUR))
        prefetch(tree.keys, tree.levels[level + ONE] + (at << FOUR) + EIGHT)
    return at


@kernel
def find_into(tree, num_keys, values, found):
    """For every value the last key at most it, the first key if all are larger."""
    for i in range(np.uint64(len(values))):
        node = ZERO
        for level in range(np.uint64(len(tree.levels) - 1)):
            node = descend(tree, level, node, values[i])
        found[i] = min(node, num_keys - ONE)
