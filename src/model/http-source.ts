/** The settings of an HTTP source, with every default filled in. */

/** Formats of responses. */
export const PARSES = ['json', 'ndjson', 'csv', 'html', 'xml'] as const;
export type Parse = (typeof PARSES)[number];

export const HTTP_METHODS = ['GET', 'POST', 'PUT', 'PATCH'] as const;
export type HttpMethod = (typeof HTTP_METHODS)[number];

/**
 * Strings of a request may contain `${secret.NAME}`, `${state.NAME}` and, if pages are numbered, `${page}`. Strings
 * in `fields` are paths or templates with paths in `{{…}}`. A path is a JSONPath or a property name; for HTML and XML
 * it is a CSS selector, followed by `@attribute` to read an attribute instead of the text.
 */
export interface HttpSource {
  type: 'http';
  urls: string[];
  method: HttpMethod;
  query: Record<string, string>;
  headers: Record<string, string>;
  body: HttpBody | null;
  auth: HttpAuth | null;
  /** Whether cookies are kept during a run. */
  cookies: boolean;
  proxy: string | null;
  /** The format of the responses. Null: detected from the content type, the URL and the first bytes. */
  parse: Parse | null;
  /**
   * The encoding of the responses: a label of the WHATWG Encoding Standard. Null: detected from the byte order mark,
   * the content type or the text.
   */
  charset: string | null;
  /** The delimiter of CSV. Null: the most frequent of `,`, `;`, tab and `|` in the first row. */
  delimiter: string | null;
  /**
   * The path of the records in a response. Null: the elements of the response if it is a list, otherwise the whole
   * response.
   */
  records: string | null;
  /** Empty: records are not changed. */
  fields: Record<string, Field>;
  paginate: Paginate | null;
  follow: Follow | null;
  /** Values stored for the next run. */
  remember: Record<string, Remember>;
  /** Whether to obey robots.txt. Null: `respect` if the response is HTML. */
  robots: 'respect' | 'ignore' | null;
  /** Maximum number of concurrent requests to one host, counting all jobs of the team on this node. */
  perHost: number;
  /** Minimum delay between two requests to one host, counting all jobs of the team on this node. */
  delayMs: number;
  /** Timeout from the request to the last byte of the response. Null: a request never times out while bytes arrive. */
  answerMs: number | null;
}

export type HttpBody = { json: unknown } | { form: Record<string, string> } | { text: string };

export type HttpAuth =
  | { type: 'bearer'; token: string }
  | { type: 'basic'; username: string; password: string }
  | { type: 'header'; name: string; value: string }
  | {
      type: 'oauth2';
      tokenUrl: string;
      clientId: string;
      clientSecret: string;
      scope: string | null;
      audience: string | null;
    };

export interface Field {
  from: string;
  /** A regular expression and its replacement. */
  replace: [pattern: string, replacement: string] | null;
  /** Value for an empty field. */
  default: string | number | boolean | null;
  trim: boolean | null;
  /** The format of dates in the source: `auto`, or a pattern such as `DD.MM.YYYY`. The result is in ISO 8601. */
  date: string | null;
  /** The decimal separator of numbers in the source. */
  number: '.' | ',' | null;
  /** Whether to resolve links into absolute URLs. Null: only links of HTML (`@href`, `@src`, …). */
  absolute: boolean | null;
  /** Whether to return all matches as a list instead of the first match. */
  all: boolean;
}

/**
 * How a source is split into pages. If `maxPages` is null, a source with more than `DEFAULT_MAX_PAGES` pages fails
 * instead of stopping at that page.
 */
export type Paginate = { maxPages: number | null } & (
  | { type: 'cursor'; from: string; param: string }
  | { type: 'page'; param: string; start: number; size: number | null }
  | { type: 'offset'; param: string; limit: number; limitParam: string | null; start: number }
  | { type: 'link_header' }
  | { type: 'next_link'; from: string }
  | { type: 'until_empty'; start: number }
);
export const PAGINATIONS = ['cursor', 'page', 'offset', 'link_header', 'next_link', 'until_empty'] as const;
export const DEFAULT_MAX_PAGES = 10_000;

/** How to find the detail page of a record. The fields of the detail page are added to the record. */
export interface Follow {
  url: string;
  parse: Parse | null;
  fields: Record<string, Field>;
  /** Maximum number of detail pages requested at the same time. */
  concurrency: number;
}

/**
 * A value that is stored for the next run: the maximum, minimum, first or last `from` of all records, or the start time
 * of this run.
 */
export type Remember = { initial: string | null } & (
  | { take: 'max' | 'min' | 'first' | 'last'; from: string }
  | { take: 'start' }
);
export const TAKES = ['max', 'min', 'first', 'last', 'start'] as const;

/** Returns the names of all fields of a record, in the order of the definition. */
export function fieldNames({ fields, follow }: HttpSource): string[] {
  return [...new Set([...Object.keys(fields), ...Object.keys(follow?.fields ?? {})])];
}
