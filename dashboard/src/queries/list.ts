/** Lists that come in pages: as many as one has scrolled to. */
import { infiniteQueryOptions, keepPreviousData, type Query, useInfiniteQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { type ListPage, merged, type Pages } from './merge-pages.ts';
import { queryClient } from './query-client.ts';

interface Reading<Row> {
  load: (cursor: string | undefined, signal: AbortSignal) => Promise<ListPage<Row>>;
  options: ListQueryOptions<Row>;
}

export interface ListQueryOptions<Row> {
  /**
   * Of a list whose newest row comes first: what a row is known by. When something changes, only its first page is
   * read again, and what is new goes above the rest.
   */
  newestFirst?: (row: Row) => string;
  /** Reads one row again that stands further down. */
  one?: (id: string) => Promise<Row>;
}

/** Of these rows further down each is read by itself when it changes; of more, none. */
const MAX_SINGLE = 20;

/**
 * The query of a list.
 *
 * @param key `[kind, 'list', …filters]`, with a kind of `News`, so that what changes is read again
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
    // While other filters are asked for, what was there stays, paler.
    placeholderData: keepPreviousData,
    meta,
  });
}

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
  /** How many there are in all; null where nobody tells. */
  total: number | null;
  /** These are the rows of the list before: those of this one are on their way. */
  isOld?: boolean;
  /** Of which list: another one begins at its top. */
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
      // What is read again at the moment would be broken off by it.
      if (!isFetchingNextPage) void fetchNextPage({ cancelRefetch: false });
    },
    total: data?.pages[0]?.total ?? null,
    isOld: isPlaceholderData,
    name: JSON.stringify(query.queryKey),
  };
}

/** Rows that are there as a whole, as a list. */
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
 * Reads a list again that is on the screen: as a whole, or, of one that has grown long and begins with the newest, its
 * first page and the rows that are known to have changed.
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
