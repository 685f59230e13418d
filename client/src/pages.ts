/** Paginated lists. */
import type { Call, CallOptions, Transport } from './transport.ts';

/** One page of a list, and the cursor of the next page; null on the last page. */
export interface Page<T> {
  items: T[];
  next: string | null;
}

export interface ListOptions extends CallOptions {
  /** Items per page, 1 to 1,000 (default: 100). */
  limit?: number | undefined;
  /** Where to start: `next` of an earlier page. */
  cursor?: string | undefined;
}

/** A list, read with `for await (const job of list)` or page by page. Makes no request until it is read. */
export class Pages<T> implements AsyncIterable<T> {
  readonly #load: (cursor?: string) => Promise<Page<T>>;

  constructor(load: (cursor?: string) => Promise<Page<T>>) {
    this.#load = load;
  }

  /** The page at a cursor (default: the first). */
  page(cursor?: string): Promise<Page<T>> {
    return this.#load(cursor);
  }

  /** The first `most` items, or fewer. */
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
 * A list that the service returns in one response: read it with `for await (const webhook of list)`, or `await list` for an
 * array. Each use makes a request.
 */
export class WholeList<T> extends Pages<T> implements PromiseLike<T[]> {
  // biome-ignore lint/suspicious/noThenProperty: awaiting the list returns its items.
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

/** @param name the property of the response that contains the items */
export function wholeListOf<T>(transport: Transport, name: string, call: Call): WholeList<T> {
  return new WholeList(async () => {
    const value = await transport.json<Record<string, T[]>>(call);
    return { items: value[name] ?? [], next: null };
  });
}

/** @param name the property of each response that contains the items */
export function pagesOf<T>(transport: Transport, name: string, call: Call & ListOptions): Pages<T> {
  const { limit, cursor: first, ...rest } = call;
  return new Pages(async (cursor = first) => {
    const { value, headers } = await transport.withHeaders<Record<string, T[]>>({
      ...rest,
      query: { ...call.query, limit, cursor },
    });
    return { items: value[name] ?? [], next: nextCursor(headers.get('link')) };
  });
}

/** The cursor of the next page in a `Link` header; null if there is none. */
export function nextCursor(link: string | null): string | null {
  const [, query] = /<[^>?]*\?([^>]*)>;\s*rel="next"/.exec(link ?? '') ?? [];
  return new URLSearchParams(query).get('cursor');
}
