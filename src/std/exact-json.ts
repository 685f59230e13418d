/** Parses JSON without rounding its numbers. */

declare global {
  // Node has these functions (TC39 "JSON.parse source text access"), but TypeScript does not declare them yet.
  interface JSON {
    rawJSON(text: string): RawJson;
    isRawJSON(value: unknown): value is RawJson;
  }
}
interface RawJson {
  rawJSON: string;
}

/** Parses JSON text. Keeps the digits of numbers that a double would round, so that serializing the result is exact. */
export function parseExactly(text: string): unknown {
  return LOSES_DIGITS.test(text) ? parseAsWritten(text) : JSON.parse(text);
}

/** Parses JSON text. Keeps how every number is written: serializing `1.0` returns `1.0`. */
export function parseAsWritten(text: string): unknown {
  return JSON.parse(text, keepDigits);
}

/** Matches numbers that a double may change: 16 digits in a row or around a point, or a large exponent. */
export const LOSES_DIGITS = /[\d.]{16}|[eE][+-]?\d{3}/;

/** A reviver for `JSON.parse` that preserves the text of numbers that a double would change. */
function keepDigits(_key: string, value: unknown, context?: { source?: string }): unknown {
  if (typeof value !== 'number' || context?.source === undefined) return value;
  return JSON.stringify(value) === context.source ? value : JSON.rawJSON(context.source);
}
