/** The body of a push: records as NDJSON, or bytes. */
import type { Body } from './transport.ts';

/** Records as bytes. `contentEncoding` is `gzip` or `zstd` if they are compressed. */
export interface PushedBytes {
  contentType: string;
  contentEncoding?: string | undefined;
  body: Body;
}

/** Records to push: an array, anything iterable, or bytes with their `contentType`. */
export type Pushed = Iterable<object> | AsyncIterable<object> | PushedBytes;

/** Turns an array into a text, which can be sent again, and other iterables into a stream, which cannot. */
export function pushBody(records: Pushed): PushedBytes {
  if ('contentType' in records) return records;
  const contentType = 'application/x-ndjson';
  if (Array.isArray(records)) {
    return { contentType, body: records.map((record) => `${JSON.stringify(record)}\n`).join('') };
  }
  const iterator =
    Symbol.asyncIterator in records ? records[Symbol.asyncIterator]() : records[Symbol.iterator]();
  const encoder = new TextEncoder();
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await iterator.next();
      if (done) controller.close();
      else controller.enqueue(encoder.encode(`${JSON.stringify(value)}\n`));
    },
    async cancel() {
      await iterator.return?.();
    },
  });
  return { contentType, body };
}
