/** Chores that visit one team after another: those that the agenda says are due. */

import type { Logger } from '../observe/log.ts';
import { VISIT_MS } from './operations/agenda.ts';
import type { Store } from './store.ts';
import type { AgendaItem } from './transaction.ts';

const TEAMS_AT_ONCE = 100;
/** A team that is due later than this was planned before the clock was set back, and is visited now. */
const BEYOND_MS = 2 * VISIT_MS;

/**
 * Visits every team whose item is due, once. If the visit of a team fails, this is logged, and the other teams are
 * visited nevertheless.
 *
 * @param input.failed the log message that reports a failure
 */
export async function forDueTeams(
  input: {
    store: Pick<Store, 'agenda' | 'now'>;
    log: Logger;
    item: AgendaItem;
    failed: string;
    signal: AbortSignal;
  },
  visit: (teamId: string) => Promise<unknown>,
): Promise<void> {
  const { store, log, item, failed, signal } = input;
  const seen = new Set<string>();
  let failures = 0;
  for (;;) {
    const until = store.now();
    // A team whose visit failed stays due, in front of the others.
    const limit = TEAMS_AT_ONCE + failures;
    const due = await store.agenda.due({ item, until, beyond: until + BEYOND_MS, limit });
    const teams = due.map(({ teamId }) => teamId).filter((teamId) => !seen.has(teamId));
    if (teams.length === 0) return;
    for (const teamId of teams) {
      if (signal.aborted) return;
      seen.add(teamId);
      await visit(teamId).catch((err) => {
        failures += 1;
        log.error({ err, teamId }, failed);
      });
    }
  }
}
