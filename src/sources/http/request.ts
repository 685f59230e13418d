/**
 * Builds requests from the definition, the state and the position in the pagination. Also defines the errors of a
 * source.
 */
import type { HttpSource, Parse } from '../../model/http-source.ts';

/** Headers, in lower case, that may also be sent to hosts that the definition does not name. */
export const PLAIN_HEADERS: readonly string[] = [
  'accept',
  'accept-encoding',
  'accept-language',
  'if-none-match',
  'if-modified-since',
  'user-agent',
];

/**
 * Thrown when a request failed or may not be sent. The message names the request, the response and, if possible, the
 * next step.
 */
export class SourceError extends Error {
  override readonly name = 'SourceError';
  /** The status of the response. Undefined if there was no response. */
  readonly status: number | undefined;

  constructor(sentence: string, options: { status?: number; cause?: unknown } = {}) {
    super(sentence, { cause: options.cause });
    this.status = options.status;
  }
}

/** Thrown when a response cannot be read in its format. The message says what the response contains instead. */
export class UnreadableError extends Error {
  override readonly name = 'UnreadableError';
}

const PLACE = /\$\{(?:state\.(\w+)|(page))\}/g;

/** Values of the placeholders. */
export interface Values {
  state: ReadonlyMap<string, string>;
  page: number | undefined;
}

/** Returns the names of the state values to which the placeholders in a text refer. */
export function statesIn(text: string): string[] {
  return [...text.matchAll(PLACE)].flatMap(([, name]) => (name === undefined ? [] : [name]));
}

/** @returns undefined if the text consists only of placeholders without a value; the caller then leaves the text out */
function fillIn(
  text: string,
  values: Values,
  encode: (value: string) => string = String,
): string | undefined {
  let missing = false;
  const filled = text.replace(PLACE, (_place, name: string | undefined) => {
    const value = name === undefined ? values.page : values.state.get(name);
    if (value === undefined) missing = true;
    return encode(String(value ?? ''));
  });
  return missing && filled === '' ? undefined : filled;
}

/**
 * Fills in the placeholders of all strings in a JSON value. A member whose text consists only of placeholders without a
 * value is removed.
 */
function fillInAll(value: unknown, values: Values): unknown {
  if (typeof value === 'string') return fillIn(value, values);
  if (Array.isArray(value)) return value.map((one) => fillInAll(one, values) ?? null);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, one]) => {
      const filled = fillInAll(one, values);
      return filled === undefined ? [] : [[name, filled]];
    }),
  );
}

export interface HttpRequest {
  method: string;
  url: string;
  /** Names in lower case. */
  headers: Record<string, string>;
  body: string | null;
}

/** A position in the pagination: the parameters to add, and the value of `${page}`. */
export interface PageAt {
  params: Record<string, string | number>;
  page: number | undefined;
}

export const FIRST_PAGE: PageAt = { params: {}, page: undefined };

/** The `accept` header for each format. Some hosts can serve a resource in several formats. */
const ACCEPT: Readonly<Record<Parse, string>> = {
  json: 'application/json, */*;q=0.5',
  ndjson: 'application/x-ndjson, application/jsonl, */*;q=0.5',
  csv: 'text/csv, text/tab-separated-values, */*;q=0.5',
  html: 'text/html, application/xhtml+xml, */*;q=0.5',
  xml: 'application/xml, text/xml, application/rss+xml, application/atom+xml, */*;q=0.5',
};
const ACCEPT_ANY =
  'application/json, application/x-ndjson, text/csv, text/html;q=0.9, application/xml;q=0.9, */*;q=0.8';

/** @param url a URL of the source, with its placeholders */
export function pageRequest(
  source: HttpSource,
  url: string,
  at: PageAt,
  state: Values['state'],
): HttpRequest {
  const values: Values = { state, page: at.page };
  const target = new URL(addressOf(url, values));
  for (const [name, text] of Object.entries(source.query)) {
    const value = fillIn(text, values);
    if (value !== undefined) target.searchParams.set(name, value);
  }
  const headers: Record<string, string> = {
    accept: source.parse === null ? ACCEPT_ANY : ACCEPT[source.parse],
  };
  for (const [name, text] of Object.entries(source.headers)) {
    const value = fillIn(text, values);
    if (value !== undefined) headers[name.toLowerCase()] = value;
  }
  let body: string | null = null;
  if (source.body !== null && 'text' in source.body) {
    const isJson = /json/i.test(headers['content-type'] ?? '') || /^\s*[[{]/.test(source.body.text);
    body = fillIn(source.body.text, values, isJson ? withinJson : String) ?? '';
    headers['content-type'] ??= 'text/plain; charset=utf-8';
  } else if (source.body !== null && 'form' in source.body) {
    const form = fillInAll({ ...source.body.form, ...at.params }, values) as Record<string, string>;
    body = new URLSearchParams(Object.entries(form).map(([name, value]) => [name, String(value)])).toString();
    headers['content-type'] ??= 'application/x-www-form-urlencoded';
  } else if (source.body !== null) {
    const json = fillInAll(source.body.json, values);
    for (const [path, value] of Object.entries(at.params)) setWithin(json, path.split('.'), value);
    body = JSON.stringify(json);
    headers['content-type'] ??= 'application/json';
  }
  if (source.body === null || 'text' in source.body) {
    for (const [name, value] of Object.entries(at.params)) target.searchParams.set(name, String(value));
  }
  target.hash = '';
  return { method: source.method, url: target.href, headers, body };
}

/** @throws SourceError if the values add a segment `.` or `..` to the path, so that the URL would lead elsewhere */
function addressOf(url: string, values: Values): string {
  const address = fillIn(url, values, encodeURIComponent) ?? '';
  const [path = ''] = address.split(/[?#]/, 1);
  if (address !== url && /\/(?:\.|%2e){1,2}(?:\/|$)/i.test(path)) {
    throw new SourceError(
      `With the state of this workflow, the path of the URL ${address} contains \`.\` or \`..\` and leads elsewhere. Correct the state`,
    );
  }
  return address;
}

/** Escapes a value for use inside a JSON string. */
function withinJson(value: string): string {
  return JSON.stringify(value).slice(1, -1);
}

/** Returns the request for a linked page. It has the headers of the first page, but neither its query nor its body. */
export function linkedRequest(
  source: HttpSource,
  url: string,
  state: Values['state'],
  parse = source.parse,
): HttpRequest {
  const like = pageRequest(
    { ...source, parse, query: {}, body: null },
    'http://localhost/',
    FIRST_PAGE,
    state,
  );
  return { method: 'GET', url, headers: like.headers, body: null };
}

/** Sets a nested member. For example, `variables.after` has two steps. */
function setWithin(json: unknown, [first = '', ...rest]: string[], value: unknown): void {
  if (typeof json !== 'object' || json === null) return;
  const map = json as Record<string, unknown>;
  if (rest.length === 0) {
    map[first] = value;
    return;
  }
  if (!Object.hasOwn(map, first) || typeof map[first] !== 'object' || map[first] === null) map[first] = {};
  setWithin(map[first], rest, value);
}
