"""Lines of text read as boards, in the notations that need no judgement; see `..board_lines`."""

from __future__ import annotations

import numpy as np

from elias_fano.jit import inlined, kernel

EMPTY = np.uint8(0)
READ = np.uint8(1)
UNCLEAR = np.uint8(2)
"""A line for `board.parse_board`: another notation, or no board at all."""

MAX_DIGITS = 9

NEW_LINE = ord("\n")
SLASH = ord("/")
COMMA = ord(",")
OPEN = ord("[")
CLOSE = ord("]")
DIGIT_0 = ord("0")
DIGIT_9 = ord("9")
DOT = ord(".")
UNDERSCORE = ord("_")


@inlined
def _is_blank(byte):
    # Blank, tabulator, carriage return.
    return byte == 32 or byte == 9 or byte == 13


@inlined
def _skip_blanks(text, at, stop):
    while at < stop and _is_blank(text[at]):
        at += 1
    return at


@inlined
def _read_number(text, at, stop):
    """(tile number or -1, where it ends) of the digits from `at` on."""
    number = 0
    start = at
    while at < stop and DIGIT_0 <= text[at] <= DIGIT_9:
        if at - start < MAX_DIGITS:
            number = number * 10 + text[at] - DIGIT_0
        at += 1
    if at == start or at - start > MAX_DIGITS:
        number = -1
    return number, at


@inlined
def _read_cells(text, at, stop, num_rows, num_columns, tiles):
    """Whether ``[at, stop)`` is all cells of a board, its rows unmarked or marked as the shape's.

    Cells are divided by blanks or one comma, rows by slashes.
    """
    cell = 0
    num_breaks = 0
    is_divided = True
    while True:
        at = _skip_blanks(text, at, stop)
        if at == stop:
            return cell == num_rows * num_columns and (num_breaks in (0, num_rows - 1))
        if text[at] == SLASH:
            num_breaks += 1
            if cell != num_breaks * num_columns:
                return False
            is_divided = True
            at += 1
            continue
        if cell == num_rows * num_columns or not is_divided:
            return False
        if text[at] == DOT or text[at] == UNDERSCORE:
            tile = 0
            at += 1
        else:
            tile, at = _read_number(text, at, stop)
        if tile < 0:
            return False
        tiles[cell] = tile
        cell += 1
        end = at
        at = _skip_blanks(text, at, stop)
        is_divided = at > end
        if at < stop and text[at] == COMMA:
            is_divided = True
            at += 1


@inlined
def _read_lists(text, at, stop, num_rows, num_columns, tiles):
    """Whether ``[at, stop)`` is a JSON list of the shape's rows."""
    cell = 0
    for row in range(num_rows):
        for column in range(num_columns):
            before = 2 if column == 0 else 1
            for i in range(before):
                at = _skip_blanks(text, at, stop)
                expected = COMMA
                if column == 0 and (i == 1 or row == 0):
                    expected = OPEN
                if at == stop or text[at] != expected:
                    return False
                at += 1
            start = at = _skip_blanks(text, at, stop)
            tile, at = _read_number(text, at, stop)
            # JSON knows no number with a leading zero.
            if tile < 0 or (text[start] == DIGIT_0 and at - start > 1):
                return False
            tiles[cell] = tile
            cell += 1
        at = _skip_blanks(text, at, stop)
        if at == stop or text[at] != CLOSE:
            return False
        at += 1
    at = _skip_blanks(text, at, stop)
    return at < stop and text[at] == CLOSE and _skip_blanks(text, at + 1, stop) == stop


@kernel
def read_lines_into(text, num_rows, num_columns, tiles, kinds):
    """Read every line of a text as a board, where that is beyond doubt.

    text : uint8[...], each of its n lines ended by a new line
    tiles : int64[n, rows * columns], tile numbers, not checked; without meaning unless `READ`
    kinds : uint8[n], EMPTY, READ or UNCLEAR
    """
    at = 0
    for line in range(len(kinds)):
        stop = at
        while text[stop] != NEW_LINE:
            stop += 1
        at = _skip_blanks(text, at, stop)
        if at == stop:
            kinds[line] = EMPTY
        elif text[at] == OPEN:
            is_read = _read_lists(text, at, stop, num_rows, num_columns, tiles[line])
            kinds[line] = READ if is_read else UNCLEAR
        else:
            is_read = _read_cells(text, at, stop, num_rows, num_columns, tiles[line])
            kinds[line] = READ if is_read else UNCLEAR
        at = stop + 1
