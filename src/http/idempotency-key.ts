/** The `idempotency-key` header: a call that is repeated with the same key is answered as the first was. */
import { Problem } from '../model/error.ts';

export const MAX_IDEMPOTENCY_KEY = 255;

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
