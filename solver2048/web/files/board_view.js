// The board on the page: cells that can be chosen, and tiles that slide above them.

import { withTile } from "./rules.js";

const SLIDE_MS = 110;
const isStill = window.matchMedia("(prefers-reduced-motion: reduce)");

export class BoardView {
  /** onCell([row, column], event) is called for a cell that is chosen. */
  constructor(element, onCell) {
    this.element = element;
    this.onCell = onCell;
    this.rows = [];
    this.timer = null;
    this.tiles = new Map();
    element.addEventListener("click", (event) => this.#choose(event));
    element.addEventListener("contextmenu", (event) => this.#choose(event));
    element.addEventListener("keydown", (event) => this.#walk(event));
  }

  /** Show a board as it is. */
  show(rows) {
    clearTimeout(this.timer);
    this.timer = null;
    if (!this.rows.length || rows.length !== this.rows.length || rows[0].length !== this.rows[0].length) {
      this.#build(rows.length, rows[0].length);
    }
    this.#name(rows);
    this.layer.replaceChildren();
    this.tiles.clear();
    rows.forEach((row, i) => row.forEach((tile, j) => {
      if (tile) this.#add([i, j], tile);
    }));
  }

  /** Show a move, then its spawn if there is one. */
  play(slid, spawn) {
    if (this.timer) this.show(this.rows);
    const after = spawn ? withTile(slid.rows, spawn.cell, spawn.tile) : slid.rows;
    for (const { from, to } of slid.paths) place(this.tiles.get(String(from)), to);
    this.#name(after); // at once: a cell may be focused, and read, while tiles slide
    const finish = () => {
      this.show(after);
      for (const cell of slid.merged) this.tiles.get(String(cell)).classList.add("merged");
      if (spawn) this.tiles.get(String(spawn.cell)).classList.add("spawned");
    };
    if (isStill.matches) finish();
    else this.timer = setTimeout(finish, SLIDE_MS);
  }

  /** Which cells can be chosen: "none", the "empty" ones or "all". */
  allow(which) {
    const isFocused = this.element.contains(document.activeElement);
    const allowed = [];
    this.rows.forEach((row, i) => row.forEach((tile, j) => {
      const cell = this.cells[i][j];
      const isAllowed = which === "all" || (which === "empty" && !tile);
      cell.tabIndex = -1;
      cell.setAttribute("aria-disabled", String(!isAllowed));
      if (isAllowed) allowed.push(cell);
    }));
    this.element.dataset.allow = which;
    if (!allowed.length) return;
    const kept = allowed.find((cell) => cell === document.activeElement) ?? allowed[0];
    kept.tabIndex = 0;
    if (isFocused) kept.focus();
  }

  focusCell() {
    this.element.querySelector('.cell[tabindex="0"]')?.focus();
  }

  /** Have the cells say what a board holds. */
  #name(rows) {
    this.rows = rows;
    rows.forEach((row, i) => row.forEach((tile, j) => {
      this.cells[i][j].setAttribute("aria-label", `row ${i + 1}, column ${j + 1}: ${tile || "empty"}`);
    }));
  }

  #build(height, width) {
    this.element.style.setProperty("--rows", height);
    this.element.style.setProperty("--columns", width);
    this.element.setAttribute("aria-label", `Board, ${height} rows, ${width} columns`);
    this.cells = Array.from({ length: height }, (_, i) => Array.from({ length: width }, (_, j) => {
      const cell = document.createElement("button");
      cell.type = "button";
      cell.className = "cell";
      cell.dataset.cell = `${i},${j}`;
      place(cell, [i, j]);
      return cell;
    }));
    this.layer = document.createElement("div");
    this.layer.className = "tiles";
    this.layer.setAttribute("aria-hidden", "true");
    this.element.replaceChildren(...this.cells.flat(), this.layer);
  }

  #add(cell, tile) {
    const element = document.createElement("div");
    const face = document.createElement("span");
    element.className = "tile";
    element.dataset.exponent = Math.log2(tile);
    element.dataset.digits = String(tile).length;
    face.textContent = tile;
    element.append(face);
    place(element, cell);
    this.layer.append(element);
    this.tiles.set(String(cell), element);
  }

  #choose(event) {
    const cell = event.target.closest(".cell");
    if (!cell || cell.getAttribute("aria-disabled") === "true") return;
    event.preventDefault();
    this.onCell(cell.dataset.cell.split(",").map(Number), event);
  }

  /** Arrow keys walk over the cells that can be chosen. */
  #walk(event) {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    const cell = event.target.closest(".cell");
    if (!step || !cell || this.element.dataset.allow === "none") return;
    event.preventDefault();
    event.stopPropagation();
    let [row, column] = cell.dataset.cell.split(",").map(Number);
    do {
      row += step[0];
      column += step[1];
    } while (this.cells[row]?.[column]?.getAttribute("aria-disabled") === "true");
    const next = this.cells[row]?.[column];
    if (!next) return;
    cell.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  }
}

function place(element, [row, column]) {
  element.style.transform = `translate(${100 * column}%, ${100 * row}%)`;
}
