"""A played game as lines of styled text, at most 80 x 24; the terminal draws them."""

from __future__ import annotations

import math

from .explanation import with_tile
from .objective import Objective
from .played_game import PlayedGame

Span = tuple[str, str]
"""A text and the name of its style: plain, dim, bold, best, loss, cursor, or a tile's number."""
Line = list[Span]

CELL_WIDTH = 7
BAR_WIDTH = 8
ASCII = str.maketrans("│─┌┬┐├┼┤└┴┘█·", "|-+++++++++#.")
"""What stands for characters that a terminal without Unicode lacks."""

MOVE_KEYS = "arrows/wasd/hjkl move  space best move  u undo  n new game"
OTHER_KEYS = "i hints  c choose spawns  q quit"
CHOOSE_KEYS = "spawn: arrows cell  2 or 4 tile  r random  u take the move back"
AUTO_KEYS = "space pause  q quit"


def view(
    game: PlayedGame, *, has_hints: bool = True, cursor: tuple[int, int] | None = None,
    is_choosing: bool = False, is_auto: bool = False,
) -> list[Line]:  # fmt: skip
    """What a game looks like; cursor: the cell where a spawn would be put."""
    objective = game.solution.objective
    left = _board(game, cursor)
    if not has_hints:
        right: list[Line] = [[("hints are off", "dim")]]
    else:
        right = _spawn_hints(game, cursor) if cursor else _hints(game)
    width = sum(len(text) for text, _ in left[0])
    lines = [[(_title(game), "bold")], []]
    for i, line in enumerate(left):
        beside = right[i] if i < len(right) else []
        lines.append([("  ", "plain"), *line, ("   ", "plain"), *beside])
    # A board of two rows is lower than its hints.
    lines += [[(" " * (width + 5), "plain"), *line] for line in right[len(left) :]]
    lines += [[], *_standing(game, objective, has_hints), []]
    if is_auto:
        keys = [AUTO_KEYS]
    else:
        chosen = "on" if is_choosing else "off"
        keys = [CHOOSE_KEYS] if cursor else [MOVE_KEYS, f"{OTHER_KEYS}  (choosing is {chosen})"]
    return lines + [[(f"  {text}", "dim")] for text in keys]


def _title(game: PlayedGame) -> str:
    solution = game.solution
    return f"  solver2048 · {solution.shape.name} · {solution.objective.name}"


def _board(game: PlayedGame, cursor: tuple[int, int] | None) -> list[Line]:
    columns = len(game.rows[0])

    def edge(left: str, middle: str, right: str) -> Line:
        return [(left + middle.join(["─" * CELL_WIDTH] * columns) + right, "dim")]

    lines = [edge("┌", "┬", "┐")]
    for i, row in enumerate(game.rows):
        line: Line = [("│", "dim")]
        for j, tile in enumerate(row):
            style = "cursor" if cursor == (i, j) else str(tile) if tile else "dim"
            text = str(tile) if tile else "?" if cursor == (i, j) else "·"
            line += [(f"{text:^{CELL_WIDTH}}", style), ("│", "dim")]
        lines += [line, edge("├", "┼", "┤")]
    lines[-1] = edge("└", "┴", "┘")
    return lines


def shown_value(value: float, objective: Objective, sign: str = "") -> str:
    """A score with two decimals, a probability in percent with four."""
    text = f"{value:{sign},.2f}" if not objective.exponent else f"{value:{sign}.4%}"
    return text.replace("-0.00", "0.00") if float(text.strip("%").replace(",", "")) == 0 else text


def _hints(game: PlayedGame) -> list[Line]:
    """The four actions: value, loss against the best, and a bar."""
    objective = game.solution.objective
    answer = game.position.answer
    if not answer.best:
        return [[("the game is over", "bold")]]
    if not game.has_values:
        lines: list[Line] = [[(f"* {answer.best[0]}", "best")], [("  by the policy table", "dim")]]
        return lines if game.has_choice else [*lines, [("  of its own moves alone", "dim")]]
    lines = [[(f"  {'action':<6}{'value':>12}{'loss':>12}", "dim")]]
    for name, action in answer.actions.items():
        if action is None:
            lines.append([(f"  {name:<6}{'illegal':>12}", "dim")])
            continue
        is_best = name in answer.best
        loss = "best" if is_best else shown_value(action.value - answer.value, objective)
        text = f"{'*' if is_best else ' '} {name:<6}{shown_value(action.value, objective):>12}"
        share = action.value / answer.value if answer.value else 1.0
        style = "best" if is_best else "plain"
        lines.append([(f"{text}{loss:>12} ", style), ("█" * round(BAR_WIDTH * share), style)])
    return lines


def _spawn_hints(game: PlayedGame, cursor: tuple[int, int]) -> list[Line]:
    """What a 2 and a 4 in the chosen cell would be worth."""
    if not game.has_values:
        return []
    lines: list[Line] = [[(f"  {'spawn here':<10}{'value':>10}", "dim")]]
    for tile in (2, 4):
        value = game.solution.query(with_tile(game.rows, cursor, tile)).value
        text = f"  {tile:<8}{shown_value(value, game.solution.objective):>12}"
        lines.append([(text, "plain")])
    return lines


def _standing(game: PlayedGame, objective: Objective, has_hints: bool) -> list[Line]:
    """The score, and with hints what the last move and the game have lost."""
    now = game.position
    score = game.slide.score if game.slide else now.score
    head = f"  score {score:,.0f}   moves {now.num_moves}   age {now.answer.age}"
    lines: list[Line] = [[(head, "bold")]]
    if game.is_over and not has_hints:
        lines.append([("  the game is over", "bold")])
    if not has_hints:
        return lines
    if not game.has_values:
        return [*lines, *([_last_move(game, objective)] if now.last else [])]
    expected = now.answer.value + (0 if objective.exponent else now.score)
    what = "chance of the tile" if objective.exponent else "expected final score"
    lines.append([(f"  {what} {shown_value(expected, objective)}", "plain")])
    if now.last:
        lines.append(_last_move(game, objective))
    lost = f"{shown_value(now.lost, objective)} lost in {now.num_losing} of {now.num_moves} moves"
    luck = shown_value(game.luck, objective, "+")
    return [*lines, [(f"  game so far: {lost}; luck of spawns {luck}", "plain")]]


def _last_move(game: PlayedGame, objective: Objective) -> Line:
    last = game.position.last
    assert last is not None
    if not last.loss:
        return [(f"  last move: {last.action}, a best one", "best")]
    if math.isnan(last.loss):
        return [(f"  last move: {last.action}; best: {last.best[0]}", "loss")]
    lost = shown_value(last.loss, objective)
    return [(f"  last move: {last.action}, {lost} lost; best: {' or '.join(last.best)}", "loss")]
