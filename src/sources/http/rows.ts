/**
 * Extracts the records of one response (JSON, NDJSON, CSV, HTML or XML). Yields them as a stream if the format allows
 * it.
 */
import { isUtf8 } from 'node:buffer';
import type { Document } from 'domhandler';
import type { HttpSource } from '../../model/http-source.ts';
import { type CsvSplitter, splitCsv } from '../../std/csv-rows.ts';
import { parseExactly } from '../../std/exact-json.ts';
import { type ElementSplitter, splitElements } from '../../std/json-array.ts';
import { MalformedError, splitLines } from '../../std/lines.ts';
import type { Body } from './body.ts';
import { setField } from './fields.ts';
import { compileJsonPath, compileSelector, parseMarkup, plainSteps } from './paths.ts';
import { UnreadableError } from './request.ts';

/** Maximum size of a line or of an array element. No record can be longer. */
const MAX_ELEMENT_BYTES = 16 << 20;
/** Maximum size of a response that must be held in memory: HTML, XML, and JSON whose path can match several places. */
const MAX_WHOLE_BYTES = 128 << 20;

interface Items {
  /** The records, in small batches. Read all batches. */
  batches: AsyncIterable<Item[]>;
  /**
   * Returns the rest of the response, in which links and cursors are found: JSON without the records, or the whole
   * document. Call this after all `batches` were read.
   */
  around(): unknown;
}

/**
 * A record before its fields are extracted. If the record is JSON in one line that need not be parsed, `text` is set,
 * and otherwise `value`.
 */
export interface Item {
  value: unknown;
  text: string | undefined;
}

/** @throws UnreadableError; reading the batches may throw it too */
export async function readItems(
  body: Body,
  source: Pick<HttpSource, 'records' | 'delimiter' | 'paginate'>,
  input: { url: string; parsed: boolean },
): Promise<Items> {
  switch (body.parse) {
    case 'ndjson':
      return { batches: wrapErrors(ndjson(body, input.parsed), input.url), around: () => undefined };
    case 'csv':
      return {
        batches: wrapErrors(readCsv(body.chunks, source.delimiter), input.url),
        around: () => undefined,
      };
    case 'json':
      return json(body, source, input);
    default:
      return markup(body, source.records);
  }
}

async function* ndjson(body: Body, parsed: boolean): AsyncGenerator<Item[]> {
  const splitter = splitLines(MAX_ELEMENT_BYTES);
  for await (const chunk of body.chunks) yield splitter.push(chunk).map((text) => item(text, parsed));
  yield splitter.end().map((text) => item(text, parsed));
}

/** Creates an item. A record whose fields are not needed is passed on as text. */
function item(text: string, parsed: boolean): Item {
  return parsed || text.includes('\n') ? { value: parse(text), text: undefined } : { value: undefined, text };
}

function parse(text: string): unknown {
  try {
    return parseExactly(text);
  } catch (error) {
    const { message } = error as Error;
    throw new MalformedError(`not valid JSON (${message}): ${JSON.stringify(text.slice(0, 120))}`);
  }
}

async function json(
  body: Body,
  { records, paginate }: Pick<HttpSource, 'records' | 'paginate'>,
  input: { url: string; parsed: boolean },
): Promise<Items> {
  const path = (records ?? '$').replace(/\[\*\]$/, '');
  const steps = looksInto(paginate, path) ? undefined : plainSteps(path);
  const names = steps?.every((step) => typeof step === 'string') ? (steps as string[]) : undefined;
  if (names !== undefined) {
    const splitter = splitElements(names, MAX_ELEMENT_BYTES);
    let around: unknown;
    const keep = (value: unknown) => {
      around = value;
    };
    const batches = wrapErrors(elements(body, splitter, input.parsed, keep, records), input.url);
    return { batches, around: () => around };
  }
  const find = compileJsonPath(path);
  const text = await whole(body);
  try {
    const value = parse(text);
    const places = find(value);
    if (places.length === 0 && plainSteps(path) !== undefined) throw leadsNowhere(path, value);
    const parts = places.flatMap((one) => (Array.isArray(one) ? one : one === null ? [] : [one]));
    return { batches: inBatches(parts), around: () => value };
  } catch (error) {
    throw asUnreadable(error, input.url);
  }
}

/**
 * Returns whether the path to the next page leads through the records. Records are not kept after they were yielded.
 */
function looksInto(paginate: HttpSource['paginate'], records: string): boolean {
  if (paginate?.type !== 'cursor' && paginate?.type !== 'next_link') return false;
  const [to, from] = [plainSteps(records), plainSteps(paginate.from)];
  return to === undefined || from === undefined || to.every((step, at) => from[at] === step);
}

async function* elements(
  body: Body,
  splitter: ElementSplitter,
  parsed: boolean,
  keep: (around: unknown) => void,
  records: string | null,
): AsyncGenerator<Item[]> {
  for await (const chunk of body.chunks) yield splitter.push(chunk).map((text) => item(text, parsed));
  splitter.end();
  const around = parse(splitter.around().replace(/^\ufeff/, ''));
  keep(around);
  if (splitter.found()) return;
  // The path leads to no array. If it leads to a single object, this object is the only record.
  const [alone] = records === null ? [around] : compileJsonPath(records)(around);
  if (typeof alone === 'object' && alone !== null && !Array.isArray(alone)) {
    yield [{ value: alone, text: undefined }];
    return;
  }
  if (alone !== undefined && alone !== null) {
    throw new MalformedError(
      `\`records\` matches ${JSON.stringify(alone).slice(0, 80)}, but it must match an array or an object`,
    );
  }
  if (alone === undefined && records !== null) {
    throw leadsNowhere(records, around);
  }
}

function leadsNowhere(path: string, value: unknown): MalformedError {
  return new MalformedError(`\`records\` (${path}) matches nothing. The response has: ${namesIn(value)}`);
}

/** Lists the properties of a response, which helps users to correct a wrong path. */
function namesIn(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value).slice(0, 80);
  return (
    Object.entries(value)
      .slice(0, 20)
      .map(([name, inner]) => `${name}${Array.isArray(inner) ? ' (a list)' : ''}`)
      .join(', ') || 'nothing'
  );
}

async function markup(body: Body, records: string | null): Promise<Items> {
  const xml = body.parse === 'xml';
  const document: Document = parseMarkup(await whole(body), { xml });
  const found = records === null ? [document] : compileSelector(records, { xml })(document);
  return { batches: inBatches(found), around: () => document };
}

async function* inBatches(values: readonly unknown[]): AsyncGenerator<Item[]> {
  for (let from = 0; from < values.length; from += 500) {
    yield values.slice(from, from + 500).map((value) => ({ value, text: undefined }));
  }
}

/**
 * Returns the whole text of a body.
 *
 * @throws UnreadableError above 128 MiB
 */
export async function whole(body: Body): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body.chunks) {
    bytes += chunk.length;
    if (bytes > MAX_WHOLE_BYTES) {
      throw new UnreadableError(
        `The response is larger than 128 MiB, the limit for this format. The formats ndjson and csv have no limit, and json has none if \`records\` is a plain path such as $.data.items`,
      );
    }
    chunks.push(chunk);
  }
  const all = Buffer.concat(chunks);
  // The character set was detected from the first bytes. These bytes may be ASCII although the rest is not UTF-8.
  return isUtf8(all) ? all.toString().replace(/^\ufeff/, '') : new TextDecoder('windows-1252').decode(all);
}

async function* wrapErrors<T>(batches: AsyncIterable<T>, url: string): AsyncGenerator<T> {
  try {
    yield* batches;
  } catch (error) {
    throw asUnreadable(error, url);
  }
}

function asUnreadable(error: unknown, url: string): unknown {
  if (error instanceof MalformedError || error instanceof RangeError) {
    return new UnreadableError(`The response of ${url} cannot be read: ${error.message}`, { cause: error });
  }
  return error;
}

const MAX_ROW_CHARACTERS = 16 << 20;
const MAX_COLUMNS = 10_000;
const DELIMITERS = [',', ';', '\t', '|'];

/** A first line such as `sep=;`, in which spreadsheets name the delimiter. */
const SEPARATOR_LINE = /^(?:\ufeff)?sep=(.)\r?\n/i;
const MAX_SEPARATOR_BYTES = 16;

/** Yields the rows as objects. An empty field is left out. An empty field in quotes (`""`) becomes an empty string. */
export async function* readCsv(
  chunks: AsyncIterable<Uint8Array>,
  delimiter: string | null,
): AsyncGenerator<Item[]> {
  let splitter: CsvSplitter | undefined;
  let names: string[] | undefined;
  let number = 1;

  function objects(rows: readonly (readonly (string | null)[])[]): Item[] {
    const items: Item[] = [];
    for (const row of rows) {
      number += 1;
      if (names === undefined) names = namesOf(row);
      else items.push({ value: objectOf(names, row, number - 1), text: undefined });
    }
    return items;
  }

  function begin(bytes: Uint8Array): Item[] {
    const head = Buffer.from(bytes.subarray(0, MAX_SEPARATOR_BYTES)).toString();
    const [line = '', said] = SEPARATOR_LINE.exec(head) ?? [];
    const rows = bytes.subarray(Buffer.byteLength(line));
    if (line !== '') number += 1;
    splitter = splitCsv(MAX_ROW_CHARACTERS, delimiter ?? said ?? delimiterOf(rows));
    return objects(splitter.push(rows));
  }

  let before: Uint8Array = Buffer.alloc(0);
  for await (const chunk of chunks) {
    if (splitter === undefined) {
      // The delimiter is detected from the whole first row, so chunks are collected until the row is complete.
      before = Buffer.concat([before, chunk]);
      const needed = delimiter === null ? MAX_ROW_CHARACTERS : MAX_SEPARATOR_BYTES;
      const newline = before.indexOf(10);
      // A short first line may be `sep=;`. In this case, the second row is needed too.
      const isWhole =
        newline >= MAX_SEPARATOR_BYTES || (newline !== -1 && before.indexOf(10, newline + 1) !== -1);
      if (before.length < needed && !isWhole) continue;
      yield begin(before);
    } else yield objects(splitter.push(chunk));
  }
  if (splitter === undefined) yield begin(before);
  yield objects((splitter as unknown as CsvSplitter).end());
  if (names === undefined)
    throw new MalformedError('CSV must start with a row of column names, but the response is empty');
}

/** Returns the delimiter that is most frequent in the first row outside of quotes. */
function delimiterOf(bytes: Uint8Array): string {
  const [row = ''] = Buffer.from(bytes)
    .toString()
    .replace(/"[^"]*"/g, '')
    .split('\n', 1);
  const counts = DELIMITERS.map((mark) => row.split(mark).length);
  return DELIMITERS[counts.indexOf(Math.max(...counts))] as string;
}

function namesOf(row: readonly (string | null)[]): string[] {
  if (row.length > MAX_COLUMNS)
    throw new MalformedError(`The first row has more than ${MAX_COLUMNS} columns`);
  if (row.some((name) => /\r(?!\n)/.test(name ?? ''))) {
    throw new MalformedError(
      'The first row contains a carriage return. Rows that end with only a carriage return are not supported',
    );
  }
  const taken = new Set<string>();
  const counts = new Map<string, number>();
  for (const [at, name] of row.entries()) {
    const text = name?.trim() || `column${at + 1}`;
    let own = text;
    // The second column named `email` becomes `email_2`, so that it does not replace the first column.
    for (let count = (counts.get(text) ?? 1) + 1; taken.has(own); count++) {
      own = `${text}_${count}`;
      counts.set(text, count);
    }
    taken.add(own);
  }
  return [...taken];
}

function objectOf(
  names: readonly string[],
  row: readonly (string | null)[],
  number: number,
): Record<string, unknown> {
  if (row.length > names.length && row.slice(names.length).some((field) => field !== null)) {
    throw new MalformedError(`Row ${number} has ${row.length} fields, but the first row has ${names.length}`);
  }
  const object: Record<string, unknown> = {};
  for (const [at, name] of names.entries()) {
    const value = row[at] ?? null;
    if (value !== null) setField(object, name, value);
  }
  return object;
}
