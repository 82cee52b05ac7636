"""What the states of a layer say together: their values, and how much their actions differ."""

from __future__ import annotations

import numpy as np

from elias_fano.bits import FOUR, ONE, WORD_BITS, ZERO, trailing_zeros
from elias_fano.jit import inlined, kernel
from elias_fano.ranked import rank_at, ranked_bits_at

from ..tables import PALINDROME_SHIFT
from .members import num_images
from .moves import board_potential, row_ordinal
from .slots import ROW0_SHIFT, ROW1_SHIFT, ROW_MASK, block_at, find_block, first_strip


@inlined
def _missing_values(tables, row0, row1, first2, segment, position, upper, potentials, values):
    """Sum over a segment of ``4 - images`` times the value."""
    total = 0.0
    while segment:
        ordinal2 = first2 + trailing_zeros(segment)
        segment &= segment - ONE
        images = num_images(tables, row0, row1, np.uint64(tables.rows[ordinal2]))
        total += np.float64(FOUR - images) * (values[position] - (upper + potentials[ordinal2]))
        position += ONE
    return total


@inlined
def _largest_exponent(first2, segment, exponents, largest):
    """The greater of `largest` and the exponents of a segment's rows 2."""
    while segment:
        largest = max(largest, np.uint64(exponents[first2 + trailing_zeros(segment)]))
        segment &= segment - ONE
    return largest


@kernel
def sum_state_values(
    tables, index, potentials, exponents, class_exponents, states, state_values, start, stop
):  # fmt: skip
    """(sum, least, greatest) value of a layer's states, and the exponent of their largest tile.

    The sum is over labelled boards: every member counts as often as it has images. Over
    ``[start, stop)``, a range of slots; without members (0, inf, -inf, 0).

    potentials : float64[num_rows], by ordinal, taken off every value
    exponents : uint8[num_rows], by ordinal, of the largest tile of a row
    class_exponents : uint8[num_classes], of the largest tile of any row
    states : ranked bitmap of the layer
    state_values : float64[number of states], ``w`` in index order
    """
    total = 0.0
    least = np.inf
    greatest = -np.inf
    largest = ZERO
    block = find_block(index, start)
    while block < np.uint64(len(index.block_class0)) and index.block_base[block] < stop:
        base, class0, _, class2, size1, size2, start1, start2 = block_at(tables, index, block)
        class_exponent2 = np.uint64(class_exponents[class2])
        strip = size1 * size2
        half = first_strip(base, strip, start)
        while half < tables.class_half_size[class0] and base + half * strip < stop:
            ordinal0 = np.uint64(tables.half_ordinals[tables.class_half_start[class0] + half])
            row0 = np.uint64(tables.rows[ordinal0])
            palindrome0 = tables.row_info[row0] >> PALINDROME_SHIFT & ONE
            for offset in range(ZERO, size2, WORD_BITS):
                width = min(WORD_BITS, size2 - offset)
                first2 = start2 + offset
                for rank1 in range(size1):
                    slot = base + half * strip + rank1 * size2 + offset
                    segment = ranked_bits_at(states, slot, width)
                    if segment == ZERO:
                        continue
                    position = rank_at(states, slot)
                    ordinal1 = start1 + rank1
                    upper = potentials[ordinal0] + potentials[ordinal1]
                    largest = max(largest, np.uint64(exponents[ordinal0]))
                    largest = max(largest, np.uint64(exponents[ordinal1]))
                    if class_exponent2 > largest:
                        largest = _largest_exponent(first2, segment, exponents, largest)
                    missing = 0.0
                    # Only then a flip or the half turn can leave a board as it is.
                    if class0 == class2 or (
                        palindrome0 != ZERO and tables.mirror_ranks[ordinal1] == rank1
                    ):
                        row1 = np.uint64(tables.rows[ordinal1])
                        missing = _missing_values(
                            tables, row0, row1, first2, segment, position, upper, potentials,
                            state_values,
                        )  # fmt: skip
                    # Half of the time is here: `min` and `max` would look for NaN, too.
                    segment_sum = 0.0
                    while segment:
                        ordinal2 = first2 + trailing_zeros(segment)
                        segment &= segment - ONE
                        value = state_values[position] - (upper + potentials[ordinal2])
                        position += ONE
                        least = value if value < least else least
                        greatest = value if value > greatest else greatest
                        segment_sum += value
                    total += 4.0 * segment_sum - missing
            half += ONE
        block += ONE
    return total, least, greatest, largest


@kernel
def compare_actions_into(
    tables, floors, floor_cap, exponents, codes, action_values,
    values, gaps, num_legal, images, largest,
):  # fmt: skip
    """What the four action values of each board say together.

    floors, floor_cap : as in `best_moves`, of values v: the floor of a terminal board is its value
    exponents : uint8[num_rows], by ordinal, of the largest tile of a row
    codes : uint64[n]; action_values : float64[n, 4], NaN where an action is illegal
    values : float64[n], of the boards
    gaps : float64[n], best less second best action; NaN with fewer than two legal ones
    num_legal : uint8[n]; images : uint8[n], different images of the board under the flips
    largest : uint8[n], exponent of the largest tile
    """
    for i in range(len(codes)):
        best = -np.inf
        second = -np.inf
        count = 0
        for action in range(4):
            value = action_values[i, action]
            if np.isnan(value):
                continue
            count += 1
            second = max(second, min(best, value))
            best = max(best, value)
        code = codes[i]
        values[i] = max(best, min(board_potential(tables, floors, code), floor_cap))
        gaps[i] = best - second if count > 1 else np.nan
        num_legal[i] = count
        row0, row1, row2 = code >> ROW0_SHIFT, code >> ROW1_SHIFT & ROW_MASK, code & ROW_MASK
        images[i] = num_images(tables, row0, row1, row2)
        largest[i] = max(
            exponents[row_ordinal(tables, row0)],
            exponents[row_ordinal(tables, row1)],
            exponents[row_ordinal(tables, row2)],
        )
