/** Bounds the time that the `matches` of a run take, in the thread that reads the records of all teams. */
import type { RE2JS } from 're2js';

/** A longer text is not searched. */
const MOST_CHARACTERS = 10_000;
/** A search with a pattern of this many instructions takes less than a microsecond for each character. */
const FREE_INSTRUCTIONS = 32;
/**
 * What larger patterns may take in a run, in characters times instructions: for its first texts, and then for each record. A
 * million took up to 25 ms.
 */
const MOST_AT_ONCE = 20_000_000;
const FOR_A_RECORD = 50_000;

export class Searches {
  #left = MOST_AT_ONCE;

  beginRecord(): void {
    this.#left = Math.min(MOST_AT_ONCE, this.#left + FOR_A_RECORD);
  }

  /** Whether a part of the text matches. Undefined if that would take too long: the text is not searched. */
  hasMatch(text: string, pattern: RE2JS): boolean | undefined {
    if (text.length > MOST_CHARACTERS) return undefined;
    const instructions = pattern.programSize();
    if (instructions <= FREE_INSTRUCTIONS) return pattern.test(text);
    const cost = text.length * instructions;
    if (cost > this.#left) return undefined;
    this.#left -= cost;
    // `test` builds an automaton. That is faster if it has few states, and five times slower if it has too many.
    return pattern.matcher(text).find();
  }
}
