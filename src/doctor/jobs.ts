/** Jobs, schedules and deletions: what keeps failing, is overdue, or is stuck. */

import type { Workflow } from '../model/workflow.ts';
import { countWords, durationWords } from '../std/amounts.ts';
import { everyRow } from '../store/page.ts';
import type { Store } from '../store/store.ts';
import { type Check, ofStore, ok, skipped, warning } from './check.ts';
import { listed } from './listed.ts';

const MINUTE_MS = 60_000;
/** How many runs in a row must have failed. */
const RUNS = 3;
const LATE_MS = 5 * MINUTE_MS;
const WAITING_MS = 15 * MINUTE_MS;
const MOST = 1_000;
/** How many waiting jobs of each team are examined. */
const LOOKED_AT = 100;

/** Each team with its workflows. */
async function* teamsOf(
  store: Store,
): AsyncGenerator<{ teamId: string; slug: string; workflows: Workflow[] }> {
  for await (const { id: teamId, slug } of everyRow(store.teams.list, {})) {
    yield { teamId, slug, workflows: await Array.fromAsync(everyRow(store.workflows.list, { teamId })) };
  }
}

export const failingWorkflows: Check = ofStore('work', 'workflows', async (store) => {
  const failing: string[] = [];
  let count = 0;
  for await (const { teamId, slug, workflows } of teamsOf(store)) {
    count += workflows.length;
    const recent = await store.jobs.recent({
      teamId,
      workflowIds: workflows.map(({ id }) => id),
      // Unfinished jobs do not count.
      each: RUNS + 2,
    });
    for (const [id, jobs] of recent) {
      const ended = jobs.filter(({ state }) => state === 'failed' || state === 'finished').slice(0, RUNS);
      if (ended.length === RUNS && ended.every(({ state }) => state === 'failed'))
        failing.push(`${slug}/${id}`);
    }
  }
  if (failing.length === 0)
    return ok(`${countWords(count, 'workflow')}, none with ${RUNS} failed runs in a row`);
  return warning({
    what: `The last ${RUNS} runs of these workflows failed: ${listed(failing)}`,
    why: 'Their published records are not updated and go stale',
    fix: '`flowhook jobs list --state failed` shows why, `flowhook jobs logs ID` the output of a run',
  });
});

export const schedules: Check = ofStore('work', 'schedules', async (store, _settings, { isServed }) => {
  if (isServed === false) return skipped('Not checked', 'Schedules need a running server');
  const now = store.now();
  const late = (await store.schedules.due({ limit: MOST })).filter(({ dueAt }) => now - dueAt > LATE_MS);
  const [first] = late;
  if (first === undefined) return ok('No schedule is overdue');
  return warning({
    what: `${countWords(late.length, 'overdue schedule')}, the oldest by ${durationWords(now - first.dueAt)}: ${listed(late.map(({ workflowId }) => workflowId))}`,
    why: 'Due runs do not start: no node runs jobs (FLOWHOOK_ROLE), or the one that does hangs',
    fix: 'Check the logs of the nodes that run jobs, and restart them',
  });
});

export const waitingJobs: Check = ofStore('work', 'jobs', async (store, _settings, { isServed }) => {
  const { running, queued, retrying, complete } = (await store.status.work({ most: 10_000 })).jobs;
  const counted = `${complete ? '' : 'At least '}${running} running, ${queued} queued, ${retrying} waiting to retry`;
  if (isServed === false) {
    return running === 0
      ? ok(counted)
      : ok(`${counted}; no server is up: the next start picks up the running ones`);
  }
  const stuck = await stuckJobs(store);
  const abandoned = await store.jobs.abandoned({ nodeId: null });
  if (stuck.length === 0 && abandoned.length === 0) return ok(counted);
  const words = [
    ...(stuck.length === 0 ? [] : [`queued for more than ${durationWords(WAITING_MS)}: ${listed(stuck)}`]),
    ...(abandoned.length === 0
      ? []
      : [`running on a node that is gone: ${listed(abandoned.map(({ workflowId }) => workflowId))}`]),
  ];
  return warning({
    what: `${counted}; ${words.join('; ')}`,
    why: 'FLOWHOOK_MAX_RUNNING_JOBS is too low for the backlog, or no node runs jobs',
    fix: '`flowhook jobs list --state running` shows what occupies the slots; `flowhook jobs cancel ID` frees one',
  });
});

/** Jobs that wait only for a free slot. */
async function stuckJobs(store: Store): Promise<string[]> {
  const stuck: string[] = [];
  const until = store.now() - WAITING_MS;
  for await (const { teamId, slug, workflows } of teamsOf(store)) {
    const waiting = await store.jobs.list({ teamId, states: ['queued'], until, limit: LOOKED_AT });
    if (waiting.length === 0) continue;
    const paused = new Set(workflows.filter(({ pausedAt }) => pausedAt !== null).map(({ id }) => id));
    // With `overlap: buffer` a job may wait behind a running one of its workflow.
    const others = await store.jobs.list({ teamId, states: ['running', 'retrying'], limit: LOOKED_AT });
    const busy = new Set(others.map(({ workflowId }) => workflowId));
    for (const { workflowId } of waiting) {
      if (!paused.has(workflowId) && !busy.has(workflowId)) stuck.push(`${slug}/${workflowId}`);
    }
  }
  return stuck;
}

export const deletions: Check = ofStore('work', 'deletions', async (store, _settings, { isServed }) => {
  const retired = await Array.fromAsync(everyRow(store.teams.retired, {}), ({ slug }) => slug);
  if (retired.length === 0) return ok('No team is being deleted');
  const what = `Deleted teams with rows left: ${listed(retired)}`;
  if (isServed !== false) return ok(`${what}; a server deletes them in small batches`);
  return warning({
    what,
    why: 'No server is running to finish it, and their data is still on the disk',
    fix: 'Start the service, or run `flowhook teams delete` again',
  });
});
