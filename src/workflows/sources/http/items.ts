/** Takes the records out of one answer, piece by piece where its kind allows that. */
import { isUtf8 } from 'node:buffer';
import type { Document } from 'domhandler';
import type { HttpSource } from '../../../model/http-source.ts';
import { parseExactly } from '../../../model/record.ts';
import { splitLines } from '../../../std/lines.ts';
import { MalformedError } from '../../../std/splitter.ts';
import type { Body } from './body.ts';
import { readCsv } from './csv.ts';
import { type ElementSplitter, splitElements } from './json-elements.ts';
import { compileJsonPath, plainSteps } from './json-path.ts';
import { parseMarkup } from './markup.ts';
import { compileSelector } from './selector.ts';
import { UnreadableError } from './source-error.ts';

/** A line or an element may be this long: no record can be longer. */
const MAX_ELEMENT_BYTES = 16 << 20;
/** Answers that can only be read whole: HTML, XML, and JSON with a path that leads to many places. */
const MAX_WHOLE_BYTES = 128 << 20;

/** One answer, taken apart. */
export interface Items {
  /** The parts that are records, in small batches. To be read to the end. */
  batches: AsyncIterable<Item[]>;
  /** What is left around them, for links and cursors: JSON without the records, or the document. After `batches`. */
  around(): unknown;
  /** Whether a failure of the connection can come after records have been handed out. */
  streams: boolean;
}

/** One part that is a record; `text` where it is JSON that stands in one line as it came. */
export interface Item {
  value: unknown;
  text: string | undefined;
}

/** @throws UnreadableError, also while the batches are read */
export async function readItems(
  body: Body,
  source: Pick<HttpSource, 'records' | 'delimiter' | 'paginate'>,
  input: { url: string; parsed: boolean },
): Promise<Items> {
  switch (body.parse) {
    case 'ndjson':
      return { batches: told(ndjson(body, input.parsed), input.url), around: () => undefined, streams: true };
    case 'csv':
      return {
        batches: told(readCsv(body.chunks, source.delimiter), input.url),
        around: () => undefined,
        streams: true,
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

/** Unless somebody looks into it, a record goes on as it came. */
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
    const batches = told(
      elements(
        body,
        splitter,
        input.parsed,
        (value) => {
          around = value;
        },
        records,
      ),
      input.url,
    );
    return { batches, around: () => around, streams: true };
  }
  const find = compileJsonPath(path);
  const text = await whole(body);
  const found = tellOnce(() => {
    const value = parse(text);
    const places = find(value);
    if (places.length === 0 && plainSteps(path) !== undefined) throw leadsNowhere(path, value);
    return { value, parts: places.flatMap((one) => (Array.isArray(one) ? one : one === null ? [] : [one])) };
  }, input.url);
  return { batches: inBatches(found.parts), around: () => found.value, streams: false };
}

/** Whether the way to the next page begins in the records themselves, which are gone once they have been handed out. */
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
  // No array stands there: one object alone is one record.
  const [alone] = records === null ? [around] : compileJsonPath(records)(around);
  if (typeof alone === 'object' && alone !== null && !Array.isArray(alone)) {
    yield [{ value: alone, text: undefined }];
    return;
  }
  if (alone !== undefined && alone !== null) {
    throw new MalformedError(
      `\`records\` leads to ${JSON.stringify(alone).slice(0, 80)}, which is no record`,
    );
  }
  if (alone === undefined && records !== null) {
    throw leadsNowhere(records, around);
  }
}

function leadsNowhere(path: string, value: unknown): MalformedError {
  return new MalformedError(`\`records\` (${path}) leads to nothing. The answer has: ${namesIn(value)}`);
}

/** What an answer consists of, so that a wrong path can be put right. */
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
  return { batches: inBatches(found), around: () => document, streams: false };
}

async function* inBatches(values: readonly unknown[]): AsyncGenerator<Item[]> {
  for (let from = 0; from < values.length; from += 500) {
    yield values.slice(from, from + 500).map((value) => ({ value, text: undefined }));
  }
}

/** The whole text of an answer. */
export async function whole(body: Body): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body.chunks) {
    bytes += chunk.length;
    if (bytes > MAX_WHOLE_BYTES) {
      throw new UnreadableError(
        `The answer is larger than 128 MiB and has to be read whole. Of ndjson, csv, and json whose \`records\` is a plain path such as $.data.items, any length is read`,
      );
    }
    chunks.push(chunk);
  }
  const all = Buffer.concat(chunks);
  // A page may begin in ASCII and turn out not to be UTF-8 much later.
  return isUtf8(all) ? all.toString().replace(/^\ufeff/, '') : new TextDecoder('windows-1252').decode(all);
}

async function* told<T>(batches: AsyncIterable<T>, url: string): AsyncGenerator<T> {
  try {
    yield* batches;
  } catch (error) {
    throw asUnreadable(error, url);
  }
}

function tellOnce<T>(read: () => T, url: string): T {
  try {
    return read();
  } catch (error) {
    throw asUnreadable(error, url);
  }
}

function asUnreadable(error: unknown, url: string): unknown {
  if (error instanceof MalformedError || error instanceof RangeError) {
    return new UnreadableError(`The answer of ${url} cannot be read: ${error.message}`, { cause: error });
  }
  return error;
}
