/**
 * Deletes old data in the background, on one node at a time. The steps are so small that other writes do not wait long.
 *
 * All old rows of a team are deleted by one visit. The agenda says when a team needs the next visit: some minutes after
 * an event, or when something becomes old, and at least once a day. Teams that have nothing to delete cost nothing.
 */

import { setImmediate as nextTurn } from 'node:timers/promises';
import { OF_INSTANCE } from '../model/audit.ts';
import { EXPIRE_MS } from '../model/delivery.ts';
import { type Chore, inSteps } from '../std/chore.ts';
import { earlier } from '../std/earlier.ts';
import { forDueTeams } from './due-teams.ts';
import { type ChoreDeps, choreOnOneNode } from './on-one-node.ts';
import type { Retention } from './operations/versions.ts';
import { everyRow } from './page.ts';
import type { Store } from './store.ts';

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
/** How long hourly and daily counts of usage are stored. */
const KEPT_USAGE = { hoursMs: 92 * DAY_MS, daysMs: 3 * 366 * DAY_MS };
/**
 * Removed webhooks are kept for a day, because a transaction that started before the removal may still be open. No
 * transaction is open for longer than a day.
 */
const FORGET_MS = DAY_MS;
/** How long the address of a feed that was revoked or rotated returns 410, so that readers stop asking. */
const KEPT_ADDRESSES_MS = 90 * DAY_MS;
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

/** How long a team's data is kept, in milliseconds, and the number of ended jobs to keep per workflow. */
export interface Kept {
  keepJobs: number;
  jobsMs: number;
  attemptsMs: number;
  /** Also applies to the ended deliveries of events. */
  eventsMs: number;
  auditMs: number;
}

/** Expires deliveries that have waited too long, and deletes everything old, one team after another. */
export function teamRetention(deps: ChoreDeps, keep: Kept): Chore {
  return pruning(deps, 'teams', MINUTE_MS, (signal) =>
    forDueTeams({ ...deps, item: 'prune', failed: 'teams.not_pruned', signal }, (teamId) =>
      visit(deps.store, { teamId, keep, signal }),
    ),
  );
}

/** Deletes all old rows of a team. */
async function visit(
  store: Store,
  { teamId, keep, signal }: { teamId: string; keep: Kept; signal: AbortSignal },
): Promise<void> {
  const { audit, deliveries, feeds, inspectors, jobs, quarantine, records, usage, webhooks } = store;
  const sequence = await store.events.newestSequence({ teamId });
  let first: number | null = null;
  const note = (at: number | null = null) => {
    // What is old and was not deleted is needed by something else. The next visit looks at it again.
    first = earlier(first, at !== null && at <= store.now() ? store.now() + DAY_MS : at);
  };
  const steps = <Input extends { teamId: string }, Step extends TeamStep>(
    operation: (input: Input) => Promise<Step>,
    input: Omit<Input, 'teamId' | 'limit' | 'after'>,
    size = STEPS,
  ) =>
    inSteps<Step['next']>(
      async (limit, after) => {
        const step = await operation({ ...input, teamId, limit, after } as unknown as Input);
        note(step.at);
        return step;
      },
      size,
      signal,
    );

  await steps(deliveries.cancelRemoved, {});
  await steps(deliveries.expire, { olderMs: EXPIRE_MS });
  await steps(deliveries.prune, { attemptsMs: keep.attemptsMs, eventsMs: keep.eventsMs });
  await steps(webhooks.prune, { olderMs: FORGET_MS });
  await steps(inspectors.prune, {});
  await steps(feeds.prune, { olderMs: KEPT_ADDRESSES_MS });
  await steps(jobs.prune, { keepJobs: keep.keepJobs, keepMs: keep.jobsMs }, JOB_STEPS);
  await steps(quarantine.prune, { keepMs: keep.jobsMs }, RECORD_STEPS);
  for (let after: string | null = ''; after !== null && !signal.aborted; await nextTurn()) {
    const page: Awaited<ReturnType<typeof records.prunable>> = await records.prunable({
      ...KEPT_VERSIONS,
      teamId,
      after,
      limit: WORKFLOWS_AT_ONCE,
    });
    for (const { workflowId } of page.found) {
      await steps(records.prune, { ...KEPT_VERSIONS, workflowId }, RECORD_STEPS);
    }
    // The versions after the deleted ones are likely to become old soon.
    note(page.found.length > 0 ? store.now() + HOUR_MS : null);
    note(page.at);
    after = page.next;
  }
  await steps(audit.prune, { olderMs: keep.auditMs });
  await steps(usage.prune, KEPT_USAGE);
  if (!signal.aborted) await store.agenda.visited({ teamId, sequence, at: first });
}

/** One step of an operation that deletes rows of a team. `at` is when more of them may become old. */
interface TeamStep {
  done: boolean;
  next?: unknown;
  at?: number | null;
}

/** Deletes old audit lines that belong to no team. */
export function auditRetention(deps: ChoreDeps, olderMs: number): Chore {
  const { audit } = deps.store;
  return pruning(deps, 'audit', 10 * MINUTE_MS, (signal) =>
    inSteps((limit) => audit.prune({ teamId: OF_INSTANCE, olderMs, limit }), STEPS, signal),
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
