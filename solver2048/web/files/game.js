// A game as a list of steps, each a board with what the solution says of it and the move made there.

import { slide, withTile } from "./rules.js";

/**
 * Steps are {rows, answer, move}: `answer` is null until the service has said something, `move`
 * until one is made; a move without a step after it waits for its spawn.
 */
export class Game {
  constructor(rows) {
    this.steps = [{ rows, answer: null, move: null }];
  }

  get current() {
    return this.steps.at(-1);
  }

  get isWaitingForSpawn() {
    return this.current.move !== null;
  }

  /** The board to be seen: after a move that waits for its spawn, the afterstate. */
  get rows() {
    return this.current.move ? this.current.move.rows : this.current.rows;
  }

  get canTakeBack() {
    return this.isWaitingForSpawn || this.steps.length > 1;
  }

  /** Make a move; returns what `slide` does, null where it is illegal. */
  move(action) {
    const slid = this.isWaitingForSpawn ? null : slide(this.current.rows, action);
    if (slid) this.current.move = { action, reward: slid.reward, rows: slid.rows };
    return slid;
  }

  spawn({ cell, tile }) {
    this.steps.push({ rows: withTile(this.rows, cell, tile), answer: null, move: null });
  }

  takeBack() {
    if (!this.isWaitingForSpawn) this.steps.pop();
    this.current.move = null;
  }

  get lastMove() {
    const step = this.isWaitingForSpawn ? this.current : this.steps.at(-2);
    return step ? { action: step.move.action, loss: lossOf(step), best: bestOf(step) } : null;
  }

  /** Points of the game so far, by the rules, whatever is maximised. */
  get score() {
    return this.steps.reduce((sum, { move }) => sum + (move ? move.reward : 0), 0);
  }

  /**
   * The moves so far against optimal play. `expected` is what the whole game is worth as it stands,
   * `lost` what moves gave away, `luck` what spawns brought: expected = start + luck - lost.
   * Null where something needed for it is not known.
   */
  get summary() {
    const moved = this.steps.filter(({ move }) => move);
    const losses = moved.map(lossOf);
    const isKnown = losses.every((loss) => loss !== null);
    const lost = isKnown ? losses.reduce((sum, loss) => sum + loss, 0) : null;
    const expected = this.#expected();
    const start = valueOf(this.steps[0]);
    const luck = [lost, expected, start].includes(null) ? null : expected - start + lost;
    const optimal = losses.filter((loss) => loss === 0).length;
    return { losses, lost, expected, luck, optimal, moves: moved.length };
  }

  #expected() {
    const earned = this.steps.map((step) => step.move && chosenOf(step)?.reward);
    if (earned.slice(0, -1).some((reward) => reward === undefined)) return null;
    const before = earned.slice(0, -1).reduce((sum, reward) => sum + reward, 0);
    const last = this.isWaitingForSpawn ? chosenOf(this.current)?.value : valueOf(this.current);
    return last === undefined || last === null ? null : before + last;
  }
}

const valueOf = (step) => (step.answer && !step.answer.error ? step.answer.value : null);

/** What the solution says of the action chosen at a step. */
function chosenOf({ answer, move }) {
  return answer?.actions?.find(({ action }) => action === move.action);
}

function lossOf(step) {
  return chosenOf(step)?.loss ?? null;
}

function bestOf({ answer }) {
  return (answer?.actions ?? []).filter(({ best }) => best).map(({ action }) => action);
}
