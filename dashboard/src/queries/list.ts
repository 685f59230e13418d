/** Data fetching: the query cache, single queries, and lists that load more pages on scrolling. */
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
import { useMemo } from 'react';
import { Unauthorized } from '../../../client/src/flowhook-client.ts';

interface Reading<Row> {
  load: (cursor: string | undefined, signal: AbortSignal) => Promise<ListPage<Row>>;
  options: ListQueryOptions<Row>;
}

interface ListQueryOptions<Row> {
  /**
   * The id of a row, for a list that starts with the newest one. After a change only its first page is refetched, and new
   * rows are added at the top.
   */
  newestFirst?: (row: Row) => string;
  /** Refetches one row further down the list. */
  one?: (id: string) => Promise<Row>;
}

/** At most this many changed rows further down are refetched one by one. */
const MAX_SINGLE = 20;

/**
 * The query of a list.
 *
 * @param key `[kind, 'list', …filters]`, where `kind` is one that the stream names
 * @param load fetches the first page, or the page at a cursor
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
    // After a change of filters the old rows stay, dimmed, until the new ones are loaded.
    placeholderData: keepPreviousData,
    meta,
  });
}

/** A query for anything but a list. @param key `[kind, 'one', id]` if it depends on one id only, otherwise `[kind, …]` */
export function ask<Data>(
  key: readonly unknown[],
  read: (signal: AbortSignal) => Promise<Data>,
  options: Pick<UseQueryOptions<Data>, 'staleTime' | 'gcTime' | 'refetchInterval' | 'structuralSharing'> = {},
) {
  return queryOptions({ ...options, queryKey: key, queryFn: ({ signal }) => read(signal) });
}

/** The filters that a list method of the client takes. */
export type FilterOf<ListOf> = ListOf extends (options?: infer Options) => unknown
  ? Omit<NonNullable<Options>, 'signal' | 'limit'>
  : never;

/** The rows of a `DataTable`. */
export interface List<Row> {
  rows: readonly Row[];
  error: Error | null;
  isLoading: boolean;
  retry: () => void;
  /** `loadMore` fetches the next page. */
  hasMore: boolean;
  isLoadingMore: boolean;
  loadMore: () => void;
  /** The number of rows on all pages; null if unknown. */
  total: number | null;
  /** The rows are those of the previous filters, while new ones load. */
  isOld?: boolean;
  /** Identifies the list: a list with another name starts at its top. */
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
      // By default, `fetchNextPage` would cancel a running refetch.
      if (!isFetchingNextPage) void fetchNextPage({ cancelRefetch: false });
    },
    total: data?.pages[0]?.total ?? null,
    isOld: isPlaceholderData,
    name: JSON.stringify(query.queryKey),
  };
}

/** The first page at or after a cursor that has items, because a filter may leave pages empty although more follow. */
export async function filledPage<Row>(
  pages: { page: (cursor?: string) => Promise<ListPage<Row>> },
  cursor: string | undefined,
): Promise<ListPage<Row>> {
  let page = await pages.page(cursor);
  while (page.items.length === 0 && page.next !== null) page = await pages.page(page.next);
  return page;
}

/** A list of rows that are already loaded completely. */
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
 * Refetches a list on the screen: the whole list, or, if it is `newestFirst` and several pages are loaded, only its first
 * page and the changed rows.
 *
 * @param ids the changed rows; null means any
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

export interface ListPage<Row> {
  items: Row[];
  next: string | null;
  /** The number of rows on all pages, if the service reports it. */
  total?: number | null;
}

/** Loaded pages, each with its cursor. */
export type Pages<Row> = InfiniteData<ListPage<Row>, string | undefined>;

/**
 * Merges the refetched first page into the loaded pages. Rows that new ones pushed off the first page stay below it; rows
 * that disappeared from it are dropped.
 */
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
  // Without a row in common, more than one page is new, and the rows in between are unknown.
  if (lastShared < 0) return { pages: [first], pageParams: [undefined] };
  const rest = before
    .slice(lastShared + 1)
    .filter((row) => !fresh.has(idOf(row)))
    .map((row) => single.get(idOf(row)) ?? row);
  const last = list.pages.at(-1);
  return {
    // The result has two pages: the refetched one, and all others with the cursor at which loading continues.
    pages: [first, { items: rest, next: last?.next ?? null }],
    pageParams: [undefined, first.next ?? undefined],
  };
}

export const queryClient = new QueryClient({
  queryCache: new QueryCache({ onError: onFailure }),
  mutationCache: new MutationCache({ onError: onFailure }),
  defaultOptions: {
    queries: {
      // The stream reports changes. Without it, data older than this is refetched when a page shows it again.
      staleTime: 30_000,
      gcTime: 5 * 60_000,
      // The client already retries calls where that is safe.
      retry: false,
      refetchOnWindowFocus: false,
    },
  },
});

/** A 401 may also mean that the key lacks a scope. Only the session query shows whether the session has ended. */
function onFailure(error: unknown): void {
  if (error instanceof Unauthorized) checkSession();
}

/** Refetches the session: if it has ended, the sign-in page appears. */
export function checkSession(): void {
  void queryClient.invalidateQueries({ queryKey: ['session'] });
}
