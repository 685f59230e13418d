/** Deletes old lines of the audit, expired sessions, and the rest of teams whose deletion was interrupted. */
import { type Chore, inSteps } from '../std/chore.ts';
import { type ChoreDeps, choreOnOneNode } from '../store/on-one-node.ts';
import { everyRow } from '../store/page.ts';

const EVERY_MS = 10 * 60_000;
const STEPS = { first: 50, max: 1_000 };

/** @param options.keepMs how long lines of the audit are kept */
export function auditRetention(options: ChoreDeps & { keepMs: number }): Chore {
  const { store, keepMs } = options;
  return choreOnOneNode({
    ...options,
    name: 'audit.prune',
    everyMs: EVERY_MS,
    failed: 'audit.not_pruned',
    work: (signal) => inSteps((limit) => store.audit.prune({ olderMs: keepMs, limit }), STEPS, signal),
  });
}

/** Also deletes expired links that begin a session. */
export function sessionRetention(deps: ChoreDeps): Chore {
  return choreOnOneNode({
    ...deps,
    name: 'sessions.prune',
    everyMs: EVERY_MS,
    failed: 'sessions.not_pruned',
    work: (signal) => inSteps((limit) => deps.store.sessions.prune({ limit }), STEPS, signal),
  });
}

/** A retired team is left alone for at least this long, because the command that retired it deletes its rows. */
const LOOK_EVERY_MS = 60_000;
/** Teams that one run of the chore deletes. */
const TEAMS_AT_ONCE = 100;
const DELETION_STEPS = { first: 20, max: 500 };

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
    await inSteps((limit) => store.teams.delete({ teamId, limit }), DELETION_STEPS, signal);
  }

  return choreOnOneNode({
    ...options,
    name: 'teams.delete',
    everyMs: LOOK_EVERY_MS,
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
