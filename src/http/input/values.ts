/** Reads values that callers send: IDs in paths, names, times, `idempotency-key`. */
import { createHash } from 'node:crypto';
import { Problem } from '../../model/error.ts';
import { canonicalJson } from '../../model/same-json.ts';
import { isWorkflowId } from '../../model/workflow.ts';
import { missingDay, parseIsoTime } from '../../std/clock.ts';
import { nearest } from '../../std/nearest.ts';
import type { Call, KeyedCall, Parameter } from '../route.ts';

/** Always throws Problem `field_invalid` with the sentence. */
export function invalid(sentence: string): never {
  throw new Problem('field_invalid', { sentence });
}

/** The value as one of the names. The error suggests the nearest name. */
export function oneOf<T extends string>(what: string, value: unknown, names: readonly T[]): T {
  const known = names.find((one) => one === value);
  if (known !== undefined) return known;
  const meant = typeof value === 'string' ? nearest(value, names) : undefined;
  const advice = meant === undefined ? '' : `. Did you mean \`${meant}\`?`;
  return invalid(`${what} must be one of ${names.join(', ')}${advice}`);
}

/** The value as a whole number within the bounds. */
export function wholeFrom(
  value: unknown,
  what: string,
  { least, most }: { least: number; most: number },
): number {
  if (Number.isInteger(value) && Number(value) >= least && Number(value) <= most) return Number(value);
  return invalid(`${what} must be a whole number from ${least} to ${most}`);
}

/** The value, an ISO 8601 time with its zone, as epoch milliseconds. */
export function timeFrom(value: unknown, what: string): number {
  const text = typeof value === 'string' ? value : '';
  const ms = parseIsoTime(text);
  if (ms !== undefined) return ms;
  return invalid(
    `${what} must be an ISO 8601 time with its zone, such as 2026-11-20T10:00Z${missingDay(text)}`,
  );
}

/**
 * @param text undefined if the percent-encoding of the path is invalid
 * @param sentence replaces the sentence of the error table
 * @throws Problem `workflow_not_found`
 */
export function workflowIdFrom(text: string | undefined, sentence?: string): string {
  if (text === undefined || !isWorkflowId(text) || !text.isWellFormed()) {
    throw new Problem('workflow_not_found', sentence === undefined ? {} : { sentence });
  }
  return text;
}

/** Whether the text has the form of a generated ID with this prefix, such as `wh_…`. */
export function isGeneratedId(prefix: string, text: string | undefined): text is string {
  return text !== undefined && text.length <= 64 && new RegExp(`^${prefix}_[0-9a-z]+$`).test(text);
}

/** Nouns by prefix of their IDs. */
const NOUNS = {
  dlv: 'delivery',
  evt: 'event',
  feed: 'feed',
  insp: 'inspector',
  job: 'job',
  key: 'key',
  rpl: 'replay',
  rty: 'retry',
  team: 'team',
  wh: 'webhook',
} as const;

/** @throws Problem `…_not_found` if the text cannot be an ID with this prefix */
export function idFrom(prefix: keyof typeof NOUNS, text: string | undefined): string {
  if (!isGeneratedId(prefix, text)) throw new Problem(`${NOUNS[prefix]}_not_found`);
  return text;
}

/** The ID in the path, with the caller's team. @throws Problem as `idFrom` */
export function keyOfPath(
  { caller, params }: Pick<KeyedCall, 'caller' | 'params'>,
  prefix: keyof typeof NOUNS,
): { teamId: string; id: string } {
  return { teamId: caller.teamId, id: idFrom(prefix, params[`${NOUNS[prefix]}Id`]) };
}

const MAX_IDEMPOTENCY_KEY = 255;

export const IDEMPOTENCY_KEY: Parameter = {
  name: 'idempotency-key',
  in: 'header',
  description:
    'Unique key of the call. Repeating the call with the same key within 24 hours returns the result of the first call ' +
    'and creates nothing. Reusing the key with a different body fails with 422',
  schema: { type: 'string', minLength: 1, maxLength: MAX_IDEMPOTENCY_KEY },
};

/** For operations that take no body. */
export const IDEMPOTENCY_KEY_WITHOUT_BODY: Parameter = {
  ...IDEMPOTENCY_KEY,
  description:
    'Unique key of the call. Repeating the call with the same key within 24 hours returns the result of the first call ' +
    'and creates nothing',
};

/**
 * The key, or null if there is none. For operations of the contract, an empty key counts as none.
 *
 * @throws Problem `field_invalid` if it is empty or too long
 */
export function idempotencyKeyFrom({
  request,
  operation,
}: Pick<Call, 'request' | 'operation'>): string | null {
  const value = request.headers['idempotency-key'];
  if (typeof value !== 'string' || (value === '' && operation.frozen === true)) return null;
  if (value !== '' && value.length <= MAX_IDEMPOTENCY_KEY) return value;
  return invalid(`The header \`idempotency-key\` must have 1 to ${MAX_IDEMPOTENCY_KEY} characters`);
}

/**
 * The key, and a hash of the fields of the body, whose order does not matter. Reusing a key with other fields is
 * refused.
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

/** The names in an optional array, each once; undefined without one. @throws Problem `field_invalid` */
export function namesFrom<T extends string>(
  value: unknown,
  field: string,
  names: readonly T[],
): T[] | undefined {
  if (value === undefined) return undefined;
  if (!Array.isArray(value) || value.length === 0) {
    return invalid(`\`${field}\` must be a non-empty array of ${names.join(', ')}`);
  }
  return [...new Set(value.map((name, at) => oneOf(`\`${field}[${at}]\``, name, names)))];
}
