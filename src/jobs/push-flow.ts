/** Ways of looking at what is pushed while it flows: counting it, and breaking it off. */

/** The same bytes; tells how many there were so far, as they came: compressed if they are. */
export async function* weighed(
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

/** The same batches; tells after each how many records there were so far. */
export async function* counted(
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

/** The same items, but it throws the signal's reason at once, also while the next item lets itself be awaited. */
export async function* untilAborted<Item>(
  items: AsyncIterable<Item>,
  signal: AbortSignal,
): AsyncGenerator<Item> {
  const iterator = items[Symbol.asyncIterator]();
  // One promise for each item: a race against one that lives as long as the push would keep every item.
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
    // Not awaited: it comes to its turn only when the item under way does, which may be never.
    iterator.return?.().catch(() => {});
  }
}
