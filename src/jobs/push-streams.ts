/** Transforms for the streams of a push: counting bytes and records, and aborting. */

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
