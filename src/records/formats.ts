/** Formats pages of records as a JSON array, as NDJSON, or as CSV. */
import { parseExactly } from '../model/record.ts';
import type { RecordPage } from '../store/operations/records.ts';
import { csvHeader, csvRow } from './csv.ts';

export const FORMATS = ['json', 'ndjson', 'csv'] as const;
export type Format = (typeof FORMATS)[number];

/** Formats the pages of one body, which is `head`, every page, `tail`. */
export interface Formatter {
  /** The separator that the store must put between the records of a page. */
  separator: ',' | '\n';
  head: string;
  /** The bytes of one page. `first` is whether no page came before it. */
  page(page: RecordPage, first: boolean): Uint8Array;
  tail: string;
  /**
   * Set when the store's pages can be sent unchanged: what the store puts before the first page and before each further
   * one, and what follows the last. (Concatenating them here doubled the work of the garbage collector.)
   */
  asIs?: { first: string; next: string; end: string };
}

/**
 * @param input.columns all fields of the records, in order of first appearance: the columns of CSV
 * @param input.only the fields to keep, in this order; null keeps all. `id` is always kept and comes first
 */
export function formatter(input: {
  format: Format;
  columns: readonly string[];
  only: readonly string[] | null;
}): Formatter {
  const { format } = input;
  const only = input.only && idFirst(input.only);
  if (format === 'csv') {
    const columns = only ?? idFirst(input.columns);
    return {
      separator: '\n',
      head: csvHeader(columns),
      page: (page) => encode(lines(page).map((line) => csvRow(line, columns))),
      tail: '',
    };
  }
  const picked = (page: RecordPage, separator: string): Uint8Array =>
    only === null
      ? page.json
      : encode([
          lines(page)
            .map((line) => pick(line, only))
            .join(separator),
        ]);
  if (format === 'ndjson') {
    return {
      separator: '\n',
      head: '',
      page: (page) => Buffer.concat([picked(page, '\n'), NEW_LINE]),
      tail: '',
      ...(only === null ? { asIs: { first: '', next: '\n', end: '\n' } } : {}),
    };
  }
  return {
    separator: only === null ? ',' : '\n',
    head: '[',
    page: (page, first) => (first ? picked(page, ',') : Buffer.concat([COMMA, picked(page, ',')])),
    tail: ']',
    ...(only === null ? { asIs: { first: '[', next: ',', end: ']' } } : {}),
  };
}

const NEW_LINE = Buffer.from('\n');
const COMMA = Buffer.from(',');

function idFirst(fields: readonly string[]): string[] {
  return [...new Set(['id', ...fields])];
}

function lines(page: RecordPage): string[] {
  return Buffer.from(page.json.buffer, page.json.byteOffset, page.json.byteLength).toString().split('\n');
}

function encode(parts: readonly string[]): Uint8Array {
  return Buffer.from(parts.join(''));
}

function pick(json: string, only: readonly string[]): string {
  const record = parseExactly(json) as Record<string, unknown>;
  const members = only
    .filter((field) => Object.hasOwn(record, field))
    .map((field) => `${JSON.stringify(field)}:${JSON.stringify(record[field])}`);
  return `{${members.join(',')}}`;
}
