/** How pages ask: the cache, single queries, and lists whose pages are loaded as one scrolls. */
import {
  type InfiniteData,
  infiniteQueryOptions,
  keepPreviousData,
  MutationCache,
  type Query,
  QueryCache,
  QueryClient,
  queryOptions,
  type UseQueryOptions,
  useInfiniteQuery,
} from '@tanstack/react-query';
import { Unauthorized } from 'flowhook-client';
import { useMemo } from 'react';

interface Reading<Row> {
  load: (cursor: string | undefined, signal: AbortSignal) => Promise<ListPage<Row>>;
  options: ListQueryOptions<Row>;
}

interface ListQueryOptions<Row> {
  /**
   * For a list that begins with the newest row: the id of a row. When something changes, only the first page is fetched
   * again, and new rows are put above the rest.
   */
  newestFirst?: (row: Row) => string;
  /** Fetches one row again that is further down. */
  one?: (id: string) => Promise<Row>;
}

/** At most this many changed rows further down are fetched again, one by one. */
const MAX_SINGLE = 20;

/**
 * The query of a list.
 *
 * @param key `[kind, 'list', …filters]`, with a kind of `News`, so that it is fetched again when something changes
 * @param load one page: the first, or that of a cursor
 */
export function listQuery<Row>(
  key: readonly [kind: string, form: 'list', ...filters: unknown[]],
  load: Reading<Row>['load'],
  options: ListQueryOptions<Row> = {},
) {
  const meta: Record<string, unknown> = { reading: { load, options } satisfies Reading<Row> };
  return infiniteQueryOptions<ListPage<Row>, Error, Pages<Row>, readonly unknown[], string | undefined>({
    queryKey: key,
    queryFn: ({ pageParam, signal }) => load(pageParam, signal),
    initialPageParam: undefined,
    getNextPageParam: (last) => last.next ?? undefined,
    // While the rows for other filters load, the old ones stay, dimmed.
    placeholderData: keepPreviousData,
    meta,
  });
}

/** The query of anything else. @param key as above, but for the form: `one` and an id for what changes with that id alone */
export function ask<Data>(
  key: readonly unknown[],
  read: (signal: AbortSignal) => Promise<Data>,
  options: Pick<UseQueryOptions<Data>, 'staleTime' | 'gcTime' | 'refetchInterval' | 'structuralSharing'> = {},
) {
  return queryOptions({ ...options, queryKey: key, queryFn: ({ signal }) => read(signal) });
}

/** What a list of the client may be filtered by. */
export type FilterOf<ListOf> = ListOf extends (options?: infer Options) => unknown
  ? Omit<NonNullable<Options>, 'signal' | 'limit'>
  : never;

/** What `DataTable` takes of a list. */
export interface List<Row> {
  rows: readonly Row[];
  error: Error | null;
  isLoading: boolean;
  retry: () => void;
  /** There are further pages; `loadMore` fetches the next one. */
  hasMore: boolean;
  isLoadingMore: boolean;
  loadMore: () => void;
  /** How many there are in all; null if unknown. */
  total: number | null;
  /** These are still the rows of the previous list, while this one loads. */
  isOld?: boolean;
  /** Identifies the list: another one begins at its top. */
  name: string;
}

/** The rows of a list, page by page. */
export function useList<Row>(query: ReturnType<typeof listQuery<Row>>): List<Row> {
  const {
    data,
    error,
    isPending,
    isPlaceholderData,
    refetch,
    hasNextPage,
    isFetchingNextPage,
    fetchNextPage,
  } = useInfiniteQuery(query);
  const rows = useMemo(() => data?.pages.flatMap(({ items }) => items) ?? [], [data]);
  return {
    rows,
    error,
    isLoading: isPending,
    retry: () => void (data === undefined ? refetch() : fetchNextPage()),
    hasMore: hasNextPage,
    isLoadingMore: isFetchingNextPage,
    loadMore: () => {
      // It would otherwise cancel a refetch under way.
      if (!isFetchingNextPage) void fetchNextPage({ cancelRefetch: false });
    },
    total: data?.pages[0]?.total ?? null,
    isOld: isPlaceholderData,
    name: JSON.stringify(query.queryKey),
  };
}

/** The first page from a cursor on that has items: a filter may leave pages empty although more follow. */
export async function filledPage<Row>(
  pages: { page: (cursor?: string) => Promise<ListPage<Row>> },
  cursor: string | undefined,
): Promise<ListPage<Row>> {
  let page = await pages.page(cursor);
  while (page.items.length === 0 && page.next !== null) page = await pages.page(page.next);
  return page;
}

/** Rows that are loaded as a whole, as a list. */
export function listOf<Row>(rows: readonly Row[]): List<Row> {
  return {
    rows,
    error: null,
    isLoading: false,
    retry: () => {},
    hasMore: false,
    isLoadingMore: false,
    loadMore: () => {},
    total: rows.length,
    name: '',
  };
}

/**
 * Fetches a list on the screen again: all of it, or, if it begins with the newest and several pages are loaded, its first
 * page and the rows that are known to have changed.
 *
 * @param ids what has changed; null: anything
 */
export async function readListAgain(query: Query, ids: ReadonlySet<string> | null): Promise<void> {
  const { queryKey } = query;
  const pages = (query.state.data as Pages<unknown> | undefined)?.pages ?? [];
  const { load, options } = (query.meta as { reading?: Reading<unknown> } | undefined)?.reading ?? {};
  const idOf = options?.newestFirst;
  if (load === undefined || idOf === undefined || pages.length < 2) {
    await queryClient.invalidateQueries({ queryKey, exact: true });
    return;
  }
  const first = await load(undefined, AbortSignal.timeout(30_000));
  const known = pages.slice(1).flatMap(({ items }) => items.map(idOf));
  const changed = ids === null ? [] : known.filter((id) => ids.has(id)).slice(0, MAX_SINGLE);
  const single = new Map<string, unknown>();
  await Promise.allSettled(
    changed.map(async (id) => {
      if (options?.one !== undefined) single.set(id, await options.one(id));
    }),
  );
  queryClient.setQueryData<Pages<unknown>>(queryKey, (now) =>
    now === undefined ? now : merged(now, { first, single, idOf }),
  );
}

/** Merges the first page of a list, fetched again, with the pages that were loaded before. */
export interface ListPage<Row> {
  items: Row[];
  next: string | null;
  /** How many there are in all, where the service tells. */
  total?: number | null;
}

/** As the query keeps them, each with the cursor that it began at. */
export type Pages<Row> = InfiniteData<ListPage<Row>, string | undefined>;

/** Rows that new ones have pushed off the first page head the rest; rows that have vanished from it are dropped. */
export function merged<Row>(
  list: Pages<Row>,
  {
    first,
    single,
    idOf,
  }: { first: ListPage<Row>; single: ReadonlyMap<string, Row>; idOf: (row: Row) => string },
): Pages<Row> {
  const fresh = new Set(first.items.map(idOf));
  const before = list.pages.flatMap(({ items }) => items);
  const lastShared = before.findLastIndex((row) => fresh.has(idOf(row)));
  // No row in common: more than a page is new, and the rows in between are unknown.
  if (lastShared < 0) return { pages: [first], pageParams: [undefined] };
  const rest = before
    .slice(lastShared + 1)
    .filter((row) => !fresh.has(idOf(row)))
    .map((row) => single.get(idOf(row)) ?? row);
  const last = list.pages.at(-1);
  return {
    // Two pages: the one that is fetched again each time, and the rest, from whose cursor loading continues.
    pages: [first, { items: rest, next: last?.next ?? null }],
    pageParams: [undefined, first.next ?? undefined],
  };
}

/** The query cache: how long answers are fresh, and what an ended session does. */
export const queryClient = new QueryClient({
  queryCache: new QueryCache({ onError: onRefusal }),
  mutationCache: new MutationCache({ onError: onRefusal }),
  defaultOptions: {
    queries: {
      // The stream says what has changed; without it, older answers are refetched when one comes back to them.
      staleTime: 30_000,
      gcTime: 5 * 60_000,
      // The client retries by itself where that is safe.
      retry: false,
      refetchOnWindowFocus: false,
    },
  },
});

/** The contract has no 403 for a key that lacks a scope: only the session query can say whether the session has ended. */
function onRefusal(error: unknown): void {
  if (error instanceof Unauthorized) lookAtSession();
}

/** Fetches the session again; without one the sign-in page is shown. */
export function lookAtSession(): void {
  void queryClient.invalidateQueries({ queryKey: ['session'] });
}
