/**
 * Works on several values concurrently and yields the results in order. At most `atOnce` are in progress or waiting to be
 * taken. The first failure ends it, once all that are in progress have ended.
 */
export async function* inOrder<T, R>(
  values: AsyncIterable<T>,
  atOnce: number,
  work: (value: T) => Promise<R>,
): AsyncGenerator<R> {
  const under: Promise<R>[] = [];
  try {
    for await (const value of values) {
      const working = work(value);
      // A failure is thrown when the result is taken; until then it must not count as unhandled.
      working.catch(() => undefined);
      under.push(working);
      if (under.length >= atOnce) yield await (under.shift() as Promise<R>);
    }
    while (under.length > 0) yield await (under.shift() as Promise<R>);
  } finally {
    await Promise.allSettled(under);
  }
}
