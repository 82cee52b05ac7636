"""All four actions of boards, where `values.best_moves` finds the best one alone."""

from __future__ import annotations

import numpy as np

from elias_fano.bits import ALL_ONES, ONE, SIX, TWO, prefetch
from elias_fano.jit import kernel
from elias_fano.ranked import rank_at

from .moves import horizontal_move, vertical_move
from .slots import ROW0_SHIFT, ROW1_SHIFT, ROW_MASK, canonical_code_slot

ILLEGAL = ALL_ONES
"""In place of the slot of a move that changes nothing."""


@kernel
def action_values_into(tables, index, afterstates, values, codes, slots, action_values):
    """The stored values of the afterstates that four moves lead to, NaN where a move is illegal.

    Actions are up, down, left, right of the packed board, as in `moves_into`. In three loops, so
    that cache misses overlap: some hundred to some thousand boards a call are best.

    afterstates : ranked bitmap of the layer
    values : float64[number of afterstates], in index order
    codes : uint64[n], packed states of the layer
    slots : uint64[n, 4], filled with the canonical index of the afterstates, or `ILLEGAL`
    action_values : float64[n, 4]
    """
    for i in range(len(codes)):
        code = codes[i]
        row0 = code >> ROW0_SHIFT
        row1 = code >> ROW1_SHIFT & ROW_MASK
        row2 = code & ROW_MASK
        for direction in range(TWO):
            moved = vertical_move(tables, row0, row1, row2, direction)
            slots[i, direction] = ILLEGAL
            if moved != code:
                slots[i, direction] = canonical_code_slot(tables, index, moved)
                prefetch(afterstates, slots[i, direction] >> SIX << ONE)
            moved = horizontal_move(tables, row0, row1, row2, direction)
            slots[i, TWO + direction] = ILLEGAL
            if moved != code:
                slots[i, TWO + direction] = canonical_code_slot(tables, index, moved)
                prefetch(afterstates, slots[i, TWO + direction] >> SIX << ONE)
    for i in range(len(codes)):
        for action in range(4):
            action_values[i, action] = np.nan
            if slots[i, action] != ILLEGAL:
                prefetch(values, rank_at(afterstates, slots[i, action]))
    for i in range(len(codes)):
        for action in range(4):
            if slots[i, action] != ILLEGAL:
                action_values[i, action] = values[rank_at(afterstates, slots[i, action])]
