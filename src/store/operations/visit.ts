/** The end of a visit that has deleted the old rows of a team (see `store/retention.ts`). */

import { earlier } from '../../std/earlier.ts';
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
  for (const item of ['jobs', 'lanes', 'usage', 'decisions', 'fresh'] as const)
    makeDue(tx, teamId, item, tx.now);
  await raise(tx, { teamId, item: 'prune' }, async () => {
    if ((await newestSequence(tx, { teamId })) !== sequence) return tx.now + PRUNE_AFTER_MS;
    // Inspectors and audit lines that were written without an event during the visit are found under the lock.
    const later = await tx.db.get<{ expiresAt: number | null; line: number | null }>`
      select (select expires_at from inspector where team_id = ${teamId} order by expires_at limit 1) as "expiresAt",
             (select 1 from audit where team_id = ${teamId} limit 1) as line`;
    const first = earlier(at, later?.expiresAt);
    return first === null && later?.line == null ? null : Math.min(first ?? Infinity, tx.now + VISIT_MS);
  });
}
