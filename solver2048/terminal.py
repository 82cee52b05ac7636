"""A played game on a terminal, through curses; the terminal is left as it was."""

from __future__ import annotations

import contextlib
import curses
import os
import sys
import time
from collections.abc import Callable, Iterator

from .board import format_board
from .errors import UsageError
from .game_view import ASCII, Line, shown_value, view
from .played_game import PlayedGame

ACTION_KEYS = {
    "up": (curses.KEY_UP, ord("w"), ord("k")),
    "down": (curses.KEY_DOWN, ord("s"), ord("j")),
    "left": (curses.KEY_LEFT, ord("a"), ord("h")),
    "right": (curses.KEY_RIGHT, ord("d"), ord("l")),
}
ACTION_OF_KEY = {key: action for action, keys in ACTION_KEYS.items() for key in keys}
STEPS = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}

ESCAPE = 27
NO_KEY = -1
LOST_READS = 20
"""So many reads in a row without a key mean that there is no terminal any more."""

# -1 is the terminal's own: readable on any background.
COLOURS = {"best": curses.COLOR_GREEN, "loss": curses.COLOR_RED}
TILE_COLOURS = (
    -1, curses.COLOR_CYAN, curses.COLOR_BLUE, curses.COLOR_MAGENTA,
    curses.COLOR_RED, curses.COLOR_YELLOW, curses.COLOR_GREEN,
)  # fmt: skip


def play(game: PlayedGame, *, is_auto: bool, delay: float) -> None:
    """Play until the player leaves. Raises UsageError where the terminal cannot do it."""
    _check_terminal()
    with _screen() as window:
        GameScreen(game, window, is_auto=is_auto, delay=delay).run()


def play_plain(game: PlayedGame, delay: float, echo: Callable[[str], None]) -> None:
    """Optimal play to the end, one plain line a move."""
    objective = game.solution.objective
    echo(f"start {format_board(game.rows)}")
    while not game.is_over:
        action = game.position.answer.best[0]
        game.play(action)
        game.place_drawn()
        now = game.position
        to_come = f"{shown_value(now.answer.value, objective)} to come  " if game.has_values else ""
        echo(
            f"{now.num_moves:5} {action:<5} score {now.score:,.0f}  "
            f"{to_come}{format_board(game.rows)}"
        )
        time.sleep(delay)


def standing(game: PlayedGame) -> str:
    """How a game stands, in one line."""
    now = game.position
    text = f"score {now.score:,.0f} after {now.num_moves} moves"
    if not game.has_values:
        return text
    return f"{text}, {shown_value(now.lost, game.solution.objective)} lost in {now.num_losing}"


def _check_terminal() -> None:
    name = os.environ.get("TERM", "")
    try:
        curses.setupterm()
        can_place = curses.tigetstr("cup") is not None
    except curses.error:
        can_place = False
    if not can_place:
        raise UsageError(
            f"TERM={name!r} is no terminal to play on; `play --auto < /dev/null` prints plain lines"
        )


@contextlib.contextmanager
def _screen() -> Iterator[curses.window]:
    """The whole screen; whatever happens, the terminal is afterwards what it was before."""
    window = curses.initscr()
    try:
        curses.noecho()
        curses.cbreak()
        curses.set_escdelay(25)
        window.keypad(True)
        with contextlib.suppress(curses.error):
            curses.curs_set(0)
        yield window
    finally:
        window.keypad(False)
        with contextlib.suppress(curses.error):
            curses.curs_set(1)
        curses.nocbreak()
        curses.echo()
        curses.endwin()


class Styles:
    """Attributes by the name of a style; without colour, bold and reverse have to do."""

    def __init__(self) -> None:
        self._attributes = {
            "plain": curses.A_NORMAL,
            "dim": curses.A_DIM,
            "bold": curses.A_BOLD,
            "best": curses.A_BOLD,
            "loss": curses.A_UNDERLINE,
            "cursor": curses.A_REVERSE,
        }
        tiles = {str(2**e): curses.A_BOLD for e in range(1, 16)}
        if curses.has_colors() and not os.environ.get("NO_COLOR"):
            curses.start_color()
            curses.use_default_colors()
            colours = {str(2**e): TILE_COLOURS[(e - 1) % len(TILE_COLOURS)] for e in range(1, 16)}
            for pair, (name, colour) in enumerate((COLOURS | colours).items(), 1):
                curses.init_pair(pair, colour, -1)
                (self._attributes if name in COLOURS else tiles)[name] = (
                    curses.color_pair(pair) | curses.A_BOLD
                )
        self._attributes |= tiles

    def __getitem__(self, name: str) -> int:
        return self._attributes[name]


class GameScreen:
    """Keys and lines of one game on a screen.

    cursor : the cell where a spawn would be put, while one is chosen
    """

    def __init__(
        self, game: PlayedGame, window: curses.window, *, is_auto: bool, delay: float
    ) -> None:
        self._game = game
        self._window = window
        self._is_auto = is_auto
        self._is_paused = False
        self._delay = delay
        self._styles = Styles()
        self._has_hints = True
        self._is_choosing = False
        self._cursor: tuple[int, int] | None = None
        encoding = (sys.stdout.encoding or "").lower().replace("-", "")
        self._is_unicode = encoding == "utf8"

    def run(self) -> None:
        """Draw, read a key, follow it; until the player leaves."""
        num_lost = 0
        while num_lost < LOST_READS:
            self._draw()
            is_running = self._is_auto and not self._is_paused and not self._game.is_over
            self._window.timeout(round(1000 * self._delay) if is_running else -1)
            key = self._window.getch()
            if key in (ord("q"), ord("Q"), ESCAPE):
                return
            if key == NO_KEY and not is_running:
                num_lost += 1
                continue
            num_lost = 0
            self._follow(key)

    def _follow(self, key: int) -> None:
        key = ord(chr(key).lower()) if 0 <= key < 256 else key
        if self._is_auto:
            if key == ord(" "):
                self._is_paused = not self._is_paused
            elif key == NO_KEY:
                self._play_best()
        elif self._cursor:
            self._choose(key, self._cursor)
        elif key in ACTION_OF_KEY:
            self._play(ACTION_OF_KEY[key])
        else:
            self._command(key)

    def _command(self, key: int) -> None:
        if key == ord(" "):
            self._play_best()
        elif key in (ord("u"), curses.KEY_BACKSPACE, 8, 127):
            self._game.undo()
        elif key == ord("n"):
            self._game.new_game()
        elif key == ord("i"):
            self._has_hints = not self._has_hints
        elif key == ord("c"):
            self._is_choosing = not self._is_choosing

    def _play_best(self) -> None:
        if not self._game.is_over:
            self._play(self._game.position.answer.best[0])

    def _play(self, action: str) -> None:
        if not self._game.play(action):
            curses.beep()
        elif self._is_choosing:
            self._cursor = self._game.empty_cells()[0]
        else:
            self._game.place_drawn()

    def _choose(self, key: int, cursor: tuple[int, int]) -> None:
        """Follow a key while a spawn is chosen."""
        if key in ACTION_OF_KEY:
            self._cursor = _next_empty(self._game, cursor, STEPS[ACTION_OF_KEY[key]])
        elif key in (ord("2"), ord("4")):
            self._game.place(cursor, int(chr(key)))
            self._cursor = None
        elif key == ord("r"):
            self._game.place_drawn()
            self._cursor = None
        elif key == ord("u"):
            self._game.undo()
            self._cursor = None

    def _draw(self) -> None:
        lines = view(
            self._game,
            has_hints=self._has_hints,
            cursor=self._cursor,
            is_choosing=self._is_choosing,
            is_auto=self._is_auto,
        )
        height, width = self._window.getmaxyx()
        needed = max(sum(len(text) for text, _ in line) for line in lines) + 1
        if width < needed or height < len(lines):
            size = f"{needed}x{len(lines)} needed, {width}x{height} here; q quits"
            lines = [[(size[: width - 1], "plain")]]
        self._window.erase()
        for y, line in enumerate(lines[:height]):
            self._draw_line(y, line)
        self._window.refresh()

    def _draw_line(self, y: int, line: Line) -> None:
        x = 0
        for text, style in line:
            shown = text if self._is_unicode else text.translate(ASCII)
            # The last cell of the screen cannot be written without scrolling.
            with contextlib.suppress(curses.error):
                self._window.addstr(y, x, shown, self._styles[style])
            x += len(text)


def _next_empty(
    game: PlayedGame, cursor: tuple[int, int], step: tuple[int, int]
) -> tuple[int, int]:
    """The nearest empty cell in a direction, in the same line if there is one; else the same."""
    along, across = (0, 1) if step[0] else (1, 0)
    sign = step[along]
    ahead = [cell for cell in game.empty_cells() if sign * (cell[along] - cursor[along]) > 0]
    return min(
        ahead,
        key=lambda cell: (abs(cell[across] - cursor[across]), abs(cell[along] - cursor[along])),
        default=cursor,
    )
