"""An explanation as text of at most 80 columns, and as a JSON object."""

from __future__ import annotations

import dataclasses
from typing import Any

from .explanation import SIMULATED_GAMES, ActionOutcomes, Explanation, Rows, Spawn
from .objective import Objective

WIDTH = 80
GAP = "    "


def explanation_json(explained: Explanation, seed: int) -> dict[str, Any]:
    """All of it; rows and columns are counted from 1."""
    answer = explained.answer
    return {
        "board": answer.board,
        "age": answer.age,
        "value": answer.value,
        "best": answer.best,
        "actions": {
            name: action and dataclasses.asdict(action)
            for name, action in explained.actions.items()
        },
        "line": [dataclasses.asdict(step) for step in explained.line],
        "tiles": [dataclasses.asdict(chance) for chance in explained.tiles],
        "tiles_from": "all games" if explained.is_exact else f"{SIMULATED_GAMES} games",
        "seed": None if explained.is_exact else seed,
        "deaths": explained.deaths,
    }


def format_explanation(
    explained: Explanation, objective: Objective, num_spawns: int, max_states: int, seed: int
) -> str:
    """The explanation for people; the arguments are those it was made with."""
    answer = explained.answer
    number = _Number(3 if objective.exponent else 2, 100 if objective.exponent else 1)
    sections = [_board(explained, objective, number)]
    if answer.best:
        for name in sorted(explained.actions, key=lambda n: n != answer.best[0]):
            action = explained.actions[name]
            if action is not None:
                sections.append(_action(name, action, number))
        if explained.line:
            sections.append(_line(explained))
    sections += [_tiles(explained, max_states, seed), _deaths(explained, num_spawns, max_states)]
    return "\n\n".join("\n".join(lines) for lines in sections)


@dataclasses.dataclass(frozen=True)
class _Number:
    """How values are written: scores with two decimals, probabilities in percent with three."""

    decimals: int
    factor: int

    def plain(self, value: float) -> str:
        unit = " %" if self.factor == 100 else ""
        return f"{value * self.factor:,.{self.decimals}f}{unit}"

    def signed(self, value: float) -> str:
        return f"{value * self.factor:+,.{self.decimals}f}"


def _grid(cells: list[list[str]], width: int) -> list[str]:
    return ["".join(f"{cell:>{width}}" for cell in row) for row in cells]


def _shown(rows: Rows) -> list[list[str]]:
    return [[str(tile) if tile else "." for tile in row] for row in rows]


def _beside(*blocks: list[str]) -> list[str]:
    """Blocks of text side by side."""
    height = max(len(block) for block in blocks)
    widths = [max(len(line) for line in block) for block in blocks]
    rows = [[block[i] if i < len(block) else "" for block in blocks] for i in range(height)]
    return [
        GAP.join(f"{line:<{width}}" for line, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _board(explained: Explanation, objective: Objective, number: _Number) -> list[str]:
    answer = explained.answer
    table = []
    for name, action in explained.actions.items():
        mark = "*" if name in answer.best else " "
        if action is None:
            table.append(f"{mark} {name:<6}{'illegal':>12}")
            continue
        loss = "best" if name in answer.best else number.signed(-action.loss)
        table.append(f"{mark} {name:<6}{number.plain(action.value):>12}{loss:>12}")
    if not answer.best:
        table.append("the game is over")
    what = objective.unit + (f" of {objective.name}" if objective.exponent else "")
    title = f"age {answer.age}; {what} under optimal play: {number.plain(answer.value)}"
    return [title, "", *_beside(_grid(_shown(answer.board), 6), table)]


def _action(name: str, action: ActionOutcomes, number: _Number) -> list[str]:
    terms = f" = {action.reward:,.0f} + {number.plain(action.afterstate_value)}"
    title = f"{name}: {number.plain(action.value)}{terms if action.reward else ''}"
    grids = []
    for tile in (2, 4):
        spawns = [spawn for spawn in action.spawns if spawn.tile == tile]
        cells = _shown(action.afterstate)
        for spawn in spawns:
            cells[spawn.row - 1][spawn.column - 1] = number.signed(
                spawn.value - action.afterstate_value
            )
        share = sum(spawn.probability for spawn in spawns)
        grids.append([f"  if a {tile} spawns ({share:.0%})", *_grid(cells, 9)])
    extremes = (("best ", action.best), ("worst", action.worst))
    return [title, *_beside(*grids), *(f"  {w}  {_spawn(s, number)}" for w, s in extremes)]


def _spawn(spawn: Spawn, number: _Number) -> str:
    return (
        f"{spawn.tile} at row {spawn.row}, column {spawn.column}: {number.plain(spawn.value)} "
        f"({spawn.probability:.1%})"
    )


def _line(explained: Explanation) -> list[str]:
    """The boards of the line of play, as many side by side as fit; (spawns) in parentheses."""
    blocks = []
    width = 2 + max(
        len(str(tile)) + 2 * (tile in (2, 4))
        for step in explained.line for row in step.board for tile in row
    )  # fmt: skip
    for i, step in enumerate(explained.line, 1):
        cell = (step.spawn.row - 1, step.spawn.column - 1)
        cells = _shown(step.board)
        cells[cell[0]][cell[1]] = f"({step.spawn.tile})"
        reward = f" +{step.reward:,.0f}" if step.reward else ""
        blocks.append([f" {i} {step.action}{reward}", *_grid(cells, width)])
    columns = max(len(max(block, key=len)) for block in blocks)
    fitting = max(1, (WIDTH + len(GAP)) // (columns + len(GAP)))
    lines = [f"a likely line of play, {len(blocks)} moves; (n): the tile that spawned"]
    for start in range(0, len(blocks), fitting):
        padded = [
            [f"{line:<{columns}}" for line in block] for block in blocks[start : start + fitting]
        ]
        lines += ([""] if start else []) + _beside(*padded)
    return lines


def _tiles(explained: Explanation, max_states: int, seed: int) -> list[str]:
    source = "exact" if explained.is_exact else f"from {SIMULATED_GAMES:,} games, seed {seed}"
    lines = [f"chance of reaching each tile under this policy ({source})"]
    if not explained.is_exact:
        lines.append(f"(more than {max_states:,} states may follow; --limit allows more)")
    for chance in explained.tiles:
        error = "" if explained.is_exact else f" ± {chance.standard_error:.3%}"
        lines.append(f"{chance.tile:8,}  {chance.probability:9.4%}{error}")
    return lines


def _deaths(explained: Explanation, num_spawns: int, max_states: int) -> list[str]:
    lines = ["chance that the game is over within so many spawns (exact)"]
    num_safe = sum(p == 0 for p in explained.deaths)
    if num_safe:
        lines.append(f"{f'1 to {num_safe}':>8}  {0:9.4%}")
    lines += [f"{k:8}  {p:9.4%}" for k, p in enumerate(explained.deaths, 1) if p > 0]
    if len(explained.deaths) < num_spawns:
        reached = len(explained.deaths)
        lines.append(f"stopped after {reached} of {num_spawns}: more than {max_states:,} boards")
    return lines
