// The panel of values: what a position is worth, its actions, and the game against optimal play.

import { ACTIONS, isOver, slide } from "./rules.js";

const ARROWS = { up: "↑", down: "↓", left: "←", right: "→" };

const OUTSIDE = {
  unreachable_board: ["Unreachable", "No game can come to this board, so the solution has no value for it."],
  not_solved: ["Not solved yet", "The solution does not reach this board yet."],
  impossible_board: ["Impossible", "A tile is larger than this board can ever hold."],
  malformed_board: ["Not a board", "The text cannot be read as a board of this solution."],
  solution_damaged: ["Damaged", "A stored part that this board needs is damaged."],
};

/** How values of a solution are written: points, or percentages for the probability of a tile. */
export function formatsOf(meta) {
  const number = (digits) => new Intl.NumberFormat("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  const isTile = meta.objective !== "score";
  const [scale, digits, unit] = isTile ? [100, 3, " %"] : [1, 2, ""];
  const format = number(digits);
  const value = (x) => format.format(scale * x) + unit;
  const change = (x) => {
    const text = format.format(Math.abs(scale * x));
    const isNone = !/[1-9]/.test(text);
    return (isNone ? "±" : x < 0 ? "−" : "+") + text + (isTile ? " pp" : "");
  };
  const tile = isTile ? meta.objective.split(":")[1] : null;
  return {
    isTile,
    tile,
    value,
    change,
    loss: (x) => (x === 0 ? "0" : change(-x)),
    lossWords: (x) => `${value(x).replace(" %", "")} ${isTile ? "percentage points" : "points"}`,
    caption: isTile
      ? `probability of ever holding a ${tile}, under optimal play`
      : "expected score still to come, under optimal play",
    total: isTile ? `Chance of ${tile}` : "Expected total",
    name: isTile ? `${meta.rows}×${meta.columns}, reach ${tile}` : `${meta.rows}×${meta.columns}, score`,
  };
}

export class ValuesView {
  constructor(root, onAction) {
    this.find = (name) => root.querySelector(`[data-show="${name}"]`);
    this.buttons = Object.fromEntries(ACTIONS.map((action) => [action, this.#button(action, onAction)]));
    this.find("actions").replaceChildren(...Object.values(this.buttons));
  }

  /** Show a game: `formats` of `formatsOf`, and an error that came in place of a board, if any. */
  show(game, formats, misread) {
    const { answer, rows } = game.current;
    this.#value(answer, formats);
    this.#notice(misread ?? answer?.error, game);
    const known = new Map((answer?.actions ?? []).map((found) => [found.action, found]));
    for (const action of ACTIONS) {
      const isLegal = !game.isWaitingForSpawn && slide(rows, action) !== null;
      const isChosen = game.current.move?.action === action;
      this.#action(action, known.get(action), isLegal, isChosen, answer, formats);
    }
    this.#lastMove(game, formats);
    this.#summary(game, formats);
  }

  #button(action, onAction) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "action";
    button.dataset.action = action;
    for (const part of ["arrow", "name", "worth", "loss", "bar"]) {
      const span = document.createElement("span");
      span.className = part;
      button.append(span);
    }
    button.querySelector(".arrow").textContent = ARROWS[action];
    button.querySelector(".bar").append(document.createElement("i"));
    button.addEventListener("click", () => onAction(action));
    return button;
  }

  #value(answer, formats) {
    const isKnown = answer && !answer.error;
    this.find("value").textContent = isKnown ? formats.value(answer.value) : "–";
    this.find("caption").textContent = formats.caption;
  }

  #notice(error, game) {
    const notice = this.find("notice");
    const isGameOver = game.current.answer && !error && !game.isWaitingForSpawn && isOver(game.current.rows);
    notice.hidden = !error && !isGameOver;
    notice.dataset.code = error ? error.code : isGameOver ? "game_over" : "";
    if (notice.hidden) return;
    const [title, text] = error
      ? OUTSIDE[error.code] ?? ["No answer", ""]
      : ["Game over", `No move is left. The score is ${game.score}.`];
    notice.querySelector("strong").textContent = title;
    notice.querySelector("span").textContent = text;
    notice.querySelector("small").textContent = error ? error.message : "";
  }

  #action(action, found, isLegal, isChosen, answer, formats) {
    const button = this.buttons[action];
    const part = (name) => button.querySelector(`.${name}`);
    const top = formats.isTile ? 1 : answer?.value;
    button.disabled = !isLegal;
    button.classList.toggle("best", Boolean(found?.best));
    button.classList.toggle("chosen", isChosen);
    button.dataset.loss = found ? gradeOf(found.loss, answer.value) : "";
    part("name").textContent = action;
    part("worth").textContent = found ? formats.value(found.value) : isLegal ? "–" : "illegal";
    part("loss").textContent = found ? (found.best ? "best" : formats.loss(found.loss)) : "";
    part("bar").firstChild.style.width = found && top ? `${Math.max(0.5, (100 * found.value) / top)}%` : "0";
    const words = found
      ? `${formats.value(found.value)}, ${found.best ? "best" : `loses ${formats.lossWords(found.loss)}`}`
      : isLegal ? "value unknown" : "illegal";
    button.setAttribute("aria-label", `${action}: ${words}`);
  }

  #lastMove(game, formats) {
    const move = game.lastMove;
    const element = this.find("last-move");
    element.dataset.loss = move && move.loss !== null ? gradeOf(move.loss, 1) : "";
    if (!move) element.textContent = "No move yet.";
    else if (move.loss === null) element.textContent = `${move.action}: its value is not known`;
    else if (move.loss === 0) element.textContent = `${move.action}: optimal`;
    else {
      const better = move.best.join(" or ");
      element.textContent = `${move.action}: lost ${formats.lossWords(move.loss)} (best: ${better})`;
    }
  }

  #summary(game, formats) {
    const { losses, lost, expected, luck, optimal, moves } = game.summary;
    const set = (name, x, format) => {
      this.find(name).textContent = x === null ? "–" : format(x);
    };
    set("score", game.score, (x) => x.toLocaleString("en"));
    set("expected", expected, formats.value);
    this.find("expected-name").textContent = formats.total;
    set("lost", lost, formats.loss);
    set("luck", luck, formats.change);
    set("optimal", optimal, (x) => `${x} of ${moves}`);
    const worst = Math.max(...losses.map((loss) => loss ?? 0), 0);
    this.find("strip").replaceChildren(...losses.slice(-80).map((loss) => {
      const bar = document.createElement("i");
      bar.style.height = `${loss ? 20 + (80 * loss) / worst : 8}%`;
      bar.className = loss === null ? "unknown" : loss ? "lossy" : "optimal";
      return bar;
    }));
  }
}

/** How much a loss weighs against what there was to lose. */
function gradeOf(loss, value) {
  if (loss === 0) return "none";
  return loss < 0.01 * value ? "small" : loss < 0.05 * value ? "some" : "large";
}
