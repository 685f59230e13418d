/** How long the decisions about webhooks with rules have been waiting. */
import { earlier } from '../std/earlier.ts';
import type { Store } from './store.ts';

/** Maximum number of teams that are asked: those that have been due longest. */
const MAX_TEAMS = 20;

/** When the oldest event with a pending decision happened, in epoch milliseconds; null if none is pending. */
export async function oldestDecisionAt(
  store: Pick<Store, 'agenda' | 'decisions' | 'now'>,
): Promise<number | null> {
  let oldest: number | null = null;
  for (const { teamId } of await store.agenda.due({
    item: 'decisions',
    until: store.now(),
    limit: MAX_TEAMS,
  })) {
    oldest = earlier(oldest, await store.decisions.oldestPending({ teamId }));
  }
  return oldest;
}
