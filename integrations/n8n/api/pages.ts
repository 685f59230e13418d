/** Reads lists of the service page by page, and no more items than needed. */
import type { IDataObject } from 'n8n-workflow';
import { type Answer, ask, type Caller } from './ask.ts';

const PAGE = 1_000;

/**
 * Reads a list to its end, or at most `most` items.
 *
 * @param list.under the field of the response with the items; by default the response is the list
 */
export async function* readPages<Item extends IDataObject>(
  caller: Caller,
  list: { path: string; query?: IDataObject; under?: string; most: number; itemIndex?: number },
): AsyncGenerator<Item> {
  const { path, query, under, most, itemIndex } = list;
  let cursor: string | undefined;
  for (let left = most; left > 0; ) {
    const answer: Answer<unknown> = await ask<unknown>(caller, {
      path,
      query: { ...query, limit: Math.min(PAGE, left), ...(cursor === undefined ? {} : { cursor }) },
      itemIndex,
    });
    const items = (under === undefined ? answer.body : (answer.body as IDataObject)[under]) as Item[];
    yield* items.slice(0, left);
    left -= items.length;
    cursor = nextCursor(answer);
    if (cursor === undefined) return;
  }
}

/** Uses only the cursor: a link may name another host, and the key must not be sent there. */
function nextCursor({ headers }: Answer<unknown>): string | undefined {
  const address = /<([^>]*)>\s*;\s*rel="?next"?/.exec(headers.link ?? '')?.[1];
  if (address === undefined) return undefined;
  return new URL(address, 'https://any.invalid').searchParams.get('cursor') ?? undefined;
}
