// The rules of the game, and boards as text. A board is a list of rows of tile numbers, 0: empty.

export const ACTIONS = ["up", "down", "left", "right"];

/** The lines of cells that an action slides, each from the side it slides to. */
function linesOf(rows, action) {
  const [height, width] = [rows.length, rows[0].length];
  const isVertical = action === "up" || action === "down";
  const lines = [];
  for (let i = 0; i < (isVertical ? width : height); i++) {
    const line = [];
    for (let j = 0; j < (isVertical ? height : width); j++) line.push(isVertical ? [j, i] : [i, j]);
    lines.push(action === "down" || action === "right" ? line.reverse() : line);
  }
  return lines;
}

/**
 * What an action does, or null where it changes nothing and so is illegal:
 * the rows after it, the reward, where each tile goes and which cells hold merged tiles.
 */
export function slide(rows, action) {
  const after = rows.map((row) => row.map(() => 0));
  const paths = [];
  const merged = [];
  let reward = 0;
  for (const line of linesOf(rows, action)) {
    let next = 0;
    let isOpen = false; // whether the last tile set down may still merge
    for (const from of line) {
      const tile = rows[from[0]][from[1]];
      if (!tile) continue;
      const last = line[next - 1];
      if (isOpen && after[last[0]][last[1]] === tile) {
        after[last[0]][last[1]] = 2 * tile;
        reward += 2 * tile;
        merged.push(last);
        paths.push({ from, to: last });
        isOpen = false;
      } else {
        const to = line[next++];
        after[to[0]][to[1]] = tile;
        paths.push({ from, to });
        isOpen = true;
      }
    }
  }
  const isChanged = paths.some(({ from, to }) => from !== to);
  return isChanged ? { rows: after, reward, paths, merged } : null;
}

export const isOver = (rows) => ACTIONS.every((action) => !slide(rows, action));

export function emptyCells(rows) {
  return rows.flatMap((row, i) => row.flatMap((tile, j) => (tile ? [] : [[i, j]])));
}

export function withTile(rows, [row, column], tile) {
  return rows.map((cells, i) => cells.map((old, j) => (i === row && j === column ? tile : old)));
}

/** A spawn by chance: an empty cell, and a 2 or a 4. */
export function randomSpawn(rows, spawn4) {
  const cells = emptyCells(rows);
  const cell = cells[Math.floor(Math.random() * cells.length)];
  return { cell, tile: Math.random() < spawn4 ? 4 : 2 };
}

export function emptyBoard(height, width) {
  return Array.from({ length: height }, () => Array(width).fill(0));
}

/** Two tiles by chance, as every game starts. */
export function randomStart(height, width, spawn4) {
  let rows = emptyBoard(height, width);
  for (let i = 0; i < 2; i++) {
    const { cell, tile } = randomSpawn(rows, spawn4);
    rows = withTile(rows, cell, tile);
  }
  return rows;
}

/** "2,0,4/0,0,2", which needs no escapes in an address. */
export const boardText = (rows) => rows.map((row) => row.join(",")).join("/");
