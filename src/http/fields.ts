/** The fields of a JSON body, for operations whose body is an object of a few known fields. */
import type { IncomingMessage } from 'node:http';
import { Problem } from '../model/error.ts';
import { parseIsoTime } from '../std/iso-time.ts';
import { readBody } from './body.ts';
import { queryValue } from './query.ts';

/**
 * @param needs what the body must be, when there has to be one; without it a missing body is an empty object
 * @throws Problem `body_invalid`
 */
export async function bodyFields(request: IncomingMessage, needs?: string): Promise<Record<string, unknown>> {
  const body = await readBody(request);
  if (body.kind === 'object') return body.value;
  if (body.kind === 'empty' && needs === undefined) return {};
  const sentence = body.kind === 'other' ? body.mistake : `A request body is required: ${needs}`;
  throw new Problem('body_invalid', { sentence });
}

/** @throws Problem `field_invalid` with the sentence */
export function invalid(sentence: string): never {
  throw new Problem('field_invalid', { sentence });
}

/** A time in the query; nothing when it is left out. */
export function queryTime(query: string, name: string): number | undefined {
  const text = queryValue(query, name);
  return text === undefined ? undefined : timeFrom(text, `The query parameter \`${name}\``);
}

/** `since` and `until` of the query, both included. @throws Problem `field_invalid` */
export function queryPeriod(query: string): { since?: number; until?: number } {
  const since = queryTime(query, 'since');
  const until = queryTime(query, 'until');
  if (since !== undefined && until !== undefined && since > until) {
    invalid('The query parameter `since` must not be after `until`');
  }
  return { ...(since === undefined ? {} : { since }), ...(until === undefined ? {} : { until }) };
}

/** @throws Problem `field_invalid` unless the value is a time */
export function timeFrom(value: unknown, what: string): number {
  const ms = typeof value === 'string' ? parseIsoTime(value) : undefined;
  return ms ?? invalid(`${what} must be a time in ISO 8601 with its zone, such as 2026-11-20T10:00Z`);
}
