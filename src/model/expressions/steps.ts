/** Bounds the time of an evaluation. */
import { StepsMistake } from './mistakes.ts';

/**
 * Maximum number of steps of one evaluation, which take a few milliseconds. A part of an expression that is evaluated
 * for an item of a list is one step, and so are 16 characters of a text that is read.
 */
const MAX_STEPS = 200_000;

/** Counts what an evaluation does, because lists in lists and long texts multiply. */
export class Steps {
  #left = MAX_STEPS;

  /** @throws StepsMistake */
  take(count: number): void {
    this.#left -= count;
    if (this.#left < 0) {
      throw new StepsMistake(`The evaluation takes more than ${MAX_STEPS.toLocaleString('en')} steps`);
    }
  }

  /**
   * Counts a search. JavaScript compares every character of the text with every character of a part that almost
   * occurs everywhere.
   */
  search(text: string, part: string): void {
    this.take((text.length * part.length) / 1_024);
  }

  /** Counts reading a text or a list. */
  read(value: unknown): void {
    if (typeof value === 'string') this.take(1 + (value.length >> 4));
    else this.take(Array.isArray(value) ? 1 + (value.length >> 3) : 1);
  }
}
