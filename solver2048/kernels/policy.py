"""Actions as a policy table stores them: two bits a slot, the rank of the action among the legal
ones in the order of a *predictor*.

A predictor is a sum of weights over 13 *patterns* of an afterstate, each of at most four cells::

    score(afterstate) = sum over patterns i of weights[i, the cells of pattern i]

The patterns are the three rows, the six squares of two by two cells and the four columns of a
packed board; 16 bits hold the exponents of each. The higher score comes first, of equal ones the
action with the lower number. It is learned, and in a table its weights are int8: scores are exact.

Boards here are canonical, as their slot gives them, save where a kernel says otherwise. Actions are
up, down, left, right of the packed board.
"""

from __future__ import annotations

import numpy as np

from elias_fano.bits import (
    EIGHT,
    FOUR,
    ONE,
    SIX,
    TWO,
    ZERO,
    or_bit,
    prefetch,
    trailing_zeros,
)
from elias_fano.jit import inlined, kernel
from elias_fano.ranked import rank_at

from ..tables import MIRROR_SHIFT, RANK_MASK
from .moves import move_all, moved_board, row_ordinal
from .slots import (
    CELL_MASK,
    ROW0_SHIFT,
    ROW1_SHIFT,
    ROW_MASK,
    canonical_code_slot,
    find_block,
    slot_code,
)

NUM_ROWS = np.uint64(3)
NUM_SQUARES = np.uint64(6)
NUM_PATTERNS = 13
LAST_PATTERN = np.uint64(NUM_PATTERNS - 1)
PATTERN_BITS = np.uint64(16)
NUM_WEIGHTS = NUM_PATTERNS << 16

NO_ACTION = np.uint8(4)
"""In place of the action of a terminal board."""
NOT_STORED = np.uint8(5)
"""In place of an action that is illegal: the board is none of those the table was made for."""
NO_KEY = np.int64(-(1 << 62))

BYTE_MASK = np.uint64(255)
CODE_SHIFT = ONE
"""Two bits a slot: the shift of a slot's code in its byte is twice the slot, modulo 8."""
CODE_MASK = np.uint64(3)


@inlined
def pattern_at(code, number):
    """Where the weight of a packed board's pattern of that number lies."""
    cells = code >> ROW1_SHIFT * (TWO - number) & ROW_MASK
    if number >= NUM_ROWS + NUM_SQUARES:
        shift = FOUR * (LAST_PATTERN - number)
        cells = (
            (code >> (ROW0_SHIFT + shift) & CELL_MASK) << EIGHT
            | (code >> (ROW1_SHIFT + shift) & CELL_MASK) << FOUR
            | (code >> shift & CELL_MASK)
        )
    elif number >= NUM_ROWS:
        square = number - NUM_ROWS
        shift = FOUR * (TWO - (square >> ONE)) + ROW1_SHIFT * (ONE - (square & ONE))
        cells = (code >> (ROW1_SHIFT + shift) & BYTE_MASK) << EIGHT | (code >> shift & BYTE_MASK)
    return number << PATTERN_BITS | cells


@inlined
def action_keys(tables, weights, code, keys):
    """Fill `keys`, int64[4], with what the predictor orders the actions of a packed board by.

    The predicted one has the greatest; `NO_KEY` where an action is illegal.
    """
    for action in range(4):
        moved = moved_board(tables, code, action)
        keys[action] = NO_KEY
        if moved != code:
            score = np.int64(0)
            for number in range(NUM_PATTERNS):
                score += np.int64(weights[pattern_at(moved, np.uint64(number))])
            keys[action] = score * 4 + 3 - action


@inlined
def rank_of(keys, key):
    """How many actions come before the one of a key."""
    return (
        np.int64(keys[0] > key) + np.int64(keys[1] > key)
        + np.int64(keys[2] > key) + np.int64(keys[3] > key)
    )  # fmt: skip


@kernel
def optimal_actions_into(
    tables,
    index,
    row_potentials,
    allowance,
    afterstates,
    values,
    codes,
    moved,
    places,
    worths,
    masks,
):
    """Fill `masks`, uint8[n], with the best actions of states: bit i for action i, 0 if terminal.

    In three loops, as `actions.action_values_into`: some thousand boards a call are best.

    row_potentials : float64[2^16], by row, of the objective
    allowance : actions whose values differ by no more tie
    afterstates, values : ranked bitmap of the layer, and its values v
    codes : uint64[n]; moved, places, worths : scratch, uint64[n, 4] twice and float64[4]
    """
    for i in range(len(codes)):
        move_all(tables, codes[i], moved[i])
        for action in range(4):
            # Of an illegal move the slot is one all the same, and its value is not looked at.
            places[i, action] = canonical_code_slot(tables, index, moved[i, action])
            prefetch(afterstates, places[i, action] >> SIX << ONE)
    for i in range(len(codes)):
        for action in range(4):
            if moved[i, action] != codes[i]:
                places[i, action] = rank_at(afterstates, places[i, action])
                prefetch(values, places[i, action])
    for i in range(len(codes)):
        for action in range(4):
            board = moved[i, action]
            worths[action] = -np.inf
            if board != codes[i]:
                worths[action] = values[places[i, action]] + (
                    row_potentials[board >> ROW0_SHIFT]
                    + row_potentials[board >> ROW1_SHIFT & ROW_MASK]
                    + row_potentials[board & ROW_MASK]
                )
        best = max(max(worths[0], worths[1]), max(worths[2], worths[3]))
        mask = 0
        for action in range(4):
            mask |= (worths[action] > -np.inf and worths[action] >= best - allowance) << action
        masks[i] = mask


@kernel
def learn(tables, codes, masks, first_rate, last_rate, patterns, shares, weights):
    """Move `weights`, float64, so that one of each board's best actions scores highest.

    One step of gradient descent a board, in the order given, on minus the logarithm of the share
    of the best actions among the legal ones; the share of an action is ``(1 + d / 64)^64``, close
    to ``exp(d)``, for a score ``d`` below the highest: the same number on every machine.

    codes, masks : uint64[n], uint8[n], boards of two legal actions or more
    first_rate, last_rate : how far a step goes, falling from one to the other
    patterns, shares : scratch, uint64[4, NUM_PATTERNS] and float64[4]
    """
    for i in range(len(codes)):
        rate = first_rate + (last_rate - first_rate) * (i / len(codes))
        highest = -np.inf
        for action in range(4):
            moved = moved_board(tables, codes[i], action)
            shares[action] = -np.inf
            if moved != codes[i]:
                shares[action] = 0.0
                for j in range(NUM_PATTERNS):
                    patterns[action, j] = pattern_at(moved, np.uint64(j))
                    shares[action] += weights[patterns[action, j]]
                highest = max(highest, shares[action])
        total = 0.0
        best = 0.0
        for action in range(4):
            if shares[action] == -np.inf:
                shares[action] = 0.0
                continue
            share = 1.0 + max(shares[action] - highest, -60.0) / 64.0
            for _ in range(6):
                share *= share
            shares[action] = share
            total += share
            if masks[i] >> action & 1:
                best += share
        for action in range(4):
            if shares[action] > 0.0:
                pull = -shares[action] / total
                if masks[i] >> action & 1:
                    pull += shares[action] / best
                for j in range(NUM_PATTERNS):
                    weights[patterns[action, j]] += rate * pull


@kernel
def encode_actions(tables, index, members, masks, weights, codes, keys, start, stop):
    """Set the codes of the members among the words ``[start, stop)`` of a ranked bitmap.

    masks : uint8[number of members], each member's actions, any of which may be stored; 0 for none.
        The one stored is the first in the predictor's order.
    weights : int8[NUM_WEIGHTS]
    codes : uint8[16 a word], two bits a slot, 0 so far
    keys : int64[4], scratch
    Returns (members of which the predicted action is stored, members with a legal action).
    """
    num_predicted = ZERO
    num_with_action = ZERO
    if start >= stop:
        return num_predicted, num_with_action
    block = find_block(index, start << SIX)
    for word in range(start, stop):
        bits = members[word << ONE]
        position = members[word << ONE | ONE]
        while bits:
            slot = word << SIX | trailing_zeros(bits)
            bits &= bits - ONE
            mask = masks[position]
            position += ONE
            if mask == 0:
                continue
            while index.block_base[block + ONE] <= slot:
                block += ONE
            action_keys(tables, weights, slot_code(tables, index, block, slot), keys)
            chosen = NO_KEY
            for action in range(4):
                if mask >> action & 1:
                    chosen = max(chosen, keys[action])
            rank = rank_of(keys, chosen)
            codes[slot >> TWO] |= np.uint64(rank) << ((slot & CODE_MASK) << CODE_SHIFT)
            num_predicted += np.uint64(rank == 0)
            num_with_action += ONE
    return num_predicted, num_with_action


@inlined
def mirrored(tables, code):
    """A packed board with its rows reversed."""
    rows = ZERO
    for shift in (ROW0_SHIFT, ROW1_SHIFT, ZERO):
        row = code >> shift & ROW_MASK
        info = tables.row_info[row]
        mirror = info >> MIRROR_SHIFT & RANK_MASK
        ordinal = row_ordinal(tables, row) - (info & RANK_MASK) + mirror
        rows |= np.uint64(tables.rows[ordinal]) << shift
    return rows


@inlined
def flipped(code):
    """A packed board with its rows 0 and 2 swapped."""
    middle = code & ROW_MASK << ROW1_SHIFT
    return (code & ROW_MASK) << ROW0_SHIFT | middle | code >> ROW0_SHIFT


@kernel
def actions_into(tables, index, weights, boards, slots, is_turned, codes, keys, actions):
    """Fill `actions`, uint8[n], with the stored action of every board, in any orientation.

    slots : canonical indices of the boards; is_turned : where the action of the transpose is wanted
    codes : uint8[n], the byte that holds each slot's code
    keys : int64[4], scratch
    `NO_ACTION` on a terminal board, `NOT_STORED` where the code is that of an illegal action.
    """
    for i in range(len(boards)):
        canonical = slot_code(tables, index, find_block(index, slots[i]), slots[i])
        action_keys(tables, weights, canonical, keys)
        rank = np.int64(codes[i] >> ((slots[i] & CODE_MASK) << CODE_SHIFT) & CODE_MASK)
        actions[i] = NO_ACTION if rank_of(keys, NO_KEY) == 0 else NOT_STORED
        for action in range(4):
            if keys[action] == NO_KEY or rank_of(keys, keys[action]) != rank:
                continue
            # A flip of the rows' order leaves left and right alone, that of the cells up and down.
            other = mirrored(tables, boards[i]) if action < 2 else flipped(boards[i])
            is_kept = boards[i] == canonical or other == canonical
            actions[i] = action ^ (not is_kept) ^ (is_turned[i] << 1)


@kernel
def mark_policy_moves(tables, index, codes, actions, afterstates):
    """Set the bit of every board's afterstate under its action; safe from several threads."""
    for i in range(len(codes)):
        if actions[i] < 4:
            moved = moved_board(tables, codes[i], np.int64(actions[i]))
            slot = canonical_code_slot(tables, index, moved)
            or_bit(afterstates, slot)
