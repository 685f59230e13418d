/**
 * Refetches changed data that is on the screen: each kind at most four times a second, and never faster than the service
 * responds. Changes during a refetch lead to one more.
 */
import type { Query } from '@tanstack/react-query';
import { queryClient, readListAgain } from './list.ts';

/** `kind: null` means every kind, `ids: null` any id. */
interface Changed {
  kind: string | null;
  ids: readonly string[] | null;
}

const LEAST_MS = 250;
/** Kinds that the stream does not name, the kinds that they depend on, and the minimum pause between refetches. */
const DERIVED: { kind: string; from: readonly string[]; restMs: number }[] = [
  { kind: 'events', from: ['jobs', 'webhooks', 'deliveries'], restMs: 1_000 },
  { kind: 'decisions', from: ['jobs', 'webhooks', 'deliveries'], restMs: 1_000 },
  { kind: 'usage', from: ['jobs', 'deliveries'], restMs: 10_000 },
  { kind: 'counts', from: ['jobs'], restMs: 1_000 },
  { kind: 'quarantine', from: ['workflows'], restMs: 1_000 },
];

/** Changed ids to refetch, by kind; null means all ids. */
const waiting = new Map<string, Set<string> | null>();
/** Kinds that are being refetched, or pause after that. */
const busy = new Set<string>();

export function readAgain({ kind, ids }: Changed): void {
  if (kind === null) {
    for (const each of kindsOnScreen()) note(each, null);
    return;
  }
  note(kind, ids);
  for (const derived of DERIVED) if (derived.from.includes(kind)) note(derived.kind, null);
}

/** Refetches the queries that failed while the service was unreachable. */
export function readFailedAgain(): void {
  void queryClient.refetchQueries({ type: 'active', predicate: ({ state }) => state.status === 'error' });
}

function note(kind: string, ids: readonly string[] | null): void {
  const known = waiting.get(kind);
  if (ids === null || known === null) waiting.set(kind, null);
  else waiting.set(kind, new Set([...(known ?? []), ...ids]));
  if (!busy.has(kind)) void read(kind);
}

async function read(kind: string): Promise<void> {
  busy.add(kind);
  while (waiting.has(kind)) {
    const ids = waiting.get(kind) ?? null;
    waiting.delete(kind);
    const startMs = performance.now();
    await readOnce(kind, ids);
    const tookMs = performance.now() - startMs;
    const leastMs = DERIVED.find((derived) => derived.kind === kind)?.restMs ?? LEAST_MS;
    await new Promise((resolve) => setTimeout(resolve, restMs({ tookMs, leastMs })));
  }
  busy.delete(kind);
}

async function readOnce(kind: string, ids: ReadonlySet<string> | null): Promise<void> {
  const touched = queryClient.getQueryCache().findAll({ predicate: (query) => isTouched(query, kind, ids) });
  // A running fetch may have seen the old state, so this waits for its end and then fetches again.
  await Promise.allSettled(
    touched.filter(({ state }) => state.fetchStatus === 'fetching').map(({ promise }) => promise),
  );
  await Promise.allSettled(
    touched.map((query) => {
      if (query.queryKey[1] === 'list' && query.isActive()) return readListAgain(query, ids);
      return queryClient.invalidateQueries({ queryKey: query.queryKey, exact: true });
    }),
  );
}

/** A query `[kind, 'one', id, …]` depends on that id only, any other query of the kind on all ids. */
function isTouched(query: Query, kind: string, ids: ReadonlySet<string> | null): boolean {
  const [of, form, id] = query.queryKey;
  // Immutable data is fetched once.
  const isFinal = query.state.data !== undefined && query.isStatic();
  if (of !== kind || isFinal) return false;
  return ids === null || form !== 'one' || ids.has(String(id));
}

function kindsOnScreen(): Set<string> {
  const queries = queryClient.getQueryCache().findAll({ type: 'active' });
  return new Set(queries.map(({ queryKey }) => String(queryKey[0])).filter((kind) => kind !== 'session'));
}

/** The pause after a refetch, as a multiple of its duration. The command line uses the same factor. */
const REST = 5;

/** Milliseconds from the end of one refetch to the start of the next. */
export function restMs({ tookMs, leastMs }: { tookMs: number; leastMs: number }): number {
  return Math.max(leastMs, tookMs * REST);
}
