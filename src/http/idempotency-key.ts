/** The `idempotency-key` header: a repeated call with the same key is answered as the first was. */
import { createHash } from 'node:crypto';
import { canonicalJson } from '../model/same-json.ts';
import type { Call, Parameter } from './route.ts';
import { invalid } from './values.ts';

const MAX_IDEMPOTENCY_KEY = 255;

/** Describes the header. */
export const IDEMPOTENCY_KEY: Parameter = {
  name: 'idempotency-key',
  in: 'header',
  description:
    'A call with the same key within 24 hours is answered as the first was, and makes nothing. With another body it is ' +
    'refused',
  schema: { type: 'string', minLength: 1, maxLength: MAX_IDEMPOTENCY_KEY },
};

/**
 * The key, or null when there is none. The contract's operations take an empty one for none.
 *
 * @throws Problem `field_invalid` when it is empty or too long
 */
export function idempotencyKeyFrom({
  request,
  operation,
}: Pick<Call, 'request' | 'operation'>): string | null {
  const value = request.headers['idempotency-key'];
  if (typeof value !== 'string' || (value === '' && operation.frozen === true)) return null;
  if (value !== '' && value.length <= MAX_IDEMPOTENCY_KEY) return value;
  return invalid(
    `The header \`idempotency-key\` must have 1 to ${MAX_IDEMPOTENCY_KEY} characters, or be left out`,
  );
}

/**
 * The same, together with a hash of the fields of the body, in whatever order: the key is refused for others.
 *
 * @throws Problem as `idempotencyKeyFrom`
 */
export function keyOfFields(
  call: Pick<Call, 'request' | 'operation'>,
  fields: Readonly<Record<string, unknown>>,
): { key: string; sent: string } | null {
  const key = idempotencyKeyFrom(call);
  if (key === null) return null;
  return { key, sent: createHash('sha256').update(canonicalJson(fields)).digest('hex') };
}
