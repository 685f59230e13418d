/** Values that callers send: query parameters, ids in paths, `idempotency-key`. Each refusal is a sentence. */
import { createHash } from 'node:crypto';
import { Problem } from '../../model/error.ts';
import { canonicalJson } from '../../model/same-json.ts';
import { isWorkflowId } from '../../model/workflow.ts';
import { parseIsoTime } from '../../std/clock.ts';
import { nearest } from '../../std/nearest.ts';
import type { Call, Parameter } from '../route.ts';

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

/**
 * Every value of one parameter, in order; empty when it is absent. Other parameters are not decoded, however
 * badly they are encoded.
 *
 * @param query what follows the question mark, still encoded
 * @throws Problem `path_invalid` when a value is not valid percent-encoded UTF-8
 */
export function queryValues(query: string, name: string): string[] {
  if (query === '') return [];
  const values: string[] = [];
  for (const pair of query.split('&')) {
    const equals = pair.indexOf('=');
    const key = equals === -1 ? pair : pair.slice(0, equals);
    if (decode(key) !== name) continue;
    const value = equals === -1 ? '' : decode(pair.slice(equals + 1));
    if (value === undefined) {
      throw new Problem('path_invalid', {
        sentence: `The query parameter \`${name}\` is not valid percent-encoded UTF-8`,
      });
    }
    values.push(value);
  }
  return values;
}

/**
 * The value of an optional parameter.
 *
 * @throws Problem `field_invalid` when it is empty or given more than once; `path_invalid` as `queryValues`. So do all
 *   functions below.
 */
export function queryValue(query: string, name: string): string | undefined {
  const values = queryValues(query, name);
  if (values.length > 1 || values[0] === '') {
    invalid(`The query parameter \`${name}\` must be given once and not be empty, or be left out`);
  }
  return values[0];
}

/**
 * The value of a required parameter.
 *
 * @param what what the value should be, for the error sentence
 */
export function requiredQuery(query: string, name: string, what: string): string {
  return queryValue(query, name) ?? invalid(`The query parameter \`${name}\` is missing: ${what}`);
}

/** Text of at most so many characters. */
export function queryText(query: string, name: string, most: number): string | undefined {
  const text = queryValue(query, name);
  if (text === undefined || (text.length <= most && !text.includes('\0'))) return text;
  return invalid(`The query parameter \`${name}\` must be text of at most ${most} characters`);
}

/** The greatest number that a parameter takes. */
export const MAX_NUMBER = 999_999_999_999_999;

/** A whole number from `least` to `most`, both included. */
export function queryNumber(
  query: string,
  name: string,
  { least, most = MAX_NUMBER }: { least: number; most?: number },
): number | undefined {
  const text = queryValue(query, name);
  if (text === undefined) return undefined;
  const value = Number(text);
  if (/^\d{1,15}$/.test(text) && value >= least && value <= most) return value;
  return invalid(
    `The query parameter \`${name}\` must be a whole number from ${least} to ${most}, or be left out`,
  );
}

/** One of the names. */
export function queryName<T extends string>(query: string, name: string, names: readonly T[]): T | undefined {
  const value = queryValue(query, name);
  return value === undefined ? undefined : oneOf(`The query parameter \`${name}\``, value, names);
}

/** Some of the names, separated by commas. */
export function queryNames<T extends string>(
  query: string,
  name: string,
  names: readonly T[],
): T[] | undefined {
  return queryValue(query, name)
    ?.split(',')
    .map((value) => oneOf(`The query parameter \`${name}\``, value.trim(), names));
}

/** Describes what `queryNames` takes. */
export function namesSchema(names: readonly string[]): object {
  const one = `(?:${names.join('|')})`;
  return { type: 'string', pattern: `^${one}(?:,${one})*$` };
}

/** What `queryFlag` takes. */
export const FLAG = ['true', 'false'] as const;

/** Whether the parameter is `true`; it is `false` when left out. */
export function queryFlag(query: string, name: string): boolean {
  return queryName(query, name, FLAG) === 'true';
}

/** An ISO 8601 time, in epoch milliseconds. */
export function queryTime(query: string, name: string): number | undefined {
  const text = queryValue(query, name);
  return text === undefined ? undefined : timeFrom(text, `The query parameter \`${name}\``);
}

/** `since` and `until`, both included, in epoch milliseconds. */
export function queryPeriod(query: string): { since?: number; until?: number } {
  const since = queryTime(query, 'since');
  const until = queryTime(query, 'until');
  if (since !== undefined && until !== undefined && since > until) {
    invalid('The query parameter `since` must not be after `until`');
  }
  return { ...(since === undefined ? {} : { since }), ...(until === undefined ? {} : { until }) };
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return undefined;
  }
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
