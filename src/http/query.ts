/** Reads the query parameters that an operation declares. Others are refused before, by `strict.ts`. */
import { Problem } from '../model/error.ts';
import { invalid, oneOf, timeFrom } from './values.ts';

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
