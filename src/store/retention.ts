/**
 * Deletes old data in the background, on one node at a time. The steps are so small that other writes do not wait long.
 */

import { setImmediate as nextTurn } from 'node:timers/promises';
import { EXPIRE_MS } from '../model/delivery.ts';
import type { WorkflowRef } from '../model/workflow.ts';
import { type Chore, inSteps } from '../std/chore.ts';
import { type ChoreDeps, choreOnOneNode } from './on-one-node.ts';
import type { Retention } from './operations/versions.ts';
import { everyRow } from './page.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** The first step of deleting jobs is small, because a job may have several MiB of logs. */
const JOB_STEPS = { first: 4, max: 500 };
/** Number of rows per step. It is small, because a row may have 1 MiB. */
const RECORD_STEPS = { first: 50, max: 500 };
const TEAM_STEPS = { first: 20, max: 500 };
const STEPS = { first: 50, max: 1_000 };

/**
 * Keeps the newest 10 versions of a workflow if they are at most 30 days old. Also keeps every version that was current
 * within the last hour, so that readers of that version can finish.
 */
const KEPT_VERSIONS: Retention = { keepVersions: 10, keepMs: 30 * DAY_MS, graceMs: HOUR_MS };
/** Number of workflows visited in one turn of the event loop, which takes 0.5 ms on SQLite. */
const WORKFLOWS_AT_ONCE = 1_000;
/**
 * Removed webhooks are kept for a day, because a transaction that started before the removal may still be open. No
 * transaction is open for longer than a day.
 */
const FORGET_MS = DAY_MS;
/** Teams deleted per run of the chore. */
const TEAMS_AT_ONCE = 100;

function pruning(
  deps: ChoreDeps,
  what: string,
  everyMs: number,
  work: (signal: AbortSignal) => Promise<void>,
): Chore {
  return choreOnOneNode({ ...deps, name: `${what}.prune`, everyMs, failed: `${what}.not_pruned`, work });
}

/**
 * Deletes ended jobs and their logs.
 *
 * @param keep.keepJobs number of jobs to keep per workflow, each for at most `keepMs`
 */
export function jobRetention(deps: ChoreDeps, keep: { keepJobs: number; keepMs: number }): Chore {
  const { jobs } = deps.store;
  return pruning(deps, 'jobs', MINUTE_MS, (signal) =>
    inSteps((limit) => jobs.prune({ ...keep, limit }), JOB_STEPS, signal),
  );
}

/** Deletes old versions. */
export function recordRetention(deps: ChoreDeps): Chore {
  const { records } = deps.store;
  return pruning(deps, 'records', MINUTE_MS, async (signal) => {
    for (let after: WorkflowRef | undefined; ; ) {
      const { found, next } = await records.prunable({ ...KEPT_VERSIONS, after, limit: WORKFLOWS_AT_ONCE });
      for (const workflow of found) {
        const step = (limit: number) => records.prune({ ...workflow, ...KEPT_VERSIONS, limit });
        await inSteps(step, RECORD_STEPS, signal);
        if (signal.aborted) return;
      }
      if (next === null) return;
      after = next;
      await nextTurn();
    }
  });
}

/**
 * Expires deliveries that have waited too long, and deletes old attempts, events, inspectors and removed webhooks.
 *
 * @param keep.eventsMs how long events and their ended deliveries are kept
 */
export function webhookRetention(deps: ChoreDeps, keep: { attemptsMs: number; eventsMs: number }): Chore {
  const { deliveries, inspectors, webhooks } = deps.store;
  return pruning(deps, 'deliveries', MINUTE_MS, async (signal) => {
    await inSteps((limit) => deliveries.expire({ olderMs: EXPIRE_MS, limit }), STEPS, signal);
    await inSteps((limit) => inspectors.prune({ limit }), STEPS, signal);
    await inSteps((limit) => deliveries.prune({ ...keep, limit }), STEPS, signal);
    await inSteps((limit) => webhooks.prune({ olderMs: FORGET_MS, limit }), STEPS, signal);
  });
}

/** Deletes old audit lines. */
export function auditRetention(deps: ChoreDeps, olderMs: number): Chore {
  const { audit } = deps.store;
  return pruning(deps, 'audit', 10 * MINUTE_MS, (signal) =>
    inSteps((limit) => audit.prune({ olderMs, limit }), STEPS, signal),
  );
}

/** Deletes expired sessions and sign-in links. */
export function sessionRetention(deps: ChoreDeps): Chore {
  const { sessions } = deps.store;
  return pruning(deps, 'sessions', 10 * MINUTE_MS, (signal) =>
    inSteps((limit) => sessions.prune({ limit }), STEPS, signal),
  );
}

/**
 * Completes deletions of teams that were interrupted, for example because the process was killed. A retired team is not
 * touched before the second run that finds it, because at first the command that retired the team is deleting its rows.
 *
 * @param forget removes the cached response bodies of a workflow
 */
export function deletionResumption(
  deps: ChoreDeps,
  forget: (place: { teamId: string; workflowId: string }) => Promise<void>,
): Chore {
  const { store, log } = deps;
  /** Retired teams of the previous run. */
  let seen = new Set<string>();
  return choreOnOneNode({
    ...deps,
    name: 'teams.delete',
    everyMs: MINUTE_MS,
    failed: 'teams.not_deleted',
    async work(signal) {
      const retired = await store.teams.retired({ limit: TEAMS_AT_ONCE });
      const interrupted = retired.filter(({ id }) => seen.has(id));
      seen = new Set(retired.map(({ id }) => id));
      for (const { id: teamId, slug } of interrupted) {
        for await (const { id } of everyRow(store.workflows.list, { teamId, archived: true })) {
          await forget({ teamId, workflowId: id });
        }
        await inSteps((limit) => store.teams.delete({ teamId, limit }), TEAM_STEPS, signal);
        if (signal.aborted) return;
        log.info({ teamId, team: slug }, 'team.deleted');
      }
      // Without this step, the write-ahead log would contain the deleted rows for a while longer.
      if (interrupted.length > 0) await store.erasure.scrub({ traces: [], rewriteBytes: 0 });
    },
  });
}
