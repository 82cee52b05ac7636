"""Slow, obvious twins of the solver, sharing no code with it.

Boards are flat tuples of exponents, row by row. Lines slide by a two-pointer scan (the package
packs, merges and packs again).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

Flat = tuple[int, ...]


def slide(line: Flat) -> tuple[Flat, int]:
    """(line slid to its front, reward)."""
    out = [0] * len(line)
    place = 0  # where the next tile lands; out[place] may still merge
    reward = 0
    for tile in line:
        if tile == 0:
            continue
        if out[place] == 0:
            out[place] = tile
        elif out[place] == tile:
            out[place] = tile + 1
            reward += 2 ** (tile + 1)
            place += 1
        else:
            place += 1
            out[place] = tile
    return tuple(out), reward


def slide_many(lines: np.ndarray) -> np.ndarray:
    """`slide` on int64[n, length] at once, the same scan with one place a line."""
    out = np.zeros_like(lines)
    place = np.zeros(len(lines), dtype=np.int64)
    rows = np.arange(len(lines))
    for column in range(lines.shape[1]):
        tile = lines[:, column]
        here = out[rows, np.minimum(place, lines.shape[1] - 1)]
        merges = (tile > 0) & (here == tile)
        lands = (tile > 0) & (here == 0)
        beside = (tile > 0) & (here != 0) & (here != tile)
        place = place + beside
        out[rows[lands], place[lands]] = tile[lands]
        out[rows[beside], place[beside]] = tile[beside]
        out[rows[merges], place[merges]] += 1
        place = place + merges
    return out


def lines_of(rows: int, columns: int, action: str) -> list[list[int]]:
    """Cells of every line, in the order in which an action moves tiles to the front."""
    if action in ("left", "right"):
        lines = [[r * columns + c for c in range(columns)] for r in range(rows)]
    else:
        lines = [[r * columns + c for r in range(rows)] for c in range(columns)]
    return [line[::-1] for line in lines] if action in ("right", "down") else lines


def move(board: Flat, rows: int, columns: int, action: str) -> tuple[Flat, int]:
    out = list(board)
    total = 0
    for line in lines_of(rows, columns, action):
        slid, reward = slide(tuple(board[i] for i in line))
        total += reward
        for i, cell in zip(line, slid, strict=True):
            out[i] = cell
    return tuple(out), total


def images(board: Flat, rows: int, columns: int) -> list[Flat]:
    def picked(cell: object) -> Flat:
        return tuple(board[cell(r, c)] for r in range(rows) for c in range(columns))  # type: ignore[operator]

    found = [
        picked(lambda r, c: r * columns + c),
        picked(lambda r, c: r * columns + columns - 1 - c),
        picked(lambda r, c: (rows - 1 - r) * columns + c),
        picked(lambda r, c: (rows - 1 - r) * columns + columns - 1 - c),
    ]
    if rows == columns:
        turned = [
            tuple(b[c * columns + r] for r in range(rows) for c in range(columns)) for b in found
        ]
        found += turned
    return found


def age(board: Flat) -> int:
    return sum(2**cell for cell in board if cell)


def radix_id(board: Flat, rows: int, columns: int) -> int:
    """The paper's ID of a board, digit by digit; boards of four rows are read by columns."""
    base = 1 + max(exponent for exponent in range(1, 20) if 2**exponent <= age(board))
    order = [cell for line in lines_of(rows, columns, "up" if rows == 4 else "left")
             for cell in line]  # fmt: skip
    numbers = []
    for image in images(board, rows, columns)[:4]:
        number = 0
        for cell in order[:-1]:
            number = number * base + image[cell]
        numbers.append(number)
    return min(numbers)


ACTIONS = ("up", "down", "left", "right")


class NaiveSolution:
    """All boards of a shape, labelled, with the values of states and afterstates."""

    def __init__(self, rows: int, columns: int, spawn4: float = 0.1, tile: int = 0) -> None:
        self.rows, self.columns = rows, columns
        self.spawn4, self.tile = spawn4, tile
        self.states: dict[int, set[Flat]] = {}
        self.afterstates: dict[int, set[Flat]] = {}
        self.moves: dict[Flat, dict[str, tuple[Flat, int]]] = {}
        self.value: dict[Flat, float] = {}
        self.afterstate_value: dict[Flat, float] = {}
        self._enumerate()
        self._evaluate()

    def spawns(self, board: Flat, exponent: int) -> Iterator[Flat]:
        for i, cell in enumerate(board):
            if cell == 0:
                yield (*board[:i], exponent, *board[i + 1 :])

    def _enumerate(self) -> None:
        empty = (0,) * (self.rows * self.columns)
        for first in (1, 2):
            for one in self.spawns(empty, first):
                for second in (1, 2):
                    for two in self.spawns(one, second):
                        self.states.setdefault(age(two), set()).add(two)
        n = 4
        while n <= max(self.states):
            layer: set[Flat] = set()
            for state in self.states.get(n, ()):
                legal = {}
                for action in ACTIONS:
                    moved, reward = move(state, self.rows, self.columns, action)
                    if moved != state:
                        legal[action] = (moved, reward)
                        layer.add(moved)
                self.moves[state] = legal
            self.afterstates[n] = layer
            for afterstate in layer:
                for exponent in (1, 2):
                    reached = self.states.setdefault(n + 2**exponent, set())
                    reached.update(self.spawns(afterstate, exponent))
            n += 2

    def _evaluate(self) -> None:
        for n in sorted(self.states, reverse=True):
            for afterstate in self.afterstates[n]:
                value = 0.0
                for exponent, share in ((1, 1 - self.spawn4), (2, self.spawn4)):
                    values = [self.value[s] for s in self.spawns(afterstate, exponent)]
                    value += share * sum(values) / len(values)
                self.afterstate_value[afterstate] = value
            for state in self.states[n]:
                self.value[state] = self._state_value(state)

    def _state_value(self, state: Flat) -> float:
        if self.tile and max(state) >= self.tile:
            return 1.0
        return max(self.action_values(state).values(), default=0.0)

    def action_values(self, state: Flat) -> dict[str, float]:
        return {
            action: (0 if self.tile else reward) + self.afterstate_value[moved]
            for action, (moved, reward) in self.moves[state].items()
        }

    def classes(self, boards: set[Flat]) -> int:
        """Number of boards modulo all symmetries."""
        return len({min(images(board, self.rows, self.columns)) for board in boards})

    def counts(self) -> list[dict[str, int]]:
        return [
            {
                "age": n,
                "states": self.classes(self.states[n]),
                "states_labelled": len(self.states[n]),
                "afterstates": self.classes(self.afterstates[n]),
                "afterstates_labelled": len(self.afterstates[n]),
                "terminal": self.classes({s for s in self.states[n] if not self.moves[s]}),
            }
            for n in sorted(self.states)
        ]

    def statistics(self, allowance: float = 1e-9) -> list[dict[str, float | None]]:
        """Per age, over labelled states: values, gaps between actions, ties, largest tile."""
        return [self._statistics(self.states[n], allowance) for n in sorted(self.states)]

    def _statistics(self, states: set[Flat], allowance: float) -> dict[str, float | None]:
        values = [self.value[state] for state in states]
        ranked = [sorted(self.action_values(state).values(), reverse=True) for state in states]
        gaps = [actions[0] - actions[1] for actions in ranked if len(actions) > 1]
        return {
            "value_mean": sum(values) / len(states),
            "value_min": min(values),
            "value_max": max(values),
            "gap_mean": sum(gaps) / len(gaps) if gaps else None,
            "single_share": sum(len(actions) == 1 for actions in ranked) / len(states),
            "tied_share": sum(gap <= allowance for gap in gaps) / len(states),
            "largest_tile": max(2 ** max(state) for state in states),
        }
