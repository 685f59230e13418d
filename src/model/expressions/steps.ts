/** Bounds the time of an evaluation. */
import { StepsMistake } from './mistakes.ts';

/**
 * Maximum number of steps of one evaluation, which take a few milliseconds. A part of an expression that is evaluated
 * for an item of a list is one step, and so are 16 characters of a text that is read.
 */
const MAX_STEPS = 200_000;
/** Compiling a pattern takes up to 15 µs for each of its characters. */
const STEPS_OF_PATTERN_CHARACTER = 20;

/** Counts what an evaluation does, because lists in lists and long texts multiply. */
export class Steps {
  #left = MAX_STEPS;
  readonly #patterns = new Set<string>();

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

  /**
   * Counts compiling a pattern, once for each evaluation: what earlier evaluations have compiled must not decide whether
   * this one has steps left.
   */
  pattern(source: string): void {
    if (this.#patterns.has(source)) return;
    this.#patterns.add(source);
    this.take(source.length * STEPS_OF_PATTERN_CHARACTER);
  }

  /** Counts reading a text or a list. */
  read(value: unknown): void {
    if (typeof value === 'string') this.take(1 + (value.length >> 4));
    else this.take(Array.isArray(value) ? 1 + (value.length >> 3) : 1);
  }
}
