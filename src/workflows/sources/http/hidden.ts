/** Hides in what a source says whatever proves who asks: what was sent is not always a secret as it was set. */
import { createMask, type Mask } from '../mask.ts';

export interface Hidden {
  /** From now on this is hidden as well, however it is written. */
  add(...texts: string[]): void;
  /** The same text with `***` in the place of each. */
  mask(text: string): string;
  /** The same error, with a message that is masked. */
  masked(error: unknown): unknown;
  /** How long the longest is: what is cut off is cut before it is masked, by so much more. */
  longest(): number;
}

/** @param secrets as they are set */
export function createHidden(secrets: readonly string[] = []): Hidden {
  const known = new Set(secrets);
  let made: Mask | undefined;
  function current(): Mask {
    made ??= createMask(new Map([...known].map((text) => [text, text])));
    return made;
  }
  const mask = (text: string) => current().apply(text);
  return {
    add(...texts) {
      for (const text of texts) known.add(text);
      made = undefined;
    },
    mask,
    masked(error) {
      if (!(error instanceof Error) || mask(error.message) === error.message) return error;
      error.stack = mask(error.stack ?? '');
      error.message = mask(error.message);
      return error;
    },
    longest: () => current().longest,
  };
}
