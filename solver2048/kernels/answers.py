"""Answers about many boards: values of all four actions and the best of them, and who is unknown.

Where all boards of a call are of one age, and the layer of that age is decoded, `answers_into`
does it all; where the stored values come from elsewhere, `judge_into` does the rest.
"""

from __future__ import annotations

import numpy as np

from elias_fano.bits import FOUR, ONE, SIX, TWO, WORD_MASK, ZERO, prefetch, trailing_zeros
from elias_fano.jit import inlined, kernel
from elias_fano.ranked import rank_at

from .actions import ILLEGAL
from .moves import board_potential, horizontal_move, vertical_move
from .slots import ROW0_SHIFT, ROW1_SHIFT, ROW_MASK, canonical_code_slot

# What is wrong with a board.
FINE = np.uint8(0)
MALFORMED = np.uint8(1)
IMPOSSIBLE_AGE = np.uint8(2)
NOT_ENUMERATED = np.uint8(3)
UNREACHABLE = np.uint8(4)
MOVE_MISSING = np.uint8(5)

BATCH = np.uint64(256)
"""Boards whose cache misses overlap."""

SCRATCH_SHAPE = (256, 5)
STATE = np.uint64(4)
"""Place of a board's own slot in the scratch, after those of its four actions."""

EXPONENT_BITS = np.uint64(0x7FF0_0000_0000_0000)


@kernel
def pack_tiles_into(shifts, max_exponent, top_age, max_age, tiles, codes, ages, faults):
    """Pack boards of tile numbers, and find those that no solution can know.

    shifts : uint64[cells], `Shape.cell_shifts`
    max_age : the largest age enumerated
    tiles : int64[n, cells]
    codes : uint64[n]; ages : int64[n], both without meaning where a board is malformed
    faults : uint8[n], one of FINE, MALFORMED, IMPOSSIBLE_AGE, NOT_ENUMERATED
    Returns the number of boards that are not fine.
    """
    num_faults = ZERO
    for i in range(len(tiles)):
        code = ZERO
        age = np.int64(0)
        is_board = True
        for cell in range(len(shifts)):
            tile = tiles[i, cell]
            if tile != 0:
                exponent = trailing_zeros(np.uint64(tile))
                is_board &= tile > 1 and (tile & (tile - 1)) == 0 and exponent <= max_exponent
                code |= (exponent & np.uint64(15)) << shifts[cell]
                age += tile
        fault = FINE
        if not is_board:
            fault = MALFORMED
        elif age < 4 or age > top_age:
            fault = IMPOSSIBLE_AGE
        elif age > max_age:
            fault = NOT_ENUMERATED
        codes[i] = code
        ages[i] = age
        faults[i] = fault
        num_faults += np.uint64(fault != FINE)
    return num_faults


@kernel
def order_by_age_into(ages, faults, stops, order):
    """List the boards that are fine by age, those of an age in the order given.

    stops : int64[top_age // 2 + 2], zeroed; ``order[stops[h - 1]:stops[h]]`` are the boards of
        age ``2 h`` at the end
    order : int64[n]
    """
    for i in range(len(ages)):
        if faults[i] == FINE:
            stops[(ages[i] >> 1) + 1] += 1
    for half in range(1, len(stops)):
        stops[half] += stops[half - 1]
    for i in range(len(ages)):
        if faults[i] == FINE:
            order[stops[ages[i] >> 1]] = i
            stops[ages[i] >> 1] += 1


@inlined
def _find_slots(tables, layer, terms, code, slots, rewards):
    """Fill `slots` with a board's four afterstates and itself, and ask for their words."""
    row0 = code >> ROW0_SHIFT
    row1 = code >> ROW1_SHIFT & ROW_MASK
    row2 = code & ROW_MASK
    slots[STATE] = canonical_code_slot(tables, layer.layer_index, code)
    prefetch(layer.states, slots[STATE] >> SIX)
    before = board_potential(tables, terms.potentials, code)
    for packed_action in range(FOUR):
        direction = packed_action & ONE
        if packed_action & TWO:
            moved = horizontal_move(tables, row0, row1, row2, direction)
        else:
            moved = vertical_move(tables, row0, row1, row2, direction)
        action = packed_action ^ terms.turn
        rewards[action] = board_potential(tables, terms.potentials, moved) - before
        slots[action] = ILLEGAL
        if moved != code:
            slots[action] = canonical_code_slot(tables, layer.layer_index, moved)
            prefetch(layer.afterstates, slots[action] >> SIX << ONE)


@inlined
def _find_positions(layer, slots):
    """Turn slots into positions among the afterstates, and ask for their values.

    Returns what is wrong with the board; all its actions are `ILLEGAL` then.
    """
    fault = FINE
    if not layer.states[slots[STATE] >> SIX] >> (slots[STATE] & WORD_MASK) & ONE:
        fault = UNREACHABLE
    for action in range(FOUR):
        slot = slots[action]
        if slot == ILLEGAL:
            continue
        is_member = layer.afterstates[slot >> SIX << ONE] >> (slot & WORD_MASK) & ONE
        if fault == FINE and not is_member:
            fault = MOVE_MISSING
        slots[action] = rank_at(layer.afterstates, slot)
        prefetch(layer.values, slots[action])
    if fault != FINE:
        for action in range(FOUR):
            slots[action] = ILLEGAL
    return fault


@inlined
def _bound(terms, value):
    """How far a stored value can be from the one computed."""
    power = np.uint64(np.float64(value).view(np.uint64) & EXPONENT_BITS).view(np.float64)
    return max(power * terms.relative_bound, terms.least_bound)


@inlined
def _judge(tables, terms, code, afterstate_values, rewards, action_values, best):
    """The value of a board; fills the values of its actions, and which are best.

    Two values tie if, for all that is stored, they may be equal.
    """
    top = -np.inf
    least = -np.inf
    for action in range(4):
        action_values[action] = rewards[action] + afterstate_values[action]
        if not np.isnan(afterstate_values[action]):
            top = max(top, action_values[action])
            bound = _bound(terms, afterstate_values[action])
            least = max(least, action_values[action] - bound)
    for action in range(4):
        best[action] = False
        if not np.isnan(afterstate_values[action]):
            bound = _bound(terms, afterstate_values[action])
            best[action] = action_values[action] + bound >= least - terms.allowance
    return max(top, min(board_potential(tables, terms.ends, code), terms.end_cap))


@inlined
def _answer_unknown(answers, board):
    """What is said of a board that nothing is known of."""
    answers.values[board] = np.nan
    for action in range(4):
        answers.afterstate_values[board, action] = np.nan
        answers.action_values[board, action] = np.nan
        answers.rewards[board, action] = 0.0
        answers.best[board, action] = False


@kernel
def answers_into(tables, layer, terms, codes, order, slots, answers):
    """Answer boards of one age whose layer is decoded.

    In three loops, board to slots to positions to values, so that cache misses overlap.

    layer : a `DecodedLayer`; terms : an `AnswerTerms`
    codes : uint64[n]; order : int64[...], which of the boards to answer
    slots : uint64[SCRATCH_SHAPE], scratch of the calling thread
    answers : an `Answers` of n boards; `faults` says which are no states of the layer, or have a
        move that the set of afterstates lacks
    Returns the number of boards with a fault.
    """
    num_faults = ZERO
    num_boards = np.uint64(len(order))
    for first in range(ZERO, num_boards, BATCH):
        count = min(BATCH, num_boards - first)
        for i in range(count):
            board = order[first + i]
            _find_slots(tables, layer, terms, codes[board], slots[i], answers.rewards[board])
        for i in range(count):
            answers.faults[order[first + i]] = _find_positions(layer, slots[i])
        for i in range(count):
            board = order[first + i]
            if answers.faults[board] != FINE:
                _answer_unknown(answers, board)
                num_faults += ONE
                continue
            for action in range(FOUR):
                answers.afterstate_values[board, action] = np.nan
                if slots[i, action] != ILLEGAL:
                    stored = np.float64(layer.values[slots[i, action]])
                    answers.afterstate_values[board, action] = stored * terms.scale
            answers.values[board] = _judge(
                tables, terms, codes[board], answers.afterstate_values[board],
                answers.rewards[board], answers.action_values[board], answers.best[board],
            )  # fmt: skip
    return num_faults


@kernel
def judge_into(tables, terms, codes, order, answers):
    """Fill what follows from afterstate values, rewards and faults, of the boards in `order`."""
    for board in order:
        if answers.faults[board] != FINE:
            _answer_unknown(answers, board)
            continue
        answers.values[board] = _judge(
            tables, terms, codes[board], answers.afterstate_values[board],
            answers.rewards[board], answers.action_values[board], answers.best[board],
        )  # fmt: skip


@kernel
def answer_unknown_into(answers):
    """Fill the answers of all boards with a fault."""
    for board in range(len(answers.faults)):
        if answers.faults[board] != FINE:
            _answer_unknown(answers, board)
