// Setting up a position: tiles to choose from, cells to put them in, text to paste.

export class Editor {
  /** onText(text) is called with a board as text. */
  constructor(root, onText) {
    this.palette = root.querySelector('[data-show="palette"]');
    this.input = root.querySelector("input[name=text]");
    // A line of input drops the ends of lines that are pasted, and with them the rows.
    this.input.addEventListener("paste", (event) => {
      const text = event.clipboardData.getData("text").trim();
      if (!text.includes("\n")) return;
      event.preventDefault();
      this.input.value = text.split(/\s*\n\s*/).join(" / ");
    });
    root.querySelector("form").addEventListener("submit", (event) => {
      event.preventDefault();
      onText(this.input.value);
    });
  }

  /** Offer the tiles of a solution. */
  offer(largestTile) {
    if (this.largestTile === largestTile) return;
    this.largestTile = largestTile;
    const tiles = ["cycle", 0];
    for (let tile = 2; tile <= largestTile; tile *= 2) tiles.push(tile);
    this.palette.replaceChildren(...tiles.map((tile) => paletteEntry(tile, tile === "cycle")));
  }

  /** Show a board as text. */
  show(rows) {
    this.input.value = rows.map((row) => row.map((tile) => tile || ".").join(" ")).join(" / ");
  }

  get chosen() {
    const { value } = this.palette.querySelector("input:checked");
    return value === "cycle" ? null : Number(value);
  }

  /** The tile that a cell gets when it is chosen: the palette's, or the next one, or the one before. */
  tileAfter(tile, isBackward) {
    if (this.chosen !== null) return this.chosen;
    if (isBackward) return tile === 0 ? this.largestTile : tile === 2 ? 0 : tile / 2;
    return tile === 0 ? 2 : tile >= this.largestTile ? 0 : 2 * tile;
  }

  /** The tile that a key puts into a cell that holds `tile`; null for other keys. */
  tileOfKey(key, tile) {
    if (key === "Backspace" || key === "Delete" || key === "0" || key === ".") return 0;
    if (key === "+" || key === "=") return tile === 0 ? 2 : Math.min(2 * tile, this.largestTile);
    if (key === "-") return tile <= 2 ? 0 : tile / 2;
    // A digit is an exponent: 1 puts a 2, 2 a 4, 3 an 8.
    return /^[1-9]$/.test(key) ? Math.min(2 ** Number(key), this.largestTile) : null;
  }
}

function paletteEntry(tile, isChecked) {
  const label = document.createElement("label");
  const input = document.createElement("input");
  const face = document.createElement("span");
  Object.assign(input, { type: "radio", name: "palette", value: tile, checked: isChecked });
  face.textContent = tile === "cycle" ? "cycle" : tile === 0 ? "empty" : tile;
  if (tile) face.dataset.exponent = tile === "cycle" ? "" : Math.log2(tile);
  label.append(input, face);
  return label;
}
