"""The paper's radix IDs of boards, and boards of radix IDs; see `..ids`."""

from __future__ import annotations

import numpy as np

from elias_fano.bits import ONE, ZERO, trailing_zeros
from elias_fano.jit import inlined, kernel

from .slots import ROW0_SHIFT, ROW1_SHIFT, ROW_MASK

# Fields of `row_numbers`, a packed word per row code: the row read as a number in the base, the
# same of the reversed row, and both without their last digit.
NUMBER_MASK = np.uint64(0xFFFF)
MIRROR_NUMBER_SHIFT = np.uint64(16)
HEAD_SHIFT = np.uint64(32)
MIRROR_HEAD_SHIFT = np.uint64(48)

# Fields of `number_rows`, a packed word per number: the row code, and the sum of the row's tiles.
SUM_SHIFT = np.uint64(16)


@inlined
def code_radix_id(radix, code):
    """Radix ID of a packed board: the least over the four images under the flips."""
    upper = radix.row_numbers[code >> ROW0_SHIFT]
    middle = radix.row_numbers[code >> ROW1_SHIFT & ROW_MASK]
    lower = radix.row_numbers[code & ROW_MASK]
    number1 = (middle & NUMBER_MASK) * radix.weight1
    mirror1 = (middle >> MIRROR_NUMBER_SHIFT & NUMBER_MASK) * radix.weight1
    given = (upper & NUMBER_MASK) * radix.weight0 + number1 + (lower >> HEAD_SHIFT & NUMBER_MASK)
    flipped = (lower & NUMBER_MASK) * radix.weight0 + number1 + (upper >> HEAD_SHIFT & NUMBER_MASK)
    mirrored = (
        (upper >> MIRROR_NUMBER_SHIFT & NUMBER_MASK) * radix.weight0
        + mirror1
        + (lower >> MIRROR_HEAD_SHIFT)
    )
    turned = (
        (lower >> MIRROR_NUMBER_SHIFT & NUMBER_MASK) * radix.weight0
        + mirror1
        + (upper >> MIRROR_HEAD_SHIFT)
    )
    return min(min(given, flipped), min(mirrored, turned))


@inlined
def radix_id_code(radix, number):
    """(packed board of a radix ID, whether there is one); the board is 0 if there is none."""
    number0 = number // radix.weight0
    if number0 >= np.uint64(len(radix.number_rows)):
        return ZERO, False
    rest = number - number0 * radix.weight0
    number1 = rest // radix.weight1
    head2 = rest - number1 * radix.weight1
    upper = np.uint64(radix.number_rows[number0])
    middle = np.uint64(radix.number_rows[number1])
    lower = np.uint64(radix.number_rows[head2 * radix.base])
    total = (upper >> SUM_SHIFT) + (middle >> SUM_SHIFT) + (lower >> SUM_SHIFT)
    if total > radix.age:
        return ZERO, False
    # What the other cells leave of the age is the tile of the last.
    tile = radix.age - total
    if tile & (tile - ONE) or tile == ONE:
        return ZERO, False
    exponent = ZERO
    if tile:
        exponent = trailing_zeros(tile)
    code = (upper & ROW_MASK) << ROW0_SHIFT | (middle & ROW_MASK) << ROW1_SHIFT
    code |= (lower & ROW_MASK) | exponent << radix.last_shift
    return code, code_radix_id(radix, code) == number


@kernel
def radix_ids_into(radix, codes, ids):
    """Fill `ids` with the radix ID of every code, all of the age of `radix`."""
    for i in range(len(codes)):
        ids[i] = code_radix_id(radix, codes[i])


@kernel
def radix_codes_into(radix, ids, codes):
    """Fill `codes` with the board of every radix ID; returns how many from the start have one.

    Stops at the first number that is no board's ID.
    """
    for i in range(len(ids)):
        code, is_found = radix_id_code(radix, ids[i])
        if not is_found:
            return i
        codes[i] = code
    return len(ids)
