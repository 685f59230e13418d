/** The end of a visit that has deleted the old rows of a team (see `store/retention.ts`). */

import type { Tx } from '../transaction.ts';
import { makeDue, PRUNE_AFTER_MS, raise, VISIT_MS } from './agenda.ts';
import { newestSequence } from './events.ts';

/**
 * Ends a visit. `at` is when something of the team may next become old, as found during the visit; null if the team has
 * nothing that can. The next visit is due then, or after a day.
 *
 * The visit also makes everything else of the team due. If its agenda is too late for any reason, for example because
 * somebody has changed rows by hand, this heals it within a day.
 *
 * @param input.sequence the newest event of the team before the visit. If there is a newer one, the visit may have
 *   missed something, and the next one follows soon
 */
export async function visited(
  tx: Tx,
  { teamId, sequence, at }: { teamId: string; sequence: number; at: number | null },
): Promise<void> {
  for (const item of ['jobs', 'lanes', 'usage'] as const) makeDue(tx, teamId, item, tx.now);
  await raise(tx, { teamId, item: 'prune' }, async () => {
    if ((await newestSequence(tx, { teamId })) !== sequence) return tx.now + PRUNE_AFTER_MS;
    return at === null ? null : Math.min(at, tx.now + VISIT_MS);
  });
}
