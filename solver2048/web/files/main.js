// The page: what the player does, what is asked of the service, what is shown.

import { BoardView } from "./board_view.js";
import { Editor } from "./editor.js";
import { Game } from "./game.js";
import { boardText, emptyBoard, isOver, randomSpawn, randomStart, withTile } from "./rules.js";
import { askBoard, askMeta } from "./service.js";
import { formatsOf, ValuesView } from "./values_view.js";

const KEYS = {
  ArrowUp: "up", ArrowDown: "down", ArrowLeft: "left", ArrowRight: "right",
  w: "up", s: "down", a: "left", d: "right",
};
const SWIPE_PIXELS = 24;

const $ = (selector) => document.querySelector(selector);
const picker = $("#solution");
const boardView = new BoardView($("#board"), onCell);
const valuesView = new ValuesView(document, makeMove);
const editor = new Editor($("#editor"), readText);

let solutions = [];
let meta = null; // of the solution that is asked
let game = null;
let isEditing = false;
let misread = null; // why the text last given is no board
let reading = 0; // counts texts and new positions: an answer that comes late is for neither

// --- the position ------------------------------------------------------------------------------

/** Begin a game from a board; `answer` is what is known of it already. */
function begin(rows, answer = null) {
  game = new Game(rows);
  game.current.answer = answer;
  misread = null;
  reading++;
  boardView.show(rows);
  arrive();
}

/** A board was come to: ask for its values, show it all. */
function arrive() {
  if (!game.current.answer) ask(game.current);
  history.replaceState(null, "", permalink());
  refresh();
}

async function ask(step) {
  const asked = game;
  const answer = await askBoard(meta.name, boardText(step.rows));
  if (game !== asked) return;
  step.answer = answer;
  refresh();
  if (step === game.current && !game.isWaitingForSpawn) announceValue();
}

function refresh() {
  valuesView.show(game, formatsOf(meta), misread);
  boardView.allow(isEditing ? "all" : game.isWaitingForSpawn ? "empty" : "none");
  const best = game.current.answer?.actions?.[0];
  $("#take-back").disabled = isEditing || !game.canTakeBack;
  $("#play-best").disabled = isEditing || game.isWaitingForSpawn || !best;
  $("#hint").textContent = isEditing
    ? "Click a cell, or walk with arrow keys and type: + − or 1 for 2, 2 for 4, 3 for 8 … 0 empties it."
    : game.isWaitingForSpawn ? "Choose where the new tile appears."
    : "Arrow keys, W A S D, swipe, or the buttons of the actions. U takes back, B plays the best.";
  $("#spawn-tile").hidden = !isChoosing();
}

const permalink = () => `#s=${encodeURIComponent(meta.name)}&b=${boardText(game.current.rows)}`;

// --- play --------------------------------------------------------------------------------------

const isChoosing = () => $("input[name=spawns]:checked").value === "chosen";
const chosenTile = () => Number($("input[name=tile]:checked").value);

function makeMove(action) {
  if (isEditing) return;
  const slid = game.move(action);
  if (!slid) return;
  misread = null;
  const reward = slid.reward ? `, plus ${slid.reward}` : "";
  if (isChoosing()) {
    boardView.play(slid, null);
    refresh();
    boardView.focusCell();
    announce(`Moved ${action}${reward}. Choose where the new tile appears.`);
    return;
  }
  const spawn = randomSpawn(game.rows, meta.spawn4);
  game.spawn(spawn);
  boardView.play(slid, spawn);
  announce(`Moved ${action}${reward}. ${spawn.tile} at row ${spawn.cell[0] + 1}, column ${spawn.cell[1] + 1}.`);
  arrive();
}

function takeBack() {
  if (isEditing || !game.canTakeBack) return;
  game.takeBack();
  misread = null;
  boardView.show(game.rows);
  announce("Taken back.");
  arrive();
}

function playBest() {
  const best = game.current.answer?.actions?.[0];
  if (best) makeMove(best.action);
}

function newGame() {
  setEditing(false);
  begin(randomStart(meta.rows, meta.columns, meta.spawn4));
  announce("New game.");
}

// --- setting up --------------------------------------------------------------------------------

function setEditing(value) {
  isEditing = value;
  $("#editor").hidden = !value;
  $("#set-up").setAttribute("aria-pressed", String(value));
  $("#set-up").textContent = value ? "Play from here" : "Set up";
  if (!value) return;
  // A move that waits for its spawn is no position to change.
  if (game.isWaitingForSpawn) {
    game.takeBack();
    boardView.show(game.rows);
  }
  editor.offer(meta.largest_tile);
  editor.show(game.rows);
}

function setUp(rows) {
  begin(rows);
  editor.show(rows);
}

async function readText(text) {
  const turn = ++reading;
  const answer = await askBoard(meta.name, text);
  if (turn !== reading) return;
  const rows = answer.board ?? answer.error?.board;
  if (rows) {
    begin(rows, answer);
  } else {
    misread = answer.error;
    refresh();
  }
  announceValue();
}

function onCell(cell, event) {
  const tile = game.rows[cell[0]][cell[1]];
  if (isEditing) {
    const isBackward = event.shiftKey || event.type === "contextmenu";
    setUp(withTile(game.rows, cell, editor.tileAfter(tile, isBackward)));
  } else {
    placeSpawn({ cell, tile: chosenTile() });
  }
}

/** Chance takes over at once, also where a tile is waited for. */
function changeSpawns() {
  if (game.isWaitingForSpawn && !isChoosing()) placeSpawn(randomSpawn(game.rows, meta.spawn4));
  else refresh();
}

function placeSpawn(spawn) {
  game.spawn(spawn);
  boardView.show(game.rows);
  arrive();
}

// --- words -------------------------------------------------------------------------------------

function announce(text) {
  $("#announcer").textContent = text;
}

function announceValue() {
  const { answer, rows } = game.current;
  const error = misread ?? answer?.error;
  const before = $("#announcer").textContent.split(" | ")[0];
  const formats = formatsOf(meta);
  if (error) announce(`${before} | ${error.message}`);
  else if (isOver(rows)) announce(`${before} | Game over.`);
  else announce(`${before} | Value ${formats.value(answer.value)}, best: ${answer.actions[0].action}.`);
}

// --- events ------------------------------------------------------------------------------------

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || !game) return;
  const { target, key } = event;
  if (target.matches("input, select, textarea")) return;
  const cell = target.closest(".cell");
  if (cell && isEditing) onEditKey(event, cell);
  else if (cell && game.isWaitingForSpawn && (key === "2" || key === "4")) {
    placeSpawn({ cell: cell.dataset.cell.split(",").map(Number), tile: Number(key) });
  } else if (KEYS[key] ?? KEYS[key.toLowerCase()]) {
    event.preventDefault();
    makeMove(KEYS[key] ?? KEYS[key.toLowerCase()]);
  } else if (key === "u" || key === "Backspace") takeBack();
  else if (key === "b") playBest();
}

function onEditKey(event, button) {
  const cell = button.dataset.cell.split(",").map(Number);
  const tile = editor.tileOfKey(event.key, game.rows[cell[0]][cell[1]]);
  if (tile === null) return;
  event.preventDefault();
  setUp(withTile(game.rows, cell, tile));
}

function watchSwipes(element) {
  let start = null;
  element.addEventListener("pointerdown", (event) => {
    start = [event.clientX, event.clientY];
  });
  window.addEventListener("pointerup", (event) => {
    if (!start || isEditing) return;
    const [x, y] = [event.clientX - start[0], event.clientY - start[1]];
    start = null;
    if (Math.max(Math.abs(x), Math.abs(y)) < SWIPE_PIXELS) return;
    makeMove(Math.abs(x) > Math.abs(y) ? (x < 0 ? "left" : "right") : y < 0 ? "up" : "down");
  });
}

async function copyLink() {
  try {
    await navigator.clipboard.writeText(location.href);
    announce("Link copied.");
    $("#copy-link").textContent = "Copied";
  } catch {
    $("#copy-link").textContent = "See the address";
  }
  setTimeout(() => ($("#copy-link").textContent = "Copy link"), 1500);
}

/** Open what the address names: a solution and a board; a new game where it names none. */
async function openAddress() {
  const named = new URLSearchParams(location.hash.slice(1));
  const found = solutions.find(({ name }) => name === named.get("s"));
  const previous = meta;
  meta = found ?? meta ?? solutions[0];
  picker.value = meta.name;
  const text = named.get("b");
  if (text === null) return newGame();
  setEditing(false);
  // What another solution said of a game is nothing to show as this one's.
  if (meta !== previous) {
    game = new Game(emptyBoard(meta.rows, meta.columns));
    misread = null;
    boardView.show(game.rows);
  }
  refresh();
  await readText(text);
}

function pickSolution() {
  const previous = meta;
  meta = solutions.find(({ name }) => name === picker.value);
  const isSameBoard = previous.shape === meta.shape;
  if (isSameBoard && !game.isWaitingForSpawn) begin(game.current.rows);
  else newGame();
  if (isEditing) editor.offer(meta.largest_tile);
}

async function main() {
  const answer = await askMeta();
  if (answer.error) {
    $("#hint").textContent = answer.error.message;
    return;
  }
  solutions = answer.solutions;
  const names = solutions.map((solution) => formatsOf(solution).name);
  picker.replaceChildren(...solutions.map((solution, i) => {
    const isAmbiguous = names.indexOf(names[i]) !== names.lastIndexOf(names[i]);
    return new Option(isAmbiguous ? `${names[i]} (${solution.name})` : names[i], solution.name);
  }));
  picker.addEventListener("change", pickSolution);
  document.addEventListener("keydown", onKey);
  window.addEventListener("hashchange", openAddress);
  $("#new-game").addEventListener("click", newGame);
  $("#take-back").addEventListener("click", takeBack);
  $("#play-best").addEventListener("click", playBest);
  $("#copy-link").addEventListener("click", copyLink);
  $("#set-up").addEventListener("click", () => {
    setEditing(!isEditing);
    refresh();
  });
  for (const input of document.querySelectorAll("input[name=spawns]")) {
    input.addEventListener("change", changeSpawns);
  }
  for (const input of document.querySelectorAll(".choice input")) {
    // After a click with a pointer arrow keys are moves again.
    input.addEventListener("click", (event) => event.detail && input.blur());
  }
  watchSwipes($("#board"));
  await openAddress();
  document.body.dataset.ready = "yes";
}

main();
