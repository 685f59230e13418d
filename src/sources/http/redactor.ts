/** Masks credentials in what a source logs and reports, including those derived from secrets or received during a run. */
import { createMask, type Mask } from '../mask.ts';

export interface Redactor {
  /** Masks these texts too from now on, in all forms of `mask.ts`. */
  add(...texts: string[]): void;
  /** The text with `***` for each credential. */
  mask(text: string): string;
  /** The same error, with its message and stack masked. */
  masked(error: unknown): unknown;
  /** The length of the longest masked text. Within so many characters of a cut, part of one may remain unmasked. */
  longest(): number;
}

/** @param secrets the first texts to mask */
export function createRedactor(secrets: readonly string[] = []): Redactor {
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
