/** Formats pages of records as a JSON array, as NDJSON, or as CSV, and compresses what is sent. */
import { Readable, type Transform } from 'node:stream';
import { promisify } from 'node:util';
import { constants, createGzip, createZstdCompress, gzip, type Zlib, zstdCompress } from 'node:zlib';
import { parseExactly } from '../std/exact-json.ts';
import type { RecordPage } from '../store/operations/records.ts';

export const FORMATS = ['json', 'ndjson', 'csv'] as const;
export type Format = (typeof FORMATS)[number];

/** Formats the pages of one body, which consists of `head`, all pages, and `tail`. */
export interface Formatter {
  /** The separator that the store must put between the records of a page. */
  separator: ',' | '\n';
  head: string;
  /** Formats the bytes of one page. `first` is true if no page came before it. */
  page(page: RecordPage, first: boolean): Uint8Array;
  tail: string;
  /**
   * Set if the store's pages can be sent unchanged. The store puts `first` before the first page and `next` before each
   * further page; `end` follows the last page. (Concatenating these strings in JavaScript doubled the work of the
   * garbage collector.)
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
      head: csvLine(columns),
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

/**
 * Matches texts that a spreadsheet would evaluate as a formula, except plain signed numbers. Such texts get the prefix
 * `'`.
 */
const FORMULA = /^[=+\-@\t\r]/;
const PLAIN_NUMBER = /^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$/;

/** One record's row, with its line break; nested values are JSON text. Fields without a column are omitted. */
export function csvRow(json: string, columns: readonly string[]): string {
  const record = parseExactly(json) as Record<string, unknown>;
  return csvLine(columns.map((column) => (Object.hasOwn(record, column) ? textOf(record[column]) : '')));
}

/** Formats one line of CSV with its line break (RFC 4180): a header or a record. */
export function csvLine(cells: readonly string[]): string {
  // A row with one empty cell would be an empty line, which CSV readers skip.
  if (cells.length === 1 && cells[0] === '') return '""\r\n';
  return `${cells.map(cell).join(',')}\r\n`;
}

function cell(text: string): string {
  const safe = FORMULA.test(text) && !PLAIN_NUMBER.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** A value as a cell of CSV: null is empty, and nested values are JSON text. */
export function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  return value === null ? '' : JSON.stringify(value);
}

export const ENCODINGS = ['identity', 'gzip', 'zstd'] as const;
export type Encoding = (typeof ENCODINGS)[number];

/** Size of the output chunks of a compressor. Larger chunks than the default of 16 KiB mean fewer chunks. */
const CHUNK_BYTES = 64 * 1_024;
/** Level 1 is three times as fast as level 6; its output is 10 % larger. */
const GZIP_LEVEL = 1;

const ZSTD_PARAMS = { [constants.ZSTD_c_compressionLevel]: 1 };
/** Compression levels for bodies that are compressed once and sent often. */
const BEST_GZIP_LEVEL = 9;
const BEST_ZSTD_PARAMS = { [constants.ZSTD_c_compressionLevel]: 19 };

/** Compresses bytes on a thread of the pool. */
export function compress(
  bytes: Uint8Array,
  encoding: Exclude<Encoding, 'identity'>,
  { isKept = false }: { isKept?: boolean } = {},
): Promise<Uint8Array> {
  if (encoding === 'gzip') {
    return promisify(gzip)(bytes, { level: isKept ? BEST_GZIP_LEVEL : GZIP_LEVEL });
  }
  return promisify(zstdCompress)(bytes, { params: isKept ? BEST_ZSTD_PARAMS : ZSTD_PARAMS });
}

/**
 * Compresses a stream. The first bytes of the source are sent immediately, without waiting until a block is full: the rest of a
 * search may take seconds. Ending the iteration early ends the source; an error of the source is rethrown.
 */
export async function* encoded(
  source: AsyncIterable<Uint8Array>,
  encoding: Encoding,
): AsyncGenerator<Uint8Array> {
  if (encoding === 'identity') {
    yield* source;
    return;
  }
  const compressor: Transform =
    encoding === 'gzip'
      ? createGzip({ level: GZIP_LEVEL, chunkSize: CHUNK_BYTES })
      : createZstdCompress({ chunkSize: CHUNK_BYTES, params: ZSTD_PARAMS });
  const plain = Readable.from(source, { objectMode: false });
  plain.on('error', (error) => compressor.destroy(error));
  try {
    plain.pipe(compressor);
    plain.once('data', () => (compressor as Transform & Zlib).flush());
    yield* compressor as AsyncIterable<Uint8Array>;
  } finally {
    plain.destroy();
    compressor.destroy();
  }
}
