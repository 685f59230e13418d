/** Query parameters: their descriptions, and how they are read. `strict.ts` has already refused unknown ones. */
import { Problem } from '../../model/error.ts';
import type { Moment } from '../../records/read-changes.ts';
import { missingDay, parseIsoTime } from '../../std/clock.ts';
import type { Parameter } from '../route.ts';
import { invalid, oneOf, timeFrom, wholeFrom } from './values.ts';

/**
 * Every value of one parameter, in order; empty if it is absent. Other parameters are not decoded, even if they are
 * invalid.
 *
 * @param query the part after the question mark, still encoded
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
 * @throws Problem `field_invalid` if it is empty or repeated; `path_invalid`, as for `queryValues`. All functions below
 *   throw these errors.
 */
export function queryValue(query: string, name: string): string | undefined {
  if (query === '') return undefined;
  const values = queryValues(query, name);
  if (values.length > 1 || values[0] === '') {
    invalid(`The query parameter \`${name}\` must not be empty or repeated`);
  }
  return values[0];
}

export interface QueryParameter<T> extends Parameter {
  in: 'query';
  /** Undefined if the parameter is absent. @throws Problem as `queryValue`, and `field_invalid` for an invalid value */
  read(query: string): T | undefined;
}

export type QueryParameters = Readonly<Record<string, QueryParameter<unknown>>>;
/** The values of some parameters in a query. */
export type Given<P> = { [K in keyof P]?: P[K] extends QueryParameter<infer T> ? T : never };

/**
 * Reads some parameters of a query.
 *
 * @throws Problem `field_invalid`, also if `since` is after `until`
 */
export function readGiven<P extends QueryParameters>(query: string, parameters: P): Given<P> {
  const read = Object.entries(parameters).map(([name, parameter]) => [name, parameter.read(query)] as const);
  const given = Object.fromEntries(read.filter(([, value]) => value !== undefined));
  if (Number(given.since) > Number(given.until)) {
    invalid('The query parameter `since` must not be after `until`');
  }
  return given as Given<P>;
}

/** Maximum length of a text to search for, in characters. */
export const MAX_SEARCHED = 200;

/** @param most length in characters */
export function textParameter(name: string, description: string, most?: number): QueryParameter<string> {
  const schema = { type: 'string', ...(most === undefined ? {} : { maxLength: most }), minLength: 1 };
  return parameter({ name, description, schema }, (text, what) => {
    if (most === undefined || (text.length <= most && !text.includes('\0'))) return text;
    return invalid(`${what} must be text of at most ${most} characters`);
  });
}

/** The largest number that a parameter may have. */
const MAX_NUMBER = 999_999_999_999_999;

/** A whole number from `least` to `most`, both included. */
export function numberParameter(
  name: string,
  description: string,
  { least = 0, most = MAX_NUMBER }: { least?: number; most?: number } = {},
): QueryParameter<number> {
  const schema = { type: 'integer', minimum: least, maximum: most };
  return parameter({ name, description, schema }, (text, what) => {
    return wholeFrom(/^\d{1,15}$/.test(text) ? Number(text) : text, what, { least, most });
  });
}

export function choiceParameter<T extends string>(
  name: string,
  names: readonly T[],
  description: string,
): QueryParameter<T> {
  return parameter({ name, description, schema: { enum: names } }, (text, what) => oneOf(what, text, names));
}

/** The response format, which overrides `Accept`. */
export function formatParameter<F extends string>(formats: readonly F[]): QueryParameter<F> {
  const of = {
    name: 'format',
    description: 'Response format, which overrides `Accept`',
    schema: { enum: formats },
  };
  return parameter(of, (text, what) => {
    const format = formats.find((one) => one === text);
    return format ?? invalid(`${what} must be one of ${formats.join(', ')}`);
  });
}

/** A comma-separated list of names. */
export function choicesParameter<T extends string>(
  name: string,
  names: readonly T[],
  description: string,
): QueryParameter<T[]> {
  const one = `(?:${names.join('|')})`;
  const schema = { type: 'string', pattern: `^${one}(?:,${one})*$`, minLength: 1 };
  const all = `${description} (comma-separated): ${names.join(', ')}`;
  return parameter({ name, description: all, schema }, (text, what) =>
    text.split(',').map((value) => oneOf(what, value.trim(), names)),
  );
}

/** A parameter that may be repeated; each value is a name. */
export function namesParameter(name: string, description: string, most: number): QueryParameter<string[]> {
  const schema = { type: 'array', items: { type: 'string', minLength: 1 }, maxItems: most };
  return {
    name,
    in: 'query',
    description: `${description} (repeatable)`,
    schema,
    read(query) {
      const values = queryValues(query, name);
      if (values.length > most || values.includes('')) {
        invalid(`The query parameter \`${name}\` must not be empty, and be repeated at most ${most} times`);
      }
      return values.length === 0 ? undefined : values;
    },
  };
}

/** A number of a version, or an ISO 8601 time. */
export function momentParameter(name: string, description: string): QueryParameter<Moment> {
  const schema = { type: 'string', pattern: '^(\\d{1,15}|\\d{4}-\\d\\d-\\d\\d(T.+)?)$', minLength: 1 };
  return parameter({ name, description, schema, example: '2026-11-20T10:00Z' }, (text, what) => {
    if (/^\d+$/.test(text)) return { version: wholeFrom(Number(text), what, { least: 0, most: MAX_NUMBER }) };
    const atMs = parseIsoTime(text);
    if (atMs !== undefined) return { atMs };
    // A `+` in an address is a space.
    const plus = / \d\d:?\d\d$/.test(text) ? '. Write `+` as %2B' : '';
    return invalid(
      `${what} must be the number of a version, a date, or an ISO 8601 time with its zone, such as 2026-11-20 or ` +
        `2026-11-20T10:00Z${plus}${missingDay(text)}`,
    );
  });
}

/** The schema of `statusFrom`. */
export const STATUS_SCHEMA = { type: 'string', pattern: '^([1-5]\\d\\d|[1-5]xx|none)$' };

/** An HTTP status (`503`), a class of them (`5xx`), or `none` for no response, which is read as null. */
export function statusParameter(
  name: string,
  description: string,
): QueryParameter<{ from: number; to: number } | null> {
  return parameter({ name, description, schema: STATUS_SCHEMA, example: '5xx' }, statusFrom);
}

/** @throws Problem `field_invalid` */
export function statusFrom(text: string, what: string): { from: number; to: number } | null {
  if (text === 'none') return null;
  if (!/^[1-5](\d\d|xx)$/.test(text)) {
    return invalid(`${what} must be a status such as 503, a class such as 5xx, or none`);
  }
  return { from: Number(text.replace('xx', '00')), to: Number(text.replace('xx', '99')) };
}

/** `true` or `false` (default). */
export function flagParameter(name: string, description: string): QueryParameter<boolean> {
  const names = ['true', 'false'];
  const schema = { enum: names, default: 'false' };
  return parameter({ name, description, schema }, (text, what) => oneOf(what, text, names) === 'true');
}

/** An ISO 8601 time, which is read as epoch milliseconds. */
export function timeParameter(name: string, description: string): QueryParameter<number> {
  const schema = { type: 'string', format: 'date-time', minLength: 1 };
  return parameter({ name, description, schema }, (text, what) => timeFrom(text, what));
}

function parameter<T>(
  of: Omit<Parameter, 'in'>,
  parse: (text: string, what: string) => T,
): QueryParameter<T> {
  return {
    ...of,
    in: 'query',
    read(query) {
      const text = queryValue(query, of.name);
      return text === undefined ? undefined : parse(text, `The query parameter \`${of.name}\``);
    },
  };
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return undefined;
  }
}
