/** Works on several things at a time and hands the results out in order. */

/**
 * At most `atOnce` are under way or waiting to be taken. The first failure ends it, once those under way have ended.
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
      // Whoever takes it hears of its failure; until then it must not count as unhandled.
      working.catch(() => undefined);
      under.push(working);
      if (under.length >= atOnce) yield await (under.shift() as Promise<R>);
    }
    while (under.length > 0) yield await (under.shift() as Promise<R>);
  } finally {
    await Promise.allSettled(under);
  }
}
