/** Extracts the records of one response, as a stream where its format allows that. */
import { isUtf8 } from 'node:buffer';
import type { Document } from 'domhandler';
import type { HttpSource } from '../../model/http-source.ts';
import { parseExactly } from '../../model/record.ts';
import { MalformedError, splitLines } from '../../std/lines.ts';
import type { Body } from './body.ts';
import { readCsv } from './csv.ts';
import { type ElementSplitter, splitElements } from './json-elements.ts';
import { compileJsonPath, plainSteps } from './json-path.ts';
import { parseMarkup } from './markup.ts';
import { compileSelector } from './selector.ts';
import { UnreadableError } from './source-error.ts';

/** Limit of a line or an array element; no record can be longer. */
const MAX_ELEMENT_BYTES = 16 << 20;
/** Limit of responses that must be held in memory: HTML, XML, and JSON whose path matches several places. */
const MAX_WHOLE_BYTES = 128 << 20;

export interface Items {
  /** The records, in small batches. To be read to the end. */
  batches: AsyncIterable<Item[]>;
  /** The rest of the response, for links and cursors: JSON without the records, or the document. After `batches`. */
  around(): unknown;
}

/** A record as it came. `text` is set instead of `value` where it is JSON in one line that need not be parsed. */
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

/** A record that nobody looks into is passed on as text. */
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
    const batches = wrapErrors(
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
    return { batches, around: () => around };
  }
  const find = compileJsonPath(path);
  const text = await whole(body);
  const found = wrapErrorsSync(() => {
    const value = parse(text);
    const places = find(value);
    if (places.length === 0 && plainSteps(path) !== undefined) throw leadsNowhere(path, value);
    return { value, parts: places.flatMap((one) => (Array.isArray(one) ? one : one === null ? [] : [one])) };
  }, input.url);
  return { batches: inBatches(found.parts), around: () => found.value };
}

/** Whether the path to the next page leads through the records, which are gone once they have been handed out. */
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
  // There is no array at that place: a single object is one record.
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

/** The properties of a response, which help to correct a wrong path. */
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

/** The whole text of a body. @throws UnreadableError when it is over 128 MiB */
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
  // The character set was decided by the first bytes, which may be ASCII when the rest is not UTF-8.
  return isUtf8(all) ? all.toString().replace(/^\ufeff/, '') : new TextDecoder('windows-1252').decode(all);
}

async function* wrapErrors<T>(batches: AsyncIterable<T>, url: string): AsyncGenerator<T> {
  try {
    yield* batches;
  } catch (error) {
    throw asUnreadable(error, url);
  }
}

function wrapErrorsSync<T>(read: () => T, url: string): T {
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
