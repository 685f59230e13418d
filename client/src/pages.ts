/** Lists that come in pages. */
import type { Call, CallOptions, Transport } from './transport.ts';

/** Some items of a list, and the cursor of the next ones; null when these were the last. */
export interface Page<T> {
  items: T[];
  next: string | null;
}

/** What every list takes. */
export interface ListOptions extends CallOptions {
  /** Items of a page, 1 to 1,000; 100 unless told. */
  limit?: number | undefined;
  /** Where to go on: `next` of an earlier page. */
  cursor?: string | undefined;
}

/** A list. Nothing is asked for before it is read: `for await (const job of list)`, or one page at a time. */
export class Pages<T> implements AsyncIterable<T> {
  readonly #load: (cursor?: string) => Promise<Page<T>>;

  constructor(load: (cursor?: string) => Promise<Page<T>>) {
    this.#load = load;
  }

  /** One page: the first, or that of a cursor. */
  page(cursor?: string): Promise<Page<T>> {
    return this.#load(cursor);
  }

  /** The first items, at most `most` of them. */
  async take(most: number): Promise<T[]> {
    const items: T[] = [];
    if (most > 0) {
      for await (const item of this) if (items.push(item) >= most) break;
    }
    return items;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T> {
    let cursor: string | undefined;
    do {
      const { items, next } = await this.#load(cursor);
      yield* items;
      cursor = next ?? undefined;
    } while (cursor !== undefined);
  }
}

/**
 * A list that the service answers whole: `for await (const webhook of list)`, or `await list` for an array. Each way asks
 * for it when it is used.
 */
export class WholeList<T> extends Pages<T> implements PromiseLike<T[]> {
  // biome-ignore lint/suspicious/noThenProperty: it is awaited for its items.
  then<A = T[], B = never>(
    onItems?: ((items: T[]) => A | PromiseLike<A>) | null,
    onError?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.take(Number.POSITIVE_INFINITY).then(onItems, onError);
  }

  catch<B>(onError: (reason: unknown) => B | PromiseLike<B>): Promise<T[] | B> {
    return this.then(undefined, onError);
  }
}

/** The list that an operation answers whole under a name. */
export function wholeListOf<T>(transport: Transport, name: string, call: Call): WholeList<T> {
  return new WholeList(async () => {
    const value = await transport.json<Record<string, T[]>>(call);
    return { items: value[name] ?? [], next: null };
  });
}

/** The list that an operation answers in pages under a name. */
export function pagesOf<T>(transport: Transport, name: string, call: Call & ListOptions): Pages<T> {
  const { limit, cursor: first, ...rest } = call;
  return new Pages(async (cursor = first) => {
    const { value, headers } = await transport.answer<Record<string, T[]>>({
      ...rest,
      query: { ...call.query, limit, cursor },
    });
    return { items: value[name] ?? [], next: nextCursor(headers.get('link')) };
  });
}

/** What `Link` says of the next page; null when there is none. */
export function nextCursor(link: string | null): string | null {
  const [, query] = /<[^>?]*\?([^>]*)>;\s*rel="next"/.exec(link ?? '') ?? [];
  return new URLSearchParams(query).get('cursor');
}
