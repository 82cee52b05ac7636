"""Games that are played by a policy, as probabilities carried from age to age.

The games that have a board are a row of float64: by the number of 4s spawned so far their
probability, or all of it in one column. Rows lie in index order, at the rank of their board. All
kernels add to the columns ``[start, stop)`` alone: each entry has one writer, and its sums one
order.
"""

from __future__ import annotations

import numpy as np

from elias_fano.bits import ONE, popcount, trailing_zeros
from elias_fano.jit import kernel
from elias_fano.ranked import rank_at

from .actions import ILLEGAL
from .moves import moved_board
from .slots import canonical_code_slot
from .spawns import empty_code_cells, spawned_board


@kernel
def move_slots_into(tables, index, codes, actions, slots):
    """Fill `slots` with the canonical index of every board after an action.

    codes : uint64[n], packed boards of the index's age
    actions : uint8[n]: up, down, left, right of the packed board
    slots : uint64[n]; `ILLEGAL` where the action changes nothing
    """
    for i in range(len(codes)):
        code = codes[i]
        moved = moved_board(tables, code, actions[i])
        slots[i] = ILLEGAL
        if moved != code:
            slots[i] = canonical_code_slot(tables, index, moved)


@kernel
def add_moves(afterstates, slots, state_games, afterstate_games, start, stop):
    """Add the games of every state to those of the afterstate that its action leads to.

    afterstates : ranked bitmap of the layer
    slots : uint64[number of states], of `move_slots_into`; games that are over are left out
    state_games, afterstate_games : float64[boards, columns]
    """
    for i in range(len(slots)):
        if slots[i] != ILLEGAL:
            row = rank_at(afterstates, slots[i])
            for column in range(start, stop):
                afterstate_games[row, column] += state_games[i, column]


@kernel
def add_spawns(
    tables, target, exponent, probability, shift, codes, afterstate_games, states, state_games,
    start, stop,
):  # fmt: skip
    """Add the games of afterstates to those of the states after a spawn of one tile.

    target, exponent : index of the age that the tile leads to; 1 or 2, for a 2 or a 4
    probability : of the tile; all empty cells are alike
    shift : by how many columns the games move on
    codes : uint64[number of afterstates], packed boards
    states : ranked bitmap of the target layer
    afterstate_games, state_games : float64[boards, columns]
    """
    for i in range(len(codes)):
        code = codes[i]
        cells = empty_code_cells(tables, code)
        weight = probability / np.float64(popcount(cells))
        while cells:
            spawned = spawned_board(code, trailing_zeros(cells), exponent)
            cells &= cells - ONE
            row = rank_at(states, canonical_code_slot(tables, target, spawned))
            for column in range(start, stop):
                state_games[row, column + shift] += weight * afterstate_games[i, column]


@kernel
def add_scores(quarters, games, scores):
    """Add games that are over to `scores`: float64, by a quarter of the score.

    quarters : uint64[boards], a quarter of the potential: each 4 spawned takes 4 from it
    games : float64[boards, columns], by the number of 4s spawned
    """
    for i in range(len(quarters)):
        # No board has more 4s than its potential has quarters.
        for column in range(min(np.uint64(games.shape[1]), quarters[i] + ONE)):
            scores[quarters[i] - column] += games[i, column]
