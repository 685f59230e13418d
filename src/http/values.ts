/** Checks on single values that callers send, in a query or a body. Each throws `field_invalid` with a sentence. */
import { Problem } from '../model/error.ts';
import { parseIsoTime } from '../std/clock.ts';
import { nearest } from '../std/nearest.ts';

/** @throws Problem `field_invalid` with the sentence, always */
export function invalid(sentence: string): never {
  throw new Problem('field_invalid', { sentence });
}

/** The value as one of the names; the refusal suggests the nearest. */
export function oneOf<T extends string>(what: string, value: unknown, names: readonly T[]): T {
  const known = names.find((one) => one === value);
  if (known !== undefined) return known;
  const meant = typeof value === 'string' ? nearest(value, names) : undefined;
  const advice = meant === undefined ? '' : `. Did you mean \`${meant}\`?`;
  return invalid(`${what} takes ${names.join(', ')}, or is left out${advice}`);
}

/** The value as epoch milliseconds: it must be a time in ISO 8601 with its zone. */
export function timeFrom(value: unknown, what: string): number {
  const ms = typeof value === 'string' ? parseIsoTime(value) : undefined;
  return ms ?? invalid(`${what} must be a time in ISO 8601 with its zone, such as 2026-11-20T10:00Z`);
}
