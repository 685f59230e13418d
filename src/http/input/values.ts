/** Values that callers send: ids in paths, names, times, `idempotency-key`. Each refusal is a sentence. */
import { createHash } from 'node:crypto';
import { Problem } from '../../model/error.ts';
import { canonicalJson } from '../../model/same-json.ts';
import { isWorkflowId } from '../../model/workflow.ts';
import { parseIsoTime } from '../../std/clock.ts';
import { nearest } from '../../std/nearest.ts';
import type { Call, KeyedCall, Parameter } from '../route.ts';

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

/** The value as a whole number within the bounds. */
export function wholeFrom(
  value: unknown,
  what: string,
  { least, most }: { least: number; most: number },
): number {
  if (Number.isInteger(value) && Number(value) >= least && Number(value) <= most) return Number(value);
  return invalid(`${what} must be a whole number from ${least} to ${most}, or be left out`);
}

/** The value as epoch milliseconds: it must be a time in ISO 8601 with its zone. */
export function timeFrom(value: unknown, what: string): number {
  const ms = typeof value === 'string' ? parseIsoTime(value) : undefined;
  return ms ?? invalid(`${what} must be a time in ISO 8601 with its zone, such as 2026-11-20T10:00Z`);
}

/**
 * @param text undefined when the percent-encoding of the path is broken
 * @param sentence what to say instead of the general sentence
 * @throws Problem `workflow_not_found`
 */
export function workflowIdFrom(text: string | undefined, sentence?: string): string {
  if (text === undefined || !isWorkflowId(text) || !text.isWellFormed()) {
    throw new Problem('workflow_not_found', sentence === undefined ? {} : { sentence });
  }
  return text;
}

/** Whether a generated id (`wh_…`, `job_…`, `team_…`) could have this form. */
export function isGeneratedId(prefix: string, text: string | undefined): text is string {
  return text !== undefined && text.length <= 64 && new RegExp(`^${prefix}_[0-9a-z]+$`).test(text);
}

/** What the prefixes of ids stand for. */
const NOUNS = {
  dlv: 'delivery',
  evt: 'event',
  insp: 'inspector',
  job: 'job',
  key: 'key',
  rpl: 'replay',
  team: 'team',
  wh: 'webhook',
} as const;

/** @throws Problem `…_not_found` when it cannot be an id with this prefix */
export function idFrom(prefix: keyof typeof NOUNS, text: string | undefined): string {
  if (!isGeneratedId(prefix, text)) throw new Problem(`${NOUNS[prefix]}_not_found`);
  return text;
}

/** What the path names, as a key of the store. @throws Problem as `idFrom` */
export function keyOfPath(
  { caller, params }: Pick<KeyedCall, 'caller' | 'params'>,
  prefix: keyof typeof NOUNS,
): { teamId: string; id: string } {
  return { teamId: caller.teamId, id: idFrom(prefix, params[`${NOUNS[prefix]}Id`]) };
}

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
