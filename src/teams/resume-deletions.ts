/** Resumes interrupted deletions of teams: the process that began one may have been killed. */

import { type Chore, inSteps } from '../std/chore.ts';
import { type ChoreDeps, choreOnOneNode } from '../store/on-one-node.ts';
import { everyRow } from '../store/page.ts';

/** A retired team is left alone for at least this long, because the command that retired it deletes its rows. */
const EVERY_MS = 60_000;
/** Teams that one run of the chore deletes. */
const TEAMS_AT_ONCE = 100;
const STEPS = { first: 20, max: 500 };

/** @param options.forget removes the cached response bodies of a workflow */
export function deletionResumption(
  options: ChoreDeps & { forget(place: { teamId: string; workflowId: string }): Promise<void> },
): Chore {
  const { store, log, forget } = options;
  /** Retired teams of the previous run. */
  let seen = new Set<string>();

  async function finish(teamId: string, signal: AbortSignal): Promise<void> {
    for await (const { id } of everyRow(store.erasure.workflows, { teamId })) {
      await forget({ teamId, workflowId: id });
    }
    await inSteps((limit) => store.teams.delete({ teamId, limit }), STEPS, signal);
  }

  return choreOnOneNode({
    ...options,
    name: 'teams.delete',
    everyMs: EVERY_MS,
    failed: 'teams.not_deleted',
    async work(signal) {
      const retired = await store.teams.retired({ limit: TEAMS_AT_ONCE });
      const interrupted = retired.filter(({ id }) => seen.has(id));
      seen = new Set(retired.map(({ id }) => id));
      for (const { id, slug } of interrupted) {
        await finish(id, signal);
        if (signal.aborted) return;
        log.info({ teamId: id, team: slug }, 'team.deleted');
      }
      // The write-ahead log would hold the deleted rows for a while.
      if (interrupted.length > 0) await store.erasure.scrub({ traces: [], rewriteBytes: 0 });
    },
  });
}
