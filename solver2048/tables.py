"""Line, column and row-class tables of a shape: all that depends on the shape.

Rows are grouped by the sum of their tiles into *row classes*, numbered by rising sum; within a
class a row has a *rank*, by rising row code. An *ordinal* numbers all rows, class by class. In
row 0 of a canonical board only rows not above their own reversal occur; their rank among those is
the *half rank*.

A *segment map* moves up to 64 bits, one per rank of a class, to other ranks at once: for every
eight ranks a table of 256 words, whose or is the image of a segment.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .shape import Shape

# Fields of `row_info`, a packed word per row code: one load where five arrays would be five.
RANK_BITS = np.uint64(7)
RANK_MASK = np.uint64(127)
MIRROR_SHIFT = np.uint64(7)
HALF_SHIFT = np.uint64(14)
SIZE_SHIFT = np.uint64(21)
PALINDROME_SHIFT = np.uint64(28)
MIRROR_OFFSET_SHIFT = np.uint64(29)  # MIRROR_SHIFT if the row is above its reversal, else 0
MIRROR_OFFSET_MASK = np.uint64(7)
CLASS_SHIFT = np.uint64(32)

# Fields of `slides`, a packed word per ordinal; two slides of two ranks each, then two flags.
SLIDE_STRIDE = np.uint64(14)
LEFT_CHANGES_SHIFT = np.uint64(28)
RIGHT_CHANGES_SHIFT = np.uint64(29)

# Fields of `spawn_ranks`, a packed word per ordinal: for cell j the rank after a 2 and after a 4
# spawn there, 14 bits a cell, then a mask of the empty cells.
CELL_BITS = np.uint64(14)
EMPTY_SHIFT = np.uint64(56)

NO_RANK = 64


class Tables(NamedTuple):
    """The tables as kernels take them; see the module's text for the words used.

    row_info : uint64[65536], by row code: rank, mirrored rank, half rank, class size,
        palindrome flag, mirror offset, class (in the highest bits)
    rows : uint16[num_rows], row code by ordinal
    slides : uint32[num_rows], ranks after left and right slides (and mirrored), changed flags
    left_rows, right_rows : uint16[num_rows], row code after a slide, by ordinal
    spawn_ranks : uint64[num_rows], ranks after a spawn, by ordinal
    mirror_ranks : uint8[num_rows], rank of the reversed row, by ordinal
    half_ordinals : uint16[...], ordinals of the rows not above their reversal, class by class
    column_moves : uint64[8192], per column (a << 8 | b << 4 | c) the column moved up, then down,
        in the lowest cell of each row
    class_sum, class_size, class_start, class_half_size, class_half_start : uint64[num_classes]
    class_left_changes, class_right_changes : uint64[num_classes], by rank, for classes of at most
        64 rows
    class_map_start : uint64[num_classes], where a class begins in each segment map
    left_map, right_map, mirror_map, fold_map, spawn2_map, spawn4_map : uint64[...], segment maps
    class_of_half_sum : int64[top_age // 2 + 1], class by half the sum, -1 where there is none
    num_middle_classes : classes row 1 may have (1 on boards of two rows)
    middle_empty_mask : cells of row 1 a tile can spawn in
    """

    row_info: NDArray[np.uint64]
    rows: NDArray[np.uint16]
    slides: NDArray[np.uint32]
    left_rows: NDArray[np.uint16]
    right_rows: NDArray[np.uint16]
    spawn_ranks: NDArray[np.uint64]
    mirror_ranks: NDArray[np.uint8]
    half_ordinals: NDArray[np.uint16]
    column_moves: NDArray[np.uint64]
    class_sum: NDArray[np.uint64]
    class_size: NDArray[np.uint64]
    class_start: NDArray[np.uint64]
    class_half_size: NDArray[np.uint64]
    class_half_start: NDArray[np.uint64]
    class_left_changes: NDArray[np.uint64]
    class_right_changes: NDArray[np.uint64]
    class_map_start: NDArray[np.uint64]
    left_map: NDArray[np.uint64]
    right_map: NDArray[np.uint64]
    mirror_map: NDArray[np.uint64]
    fold_map: NDArray[np.uint64]
    spawn2_map: NDArray[np.uint64]
    spawn4_map: NDArray[np.uint64]
    class_of_half_sum: NDArray[np.int64]
    num_middle_classes: np.uint64
    middle_empty_mask: np.uint64


def row_cells(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Exponents of the four cells of each row code: int64[n, 4]."""
    cells: NDArray[np.int64] = (rows[:, None] >> np.array([12, 8, 4, 0])) & 15
    return cells


def _row_codes(cells: NDArray[np.int64]) -> NDArray[np.int64]:
    codes: NDArray[np.int64] = (cells << np.array([12, 8, 4, 0])).sum(axis=1)
    return codes


def slide_lines(lines: NDArray[np.int64]) -> NDArray[np.int64]:
    """Exponents of each line slid to its front: int64[n, length] in and out.

    Tiles pack towards the front; equal neighbours merge once, those at the front first.
    """

    def pack(cells: NDArray[np.int64]) -> NDArray[np.int64]:
        order = np.argsort(cells == 0, axis=1, kind="stable")
        return np.take_along_axis(cells, order, axis=1)

    cells = pack(lines)
    for i in range(lines.shape[1] - 1):
        # A merged pair leaves an empty cell behind it, so its result cannot merge again.
        merges = (cells[:, i] != 0) & (cells[:, i] == cells[:, i + 1])
        cells[merges, i] += 1
        cells[merges, i + 1] = 0
    return pack(cells)


def _reverse_lines(cells: NDArray[np.int64], length: int) -> NDArray[np.int64]:
    reverse = cells.copy()
    reverse[:, :length] = cells[:, length - 1 :: -1] if length < 4 else cells[:, ::-1]
    return reverse


def _slide_rows(cells: NDArray[np.int64], length: int) -> NDArray[np.int64]:
    slid = cells.copy()
    slid[:, :length] = slide_lines(cells[:, :length])
    return slid


def _column_moves(num_lines: int) -> NDArray[np.uint64]:
    columns = np.arange(4096)
    cells = (columns[:, None] >> np.array([8, 4, 0])) & 15
    used = [0, 2] if num_lines == 2 else [0, 1, 2]
    moves = np.zeros((4096, 2), dtype=np.uint64)
    for direction, order in enumerate((used, used[::-1])):
        moved = cells.copy()
        moved[:, order] = slide_lines(cells[:, order])
        moves[:, direction] = (moved << np.array([32, 16, 0])).sum(axis=1)
    return moves.reshape(-1)


def _class_masks(classes: NDArray[np.int64], ranks: NDArray[np.int64], flags: NDArray[np.bool_],
                 num_classes: int) -> NDArray[np.uint64]:  # fmt: skip
    """Per class a word with the ranks of its flagged rows; ranks past 63 do not count."""
    masks = np.zeros(num_classes, dtype=np.uint64)
    chosen = flags & (ranks < 64)
    np.bitwise_or.at(masks, classes[chosen], np.uint64(1) << ranks[chosen].astype(np.uint64))
    return masks


def _segment_map(
    chunk: NDArray[np.int64],
    bit: NDArray[np.int64],
    targets: list[NDArray[np.int64]],
    num_chunks: int,
) -> NDArray[np.uint64]:
    """The segment map that sends every row's rank to all its target ranks.

    chunk, bit : where each row's rank lies; targets : for each row, ranks (from 64 on: none)
    """
    images = np.zeros((num_chunks, 8), dtype=np.uint64)
    for target in targets:
        fits = target < 64
        images[chunk[fits], bit[fits]] |= np.uint64(1) << target[fits].astype(np.uint64)
    mapped = np.zeros((num_chunks, 256), dtype=np.uint64)
    for byte in range(1, 256):
        lowest = (byte & -byte).bit_length() - 1
        mapped[:, byte] = mapped[:, byte & (byte - 1)] | images[:, lowest]
    return mapped.reshape(-1)


@functools.cache
def build_tables(shape: Shape) -> Tables:
    """The tables of a shape, built in some tens of milliseconds and kept for the process."""
    length = shape.line_length
    codes = np.arange(65536)
    cells = row_cells(codes)
    tiles = np.where(cells == 0, 0, 1 << cells)
    sums = tiles.sum(axis=1)
    usable = (
        (cells <= shape.max_exponent).all(axis=1)
        & (cells[:, length:] == 0).all(axis=1)
        & (sums <= shape.top_age)
    )
    rows = codes[usable]
    rows = rows[np.lexsort((rows, sums[rows]))]
    class_sums, row_class, class_size = np.unique(
        sums[rows], return_inverse=True, return_counts=True
    )
    class_start = np.concatenate(([0], np.cumsum(class_size)[:-1]))
    rank = np.arange(len(rows)) - class_start[row_class]
    ordinal_of = np.zeros(65536, dtype=np.int64)
    ordinal_of[rows] = np.arange(len(rows))

    cells = row_cells(rows)
    reverse_cells = _reverse_lines(cells, length)
    reverse = _row_codes(reverse_cells)
    mirror_rank = rank[ordinal_of[reverse]]
    is_half = rows <= reverse
    half_ordinals = np.flatnonzero(is_half)
    class_half_size = np.bincount(row_class[is_half], minlength=len(class_sums))
    class_half_start = np.concatenate(([0], np.cumsum(class_half_size)[:-1]))
    half_rank = np.zeros(len(rows), dtype=np.int64)
    half_rank[half_ordinals] = np.arange(len(half_ordinals)) - class_half_start[row_class[is_half]]
    half_rank = np.where(is_half, half_rank, half_rank[ordinal_of[reverse]])

    info = np.zeros(65536, dtype=np.uint64)
    info[rows] = (
        rank
        | mirror_rank << int(MIRROR_SHIFT)
        | half_rank << int(HALF_SHIFT)
        | class_size[row_class] << int(SIZE_SHIFT)
        | (rows == reverse).astype(np.int64) << int(PALINDROME_SHIFT)
        | np.where(rows > reverse, int(MIRROR_SHIFT), 0) << int(MIRROR_OFFSET_SHIFT)
        | row_class << int(CLASS_SHIFT)
    ).astype(np.uint64)

    left = _row_codes(_slide_rows(cells, length))
    right = _row_codes(_reverse_lines(_slide_rows(reverse_cells, length), length))
    # A slide past the top age has no class; it cannot occur on a board of a layer.
    left_ordinal = np.where(usable[left], ordinal_of[left], 0)
    right_ordinal = np.where(usable[right], ordinal_of[right], 0)
    slides = (
        rank[left_ordinal]
        | mirror_rank[left_ordinal] << 7
        | rank[right_ordinal] << 14
        | mirror_rank[right_ordinal] << 21
        | (left != rows).astype(np.int64) << int(LEFT_CHANGES_SHIFT)
        | (right != rows).astype(np.int64) << int(RIGHT_CHANGES_SHIFT)
    )

    empty = (cells == 0) & (np.arange(4) < length)
    spawn_ranks = (empty << np.arange(4)).sum(axis=1) << int(EMPTY_SHIFT)
    spawned_ranks: list[list[NDArray[np.int64]]] = [[], []]
    for cell in range(length):
        for exponent in (1, 2):
            spawned = np.where(empty[:, cell], rows | exponent << (12 - 4 * cell), 0)
            possible = empty[:, cell] & usable[spawned]
            target = np.where(possible, rank[ordinal_of[spawned]], 0)
            spawn_ranks |= target << (int(CELL_BITS) * cell + int(RANK_BITS) * (exponent - 1))
            spawned_ranks[exponent - 1].append(np.where(possible, target, NO_RANK))

    map_chunks = (class_size + 7) // 8
    map_stop = np.cumsum(map_chunks)
    first_chunk = (map_stop - map_chunks)[row_class]

    def segment_map(targets: list[NDArray[np.int64]]) -> NDArray[np.uint64]:
        return _segment_map(first_chunk + rank // 8, rank % 8, targets, int(map_stop[-1]))

    class_of_half_sum = np.full(shape.top_age // 2 + 1, -1, dtype=np.int64)
    class_of_half_sum[class_sums // 2] = np.arange(len(class_sums))
    num_classes = len(class_sums)
    two_rows = len(shape.packed_rows) == 2
    return Tables(
        row_info=info,
        rows=rows.astype(np.uint16),
        slides=slides.astype(np.uint32),
        left_rows=left.astype(np.uint16),
        right_rows=right.astype(np.uint16),
        spawn_ranks=spawn_ranks.astype(np.uint64),
        mirror_ranks=mirror_rank.astype(np.uint8),
        half_ordinals=half_ordinals.astype(np.uint16),
        column_moves=_column_moves(len(shape.packed_rows)),
        class_sum=class_sums.astype(np.uint64),
        class_size=class_size.astype(np.uint64),
        class_start=class_start.astype(np.uint64),
        class_half_size=class_half_size.astype(np.uint64),
        class_half_start=class_half_start.astype(np.uint64),
        class_left_changes=_class_masks(row_class, rank, left != rows, num_classes),
        class_right_changes=_class_masks(row_class, rank, right != rows, num_classes),
        class_map_start=(256 * (map_stop - map_chunks)).astype(np.uint64),
        left_map=segment_map([rank[left_ordinal]]),
        right_map=segment_map([rank[right_ordinal]]),
        mirror_map=segment_map([mirror_rank]),
        fold_map=segment_map([np.minimum(rank, mirror_rank)]),
        spawn2_map=segment_map(spawned_ranks[0]),
        spawn4_map=segment_map(spawned_ranks[1]),
        class_of_half_sum=class_of_half_sum,
        num_middle_classes=np.uint64(1 if two_rows else num_classes),
        middle_empty_mask=np.uint64(0 if two_rows else (1 << length) - 1),
    )
