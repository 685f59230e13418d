/** Parses the body of a push into records while it arrives: a JSON array, NDJSON or CSV, compressed or not. */
import { Readable, type Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { constants, createGunzip, createZstdDecompress } from 'node:zlib';
import { MAX_RECORD_BYTES } from '../model/record.ts';
import { type CsvField, splitCsv } from '../std/csv-rows.ts';
import { splitJsonArray } from '../std/json-array.ts';
import { MalformedError, type Splitter, splitLines } from '../std/lines.ts';

export const PUSH_FORMATS = ['json', 'ndjson', 'csv'] as const;
export type PushFormat = (typeof PUSH_FORMATS)[number];

export const PUSH_ENCODINGS = ['identity', 'gzip', 'zstd'] as const;
export type PushEncoding = (typeof PUSH_ENCODINGS)[number];

const MAX_BATCH_RECORDS = 500;
const MAX_BATCH_LENGTH = 1_048_576;
/** The window that RFC 9659 allows for zstd over HTTP: 8 MiB. */
const ZSTD_WINDOW_LOG = 23;

/**
 * Reads records from bytes with bounded memory: nothing is read ahead of what is consumed.
 *
 * @param form.onBytes called with each uncompressed chunk
 * @returns batches of JSON texts, one record each
 * @throws MalformedError for bytes that are not in the format; whatever `bytes` throws
 */
export async function* readPushed(
  bytes: AsyncIterable<Uint8Array>,
  form: { format: PushFormat; encoding: PushEncoding; onBytes?: (chunk: Uint8Array) => void },
): AsyncGenerator<string[]> {
  const splitter = splitterFor(form.format);
  let batch: string[] = [];
  let length = 0;
  for await (const texts of pieces(decoded(bytes, form.encoding), splitter, form.onBytes)) {
    for (const text of texts) {
      batch.push(text);
      length += text.length;
      if (batch.length < MAX_BATCH_RECORDS && length < MAX_BATCH_LENGTH) continue;
      yield batch;
      batch = [];
      length = 0;
    }
  }
  if (batch.length > 0) yield batch;
}

async function* pieces(
  bytes: AsyncIterable<Uint8Array>,
  splitter: Splitter,
  onBytes: ((chunk: Uint8Array) => void) | undefined,
): AsyncGenerator<string[]> {
  for await (const chunk of bytes) {
    onBytes?.(chunk);
    yield splitter.push(chunk);
  }
  yield splitter.end();
}

function splitterFor(format: PushFormat): Splitter {
  switch (format) {
    case 'json':
      return splitJsonArray(MAX_RECORD_BYTES);
    case 'ndjson':
      return splitLines(MAX_RECORD_BYTES);
    case 'csv':
      return csvRecords();
  }
}

/** Turns each row after the header into a JSON object of strings; empty fields are left out. */
function csvRecords(): Splitter {
  const csv = splitCsv(MAX_RECORD_BYTES);
  let names: string[] | undefined;
  let rows = 0;

  function textOf(row: CsvField[]): string[] {
    rows += 1;
    if (names === undefined) {
      names = headerOf(row);
      return [];
    }
    if (row.length !== names.length) {
      throw new MalformedError(
        `Row ${rows} has ${row.length} fields, but the header row names ${names.length}`,
      );
    }
    // Concatenated as text, because an object would lose a column named __proto__.
    const fields = names.flatMap((name, at) => {
      const value = row[at];
      return typeof value === 'string' ? [`${name}:${JSON.stringify(value)}`] : [];
    });
    return [`{${fields.join(',')}}`];
  }

  return {
    push: (chunk) => csv.push(chunk).flatMap(textOf),
    end: () => csv.end().flatMap(textOf),
  };
}

/** The names of the columns as JSON. */
function headerOf(row: CsvField[]): string[] {
  const names = row.map((name, at) => {
    if (name === null || name === '')
      throw new MalformedError(`Column ${at + 1} of the header row has no name`);
    return name;
  });
  const known = new Set<string>();
  const twice = names.find((name) => known.size === known.add(name).size);
  if (twice !== undefined) throw new MalformedError(`The header row names the column "${twice}" twice`);
  return names.map((name) => JSON.stringify(name));
}

/** The uncompressed bytes. @throws MalformedError when they are not whole and valid in this encoding */
export async function* decoded(
  bytes: AsyncIterable<Uint8Array>,
  encoding: PushEncoding,
): AsyncGenerator<Uint8Array> {
  if (encoding === 'identity') {
    yield* bytes;
    return;
  }
  let fault: unknown;
  const decoder: Transform =
    encoding === 'gzip'
      ? createGunzip()
      : createZstdDecompress({ params: { [constants.ZSTD_d_windowLogMax]: ZSTD_WINDOW_LOG } });
  const source = noting(bytes, (error) => {
    fault = error;
  });
  // Errors destroy the decoder, and are thrown below by iterating over it.
  const flowing = pipeline(Readable.from(source), decoder).catch(() => {});
  try {
    yield* decoder;
  } catch (error) {
    if (fault !== undefined) throw fault;
    throw new MalformedError(`The body is not whole and valid ${encoding} (${(error as Error).message})`);
  } finally {
    decoder.destroy();
    await flowing;
  }
}

/** Notes an error of the bytes themselves, to tell it from one of their compression. */
async function* noting(
  bytes: AsyncIterable<Uint8Array>,
  note: (error: unknown) => void,
): AsyncGenerator<Uint8Array> {
  try {
    yield* bytes;
  } catch (error) {
    note(error);
    throw error;
  }
}

/** Passes the chunks on, and calls `tell` with the number of bytes so far (compressed bytes, if they are compressed). */
export async function* countBytes(
  chunks: AsyncIterable<Uint8Array>,
  tell: (bytes: number) => void,
): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  for await (const chunk of chunks) {
    bytes += chunk.length;
    tell(bytes);
    yield chunk;
  }
}

/** Passes the batches on, and calls `tell` after each with the number of records so far. */
export async function* countRecords(
  batches: AsyncIterable<string[]>,
  tell: (records: number) => void,
): AsyncGenerator<string[]> {
  let records = 0;
  for await (const batch of batches) {
    yield batch;
    records += batch.length;
    tell(records);
  }
}

/** Passes the items on, and throws the signal's reason as soon as it aborts, also while the next item is awaited. */
export async function* untilAborted<Item>(
  items: AsyncIterable<Item>,
  signal: AbortSignal,
): AsyncGenerator<Item> {
  const iterator = items[Symbol.asyncIterator]();
  // One promise for each item: racing against a single promise for the whole push would keep every item in memory.
  let awaited = Promise.withResolvers<IteratorResult<Item>>();
  const abort = () => awaited.reject(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  try {
    for (;;) {
      awaited = Promise.withResolvers();
      signal.throwIfAborted();
      iterator.next().then(awaited.resolve, awaited.reject);
      const next = await awaited.promise;
      if (next.done === true) return;
      yield next.value;
    }
  } finally {
    signal.removeEventListener('abort', abort);
    // Not awaited: it settles only after the pending `next`, which may be never.
    iterator.return?.().catch(() => {});
  }
}
