/** The settings of an HTTP source, with every default filled in. */

/** How an answer is read. */
export const PARSES = ['json', 'ndjson', 'csv', 'html', 'xml'] as const;
export type Parse = (typeof PARSES)[number];

export const HTTP_METHODS = ['GET', 'POST', 'PUT', 'PATCH'] as const;
export type HttpMethod = (typeof HTTP_METHODS)[number];

/**
 * Texts of a request may hold `${secret.NAME}`, `${state.NAME}` and, where pages are counted, `${page}`.
 * Texts of `fields` are paths (JSONPath or a property's name; in HTML and XML a CSS selector, with `@attribute`
 * behind it where the text is not meant) or templates of such paths in `{{…}}`.
 */
export interface HttpSource {
  type: 'http';
  urls: string[];
  method: HttpMethod;
  query: Record<string, string>;
  headers: Record<string, string>;
  body: HttpBody | null;
  auth: HttpAuth | null;
  /** Whether cookies are kept within the run. */
  cookies: boolean;
  proxy: string | null;
  /** Null: found from the content type, the URL and the first bytes. */
  parse: Parse | null;
  /** A label of the WHATWG Encoding Standard; null: found from the BOM, the content type or the text itself. */
  charset: string | null;
  /** Between the fields of CSV; null: whichever of , ; tab | occurs most often in the first row. */
  delimiter: string | null;
  /** Which parts of an answer are records; null: each element of a list, or the whole answer. */
  records: string | null;
  /** Empty: a record is taken as it is. */
  fields: Record<string, Field>;
  /** In how many percent of the records these fields must not be empty; `fields` null means all. */
  filled: { fields: string[] | null; minPercent: number } | null;
  paginate: Paginate | null;
  follow: Follow | null;
  /** What is kept for the next run. */
  remember: Record<string, Remember>;
  /** Null: respected where the answer is HTML. */
  robots: 'respect' | 'ignore' | null;
  /** Requests to one host at once, over all jobs. */
  perHost: number;
  /** Between two requests to one host, over all jobs. */
  delayMs: number;
  /** For one answer, from the request to its last byte; null: as long as bytes arrive. */
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
  /** A regular expression and what takes its place. */
  replace: [pattern: string, replacement: string] | null;
  /** What an empty field holds instead. */
  default: string | number | boolean | null;
  trim: boolean | null;
  /** `auto`, or a pattern such as `DD.MM.YYYY`; the record gets it in ISO 8601. */
  date: string | null;
  /** The decimal mark of numbers as they are written there. */
  number: '.' | ',' | null;
  /** Null: links of HTML (`@href`, `@src`, …) are made absolute. */
  absolute: boolean | null;
  /** All matches as a list instead of the first. */
  all: boolean;
}

/** `maxPages` null: a source with more than `DEFAULT_MAX_PAGES` fails, instead of ending there. */
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

/** How each record leads to a detail page, whose fields are added to it. */
export interface Follow {
  url: string;
  parse: Parse | null;
  fields: Record<string, Field>;
  /** Detail pages requested at a time. */
  concurrency: number;
}

/** A value for the next run: of all records the greatest, least, first or last `from`, or when this run began. */
export type Remember = { initial: string | null } & (
  | { take: 'max' | 'min' | 'first' | 'last'; from: string }
  | { take: 'start' }
);
export const TAKES = ['max', 'min', 'first', 'last', 'start'] as const;
