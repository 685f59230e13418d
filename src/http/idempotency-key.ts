/** The `idempotency-key` header: a repeated call with the same key is answered as the first was. */
import { Problem } from '../model/error.ts';
import type { Parameter } from './route.ts';

const MAX_IDEMPOTENCY_KEY = 255;

/** Describes the header. */
export const IDEMPOTENCY_KEY: Parameter = {
  name: 'idempotency-key',
  in: 'header',
  description: 'A call with the same key within 24 hours is answered as the first was, and makes nothing',
  schema: { type: 'string', minLength: 1, maxLength: MAX_IDEMPOTENCY_KEY },
};

/**
 * The key, or null when there is none.
 *
 * @throws Problem `field_invalid` when it is too long
 */
export function idempotencyKeyFrom(value: string | string[] | undefined): string | null {
  if (typeof value !== 'string' || value === '') return null;
  if (value.length > MAX_IDEMPOTENCY_KEY) {
    throw new Problem('field_invalid', {
      sentence: `The header \`idempotency-key\` must be at most ${MAX_IDEMPOTENCY_KEY} characters long`,
    });
  }
  return value;
}
