"""The rules of the game on lists of rows, slow and plain.

`verify` and the self-checks of a solve compute samples again with them, and a single game is
played by them; nothing else uses them.
A board is a tuple of rows, a row a tuple of exponents (0: empty).
"""

from __future__ import annotations

from collections.abc import Iterator

Board = tuple[tuple[int, ...], ...]


def slide_line(line: tuple[int, ...]) -> tuple[tuple[int, ...], int]:
    """(line slid to its front, reward). Each tile merges once, the front-most pairs first.

    >>> slide_line((1, 1, 1, 0))
    ((2, 1, 0, 0), 4)
    """
    tiles = [cell for cell in line if cell]
    slid: list[int] = []
    reward = 0
    while tiles:
        tile = tiles.pop(0)
        if tiles and tiles[0] == tile:
            tiles.pop(0)
            tile += 1
            reward += 2**tile
        slid.append(tile)
    return tuple(slid + [0] * (len(line) - len(slid))), reward


def transpose(board: Board) -> Board:
    return tuple(zip(*board, strict=True))


def mirror(board: Board) -> Board:
    """The board with every row reversed."""
    return tuple(row[::-1] for row in board)


def move(board: Board, action: str) -> tuple[Board, int] | None:
    """(afterstate, reward), or None if the action changes nothing and so is illegal."""
    turned = transpose(board) if action in ("up", "down") else board
    turned = mirror(turned) if action in ("right", "down") else turned
    lines = [slide_line(row) for row in turned]
    moved = tuple(line for line, _ in lines)
    moved = mirror(moved) if action in ("right", "down") else moved
    moved = transpose(moved) if action in ("up", "down") else moved
    return None if moved == board else (moved, sum(reward for _, reward in lines))


def spawns(board: Board, exponent: int) -> Iterator[Board]:
    """The boards with a tile of `exponent` in each empty cell."""
    for i, row in enumerate(board):
        for j, cell in enumerate(row):
            if cell == 0:
                filled = (*row[:j], exponent, *row[j + 1 :])
                yield (*board[:i], filled, *board[i + 1 :])


def unspawns(board: Board, exponent: int) -> list[Board]:
    """The boards that a spawn of `exponent` makes this one of."""
    return [
        (*board[:i], (*row[:j], 0, *row[j + 1 :]), *board[i + 1 :])
        for i, row in enumerate(board)
        for j, cell in enumerate(row)
        if cell == exponent
    ]
