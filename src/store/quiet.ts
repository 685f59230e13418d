/** How long an idle node may sleep. */
import type { Store } from './store.ts';

/**
 * For `quietMs` of a poller that `watch` wakes: how long nothing of a kind will be due, in milliseconds. Zero while
 * `watch` does not report all commits.
 *
 * @param nextDueAt asked when something is next due, in epoch milliseconds; null means never
 */
export async function quietMs(
  store: Pick<Store, 'isTold' | 'now'>,
  nextDueAt: () => Promise<number | null>,
): Promise<number> {
  if (!store.isTold()) return 0;
  return ((await nextDueAt()) ?? Number.POSITIVE_INFINITY) - store.now();
}
