/** A value that several components share, optionally kept in the browser's storage. */
import { useSyncExternalStore } from 'react';

export class Store<Value> {
  #value: Value;
  readonly #listeners = new Set<() => void>();

  constructor(value: Value) {
    this.#value = value;
  }

  get value(): Value {
    return this.#value;
  }

  set(value: Value): void {
    if (Object.is(value, this.#value)) return;
    this.#value = value;
    for (const listener of this.#listeners) listener();
  }

  /** The current value; the component re-renders when it changes. */
  readonly use = (): Value => useSyncExternalStore(this.#subscribe, () => this.#value);

  readonly #subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };
}

/** One of a few words, kept in local storage; the first one by default. */
export class Remembered<Word extends string> extends Store<Word> {
  readonly #key: string;

  constructor(key: string, words: readonly [Word, ...Word[]]) {
    super(words.find((word) => word === stored(key)) ?? words[0]);
    this.#key = key;
  }

  override set(word: Word): void {
    super.set(word);
    try {
      localStorage.setItem(this.#key, word);
    } catch {
      // Storage is blocked, so the choice lasts until the next reload.
    }
  }
}

function stored(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}
