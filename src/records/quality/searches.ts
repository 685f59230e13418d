/** Bounds the time that the `matches` of a run take, in the thread that reads the records of all teams. */
import type { RE2JS } from 're2js';

/** A longer text is not searched. */
const MOST_CHARACTERS = 10_000;
/** A search with a pattern of this many instructions takes less than a microsecond for each character. */
const FREE_INSTRUCTIONS = 32;
/**
 * Processor time of a run's larger patterns, in microseconds: for its first texts, and then for each record. Most of these
 * patterns take a few microseconds for a text. `[ab]*a[ab]{180}9` takes eight for each character of a text of `a` and
 * `b`, because the automaton of the library then gets a new state with each character.
 */
const MOST_AT_ONCE = 500_000;
const FOR_A_RECORD = 50;

/** @returns the processor time of this thread in microseconds. Unlike the time of day, it does not grow while others work */
function processorTime(): number {
  const { user, system } = process.threadCpuUsage();
  return user + system;
}

export class Searches {
  readonly #now: () => number;
  #left = MOST_AT_ONCE;

  /** @param now processor time in microseconds */
  constructor(now = processorTime) {
    this.#now = now;
  }

  beginRecord(): void {
    this.#left = Math.min(MOST_AT_ONCE, this.#left + FOR_A_RECORD);
  }

  /** Whether a part of the text matches. Undefined if that would take too long: the text is not searched. */
  hasMatch(text: string, pattern: RE2JS): boolean | undefined {
    if (text.length > MOST_CHARACTERS) return undefined;
    if (pattern.programSize() <= FREE_INSTRUCTIONS) return pattern.test(text);
    if (this.#left <= 0) return undefined;
    const start = this.#now();
    const found = pattern.test(text);
    this.#left -= this.#now() - start;
    return found;
  }
}
