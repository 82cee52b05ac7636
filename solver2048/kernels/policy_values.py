"""Values under a policy, of the images of a board apart.

A board is *image* g of the canonical one of its class: bit 0 of g says whether the order of its
rows is reversed, bit 1 that of the cells in each row. Image g of image k is image ``g ^ k``. A
policy that follows the flips is worth the same on all of them, and one, the canonical, is enough.
"""

from __future__ import annotations

import numpy as np

from elias_fano.bits import ONE, TWO, ZERO, popcount, trailing_zeros
from elias_fano.jit import inlined, kernel
from elias_fano.ranked import rank_at

from .moves import board_potential, moved_board
from .policy import flipped, mirrored
from .slots import canonical_code_slot, find_block, slot_code
from .spawns import empty_code_cells, spawned_board

NUM_IMAGES = 4


@inlined
def image_number(tables, index, slot, code):
    """Which image of the canonical board of its slot a packed board is."""
    canonical = slot_code(tables, index, find_block(index, slot), slot)
    if code == canonical:
        return ZERO
    if code == flipped(canonical):
        return ONE
    return TWO if code == mirrored(tables, canonical) else TWO | ONE


@kernel
def image_numbers_into(tables, index, codes, numbers):
    """Fill `numbers`, uint64[n], with the image that every packed board is."""
    for i in range(len(codes)):
        slot = canonical_code_slot(tables, index, codes[i])
        numbers[i] = image_number(tables, index, slot, codes[i])


@kernel
def images_into(tables, codes, images):
    """Fill `images`, uint64[n, 4], with all images of packed boards."""
    for i in range(len(codes)):
        images[i, 0] = codes[i]
        images[i, 1] = flipped(codes[i])
        images[i, 2] = mirrored(tables, codes[i])
        images[i, 3] = flipped(images[i, 2])


@kernel
def add_spawn_images(tables, target, exponent, weight, states, state_values, codes, values):
    """Add ``weight * mean over the empty cells`` of the values after a spawn, image by image.

    target, exponent : as in `spawns.mark_spawns`
    states : ranked bitmap of the target layer; state_values : float64[number of its states, 4]
    codes : uint64[n], canonical afterstates; values : float64[n, 4]
    """
    for i in range(len(codes)):
        code = codes[i]
        cells = empty_code_cells(tables, code)
        share = weight / np.float64(popcount(cells))
        while cells:
            spawned = spawned_board(code, trailing_zeros(cells), exponent)
            cells &= cells - ONE
            slot = canonical_code_slot(tables, target, spawned)
            number = image_number(tables, target, slot, spawned)
            position = rank_at(states, slot)
            for image in range(NUM_IMAGES):
                values[i, image] += share * state_values[position, np.uint64(image) ^ number]


@kernel
def policy_values_into(tables, index, floors, floor_cap, afterstates, values, codes, actions, out):
    """Fill `out` with the ``w`` of states under a policy, NaN where its action is illegal.

    floors, floor_cap, afterstates : as `values.best_moves` takes them
    values : float64[number of afterstates, images], of all four images or the canonical one alone
    codes : uint64[n], canonical states; actions : uint8[n, images], what is done on each image, as
        the action of the canonical board; out : float64[n, images]
    """
    num_images = out.shape[1]
    for i in range(len(codes)):
        code = codes[i]
        is_over = True
        for action in range(4):
            is_over &= moved_board(tables, code, action) == code
        floor = min(board_potential(tables, floors, code), floor_cap)
        for image in range(num_images):
            moved = code
            if actions[i, image] < 4:
                moved = moved_board(tables, code, np.int64(actions[i, image]))
            if is_over or (floor_cap < np.inf and floor == floor_cap):
                out[i, image] = floor
            elif moved == code:
                out[i, image] = np.nan
            else:
                slot = canonical_code_slot(tables, index, moved)
                number = ZERO if num_images == 1 else image_number(tables, index, slot, moved)
                out[i, image] = values[rank_at(afterstates, slot), np.uint64(image) ^ number]
