/**
 * Parses the body of a push into records while the body arrives. The body is a JSON array, NDJSON or CSV, and may be
 * compressed.
 */
import { constants, createGunzip, createZstdDecompress } from 'node:zlib';
import { MAX_RECORD_BYTES } from '../model/record.ts';
import { type CsvField, splitCsv } from '../std/csv-rows.ts';
import { decompressed } from '../std/decompress.ts';
import { splitJsonArray } from '../std/json-array.ts';
import { MalformedError, type Splitter, splitLines } from '../std/lines.ts';

export const PUSH_FORMATS = ['json', 'ndjson', 'csv'] as const;
export type PushFormat = (typeof PUSH_FORMATS)[number];

export const PUSH_ENCODINGS = ['identity', 'gzip', 'zstd'] as const;
export type PushEncoding = (typeof PUSH_ENCODINGS)[number];

const MAX_BATCH_RECORDS = 2_000;
const MAX_BATCH_LENGTH = 1_048_576;
/** The base-2 logarithm of the largest zstd window: RFC 9659 limits the window for zstd over HTTP to 8 MiB. */
const ZSTD_WINDOW_LOG = 23;

/**
 * Reads records from bytes with bounded memory, no faster than the records are consumed.
 *
 * @param form.onBytes called with each uncompressed chunk
 * @returns batches of JSON texts, one per record
 * @throws MalformedError for bytes that are not in the format; any error of `bytes`
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

/** Turns each row after the header row into a JSON object of strings. Empty fields are left out. */
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
        `Row ${rows} has ${row.length} fields, but the header row has ${names.length}`,
      );
    }
    // The JSON is concatenated as text, because an object would lose a column named `__proto__`.
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

/** Returns the column names, each as JSON text. */
function headerOf(row: CsvField[]): string[] {
  const names = row.map((name, at) => {
    if (name === null || name === '')
      throw new MalformedError(`Column ${at + 1} of the header row has no name`);
    return name;
  });
  const known = new Set<string>();
  const twice = names.find((name) => known.size === known.add(name).size);
  if (twice !== undefined) throw new MalformedError(`The header row has two columns named "${twice}"`);
  return names.map((name) => JSON.stringify(name));
}

/** Decompresses bytes. @throws MalformedError for invalid or incomplete data */
export async function* decoded(
  bytes: AsyncIterable<Uint8Array>,
  encoding: PushEncoding,
): AsyncGenerator<Uint8Array> {
  if (encoding === 'identity') {
    yield* bytes;
    return;
  }
  const decoder =
    encoding === 'gzip'
      ? createGunzip()
      : createZstdDecompress({ params: { [constants.ZSTD_d_windowLogMax]: ZSTD_WINDOW_LOG } });
  yield* decompressed(
    bytes,
    decoder,
    ({ message }) => new MalformedError(`The body is incomplete or not valid ${encoding}: ${message}`),
  );
}

/** Yields the chunks, and calls `report` with the total number of bytes so far. */
export async function* countBytes(
  chunks: AsyncIterable<Uint8Array>,
  report: (bytes: number) => void,
): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  for await (const chunk of chunks) {
    bytes += chunk.length;
    report(bytes);
    yield chunk;
  }
}

/** Yields the items. Throws the signal's reason as soon as it aborts, even while waiting for the next item. */
export async function* untilAborted<Item>(
  items: AsyncIterable<Item>,
  signal: AbortSignal,
): AsyncGenerator<Item> {
  const iterator = items[Symbol.asyncIterator]();
  // Each item gets a new promise to race against. One promise for the whole push would keep every item in memory.
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
    // The result of `return` is not awaited, because it settles only after the pending `next`, which may never settle.
    iterator.return?.().catch(() => {});
  }
}
