/** Checks for jobs, schedules, webhooks and deliveries that fail repeatedly, are overdue or are stuck. */
import { canonicalEvents, nearestEvent } from '../model/event.ts';
import type { Webhook } from '../model/webhook.ts';
import type { Workflow } from '../model/workflow.ts';
import { hostOf } from '../net/host.ts';
import { countWords, durationWords, grouped, listed } from '../std/amounts.ts';
import { oldestDecisionAt } from '../store/oldest-decision.ts';
import { everyRow } from '../store/page.ts';
import type { Store } from '../store/store.ts';
import { type Check, ofStore, ok, type Result, skipped, warning } from './check.ts';

const MINUTE_MS = 60_000;
/** A workflow is reported after this many consecutive failed runs. */
const RUNS = 3;
const LATE_MS = 5 * MINUTE_MS;
const WAITING_MS = 15 * MINUTE_MS;
const MAX_LATE = 1_000;
/** The maximum number of waiting jobs per team that are examined. */
const EXAMINED_JOBS = 100;

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
    fix: '`flowhook jobs list --state failed` shows the errors, and `flowhook jobs logs ID` shows the log of a run',
  });
});

export const freshness: Check = ofStore('work', 'freshness', async (store) => {
  let watched = 0;
  const stale: string[] = [];
  for await (const { slug, workflows } of teamsOf(store)) {
    for (const { id, freshDueAt, staleSince, pausedAt } of workflows) {
      if (freshDueAt === null || pausedAt !== null) continue;
      watched += 1;
      const staleMs = staleSince === null ? 0 : store.now() - freshDueAt;
      if (staleSince !== null) stale.push(`${slug}/${id} by ${durationWords(staleMs)}`);
    }
  }
  if (watched === 0) return ok('No workflow sets `fresh`');
  if (stale.length === 0) return ok(`${countWords(watched, 'workflow')} with \`fresh\`, none stale`);
  return warning({
    what: `No run of these workflows has succeeded in time: ${listed(stale)}`,
    why: 'Their sources fail, nothing runs them, or nobody pushes their records',
    fix: '`flowhook workflows show ID` shows the schedule and the last job, and `flowhook run ID` starts a run',
  });
});

export const schedules: Check = ofStore('work', 'schedules', async (store, _settings, { isServed }) => {
  if (isServed === false) return skipped('Not checked', 'Schedules need a running server');
  const now = store.now();
  const late = (await store.schedules.due({ limit: MAX_LATE })).filter(({ dueAt }) => now - dueAt > LATE_MS);
  const [first] = late;
  if (first === undefined) return ok('No schedule is overdue');
  return warning({
    what: `${countWords(late.length, 'overdue schedule')}, the oldest by ${durationWords(now - first.dueAt)}: ${listed(late.map(({ workflowId }) => workflowId))}`,
    why: 'Scheduled runs do not start, because no node runs jobs (FLOWHOOK_ROLE) or the node hangs',
    fix: 'Check the logs of the nodes that run jobs, and restart them',
  });
});

export const waitingJobs: Check = ofStore('work', 'jobs', async (store, _settings, { isServed }) => {
  const { running, queued, retrying, complete } = (await store.status.work({ most: 10_000 })).jobs;
  const counted = `${complete ? '' : 'At least '}${running} running, ${queued} queued, ${retrying} waiting to retry`;
  if (isServed === false) {
    return running === 0
      ? ok(counted)
      : ok(`${counted}; no server is running, and the next start continues the running jobs`);
  }
  const stuck = await stuckJobs(store);
  const abandoned = await store.jobs.abandoned({ nodeId: null });
  if (stuck.length === 0 && abandoned.length === 0) return ok(counted);
  const words = [
    ...(stuck.length === 0 ? [] : [`queued for more than ${durationWords(WAITING_MS)}: ${listed(stuck)}`]),
    ...(abandoned.length === 0
      ? []
      : [`running on a node that has ended: ${listed(abandoned.map(({ workflowId }) => workflowId))}`]),
  ];
  return warning({
    what: `${counted}; ${words.join('; ')}`,
    why: 'FLOWHOOK_MAX_RUNNING_JOBS is too low for the backlog, or no node runs jobs',
    fix: '`flowhook jobs list --state running` shows the jobs that use all slots, and `flowhook jobs cancel ID` cancels one',
  });
});

/** Returns the workflows whose queued jobs wait only for a free slot. */
async function stuckJobs(store: Store): Promise<string[]> {
  const stuck: string[] = [];
  const until = store.now() - WAITING_MS;
  for await (const { teamId, slug, workflows } of teamsOf(store)) {
    const waiting = await store.jobs.list({ teamId, states: ['queued'], until, limit: EXAMINED_JOBS });
    if (waiting.length === 0) continue;
    const paused = new Set(workflows.filter(({ pausedAt }) => pausedAt !== null).map(({ id }) => id));
    // With `overlap: buffer`, a queued job may be waiting for a running job of the same workflow.
    const others = await store.jobs.list({ teamId, states: ['running', 'retrying'], limit: EXAMINED_JOBS });
    const busy = new Set(others.map(({ workflowId }) => workflowId));
    for (const { workflowId } of waiting) {
      if (!paused.has(workflowId) && !busy.has(workflowId)) stuck.push(`${slug}/${workflowId}`);
    }
  }
  return stuck;
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** A delivery that is this old has had four attempts. */
const LONG_MS = HOUR_MS;
/** The maximum number of webhooks and deliveries that are examined. */
const MOST = 10_000;

export const webhookHealth: Check = ofStore('work', 'webhooks', async (store, _settings, { node }) => {
  const all = await webhooksOf(store);
  return webhooksResult(all, { now: store.now(), openCircuits: node?.openCircuits ?? 0 });
});

export function webhooksResult(
  all: readonly Pick<Webhook, 'id' | 'url' | 'state' | 'failingSince' | 'pausedReason'>[],
  { now, openCircuits }: { now: number; openCircuits: number },
): Result {
  const failing = all.filter(
    ({ state, failingSince }) => state === 'active' && failingSince !== null && now - failingSince >= HOUR_MS,
  );
  // A paused webhook that did not fail before the pause was paused intentionally.
  const paused = all.filter(({ state, failingSince }) => state === 'paused' && failingSince !== null);
  const words = [
    ...failing.map(
      ({ id, url, failingSince }) =>
        `${id} (${hostOf(url)}) for ${durationWords(now - (failingSince ?? now))}`,
    ),
    ...paused.map(({ id, url }) => `${id} (${hostOf(url)}) paused`),
    ...(openCircuits === 0 ? [] : [`circuit breaker open for ${countWords(openCircuits, 'endpoint')}`]),
  ];
  if (words.length === 0) return ok(`${countWords(all.length, 'webhook')}, none failing for an hour`);
  return warning({
    what: `Failing webhooks: ${listed(words)}`,
    why:
      'Their deliveries wait, and become dead after about four days. Dead deliveries can be replayed as long ' +
      'as their events are kept',
    fix: '`flowhook webhooks deliveries ID` shows the last responses. When the receiver works, run `flowhook webhooks resume ID` or `flowhook webhooks replay ID --since TIME`',
  });
}

export const webhookEvents: Check = ofStore('work', 'webhook-events', async (store) =>
  webhookEventsResult(await webhooksOf(store)),
);

export function webhookEventsResult(all: readonly Pick<Webhook, 'id' | 'events'>[]): Result {
  const words = all.flatMap(({ id, events }) => {
    // The unknown name of the event is left out, because it is data of the team.
    const unknown = canonicalEvents(events).unknown;
    const meant = unknown.flatMap((name) => nearestEvent(name) ?? []);
    const advice = meant.length === 0 ? '' : ` (probably ${listed(meant)})`;
    return unknown.length === 0 ? [] : [`${id}${advice}`];
  });
  if (words.length === 0) return ok(`${countWords(all.length, 'webhook')}, all for events that exist`);
  return warning({
    what: `Webhooks for events that do not exist: ${listed(words)}`,
    why: 'No event ever matches such a name',
    fix: '`flowhook webhooks show ID` shows the names. Subscribe to the right events, then run `flowhook webhooks unsubscribe ID`',
  });
}

export const decisions: Check = ofStore('work', 'decisions', async (store) => {
  const oldestAt = await oldestDecisionAt(store);
  const since = store.now() - DAY_MS;
  const mistaken = (await webhooksOf(store)).filter(({ ruleMistake }) => (ruleMistake?.at ?? 0) >= since);
  return decisionsResult({
    oldestMs: oldestAt === null ? 0 : store.now() - oldestAt,
    mistaken: mistaken.map(({ id }) => id),
  });
});

/**
 * @param found.oldestMs the age of the oldest event that waits for a decision; 0 if there is none
 * @param found.mistaken ids of webhooks whose filter or template has failed in the last day
 */
export function decisionsResult({
  oldestMs,
  mistaken,
}: {
  oldestMs: number;
  mistaken: readonly string[];
}): Result {
  if (oldestMs > LATE_MS) {
    return warning({
      what: `An event has been waiting for ${durationWords(oldestMs)} for the filter of a webhook`,
      why: 'No node sends webhooks (FLOWHOOK_ROLE), or the filters have more to examine than they have time for',
      fix: 'Search the log for decision.too_slow and decisions.not_made. `flowhook webhooks decisions ID --state pending` lists what waits',
    });
  }
  if (mistaken.length === 0) return ok('No event waits long for a filter, and no filter has failed');
  return warning({
    what: `Webhooks whose filter or template failed for a record in the last day: ${listed(mistaken)}`,
    why: 'A record for which a filter fails counts as not matching, so it may be missing',
    fix: '`flowhook webhooks show ID` shows an example: allow for such records in the filter',
  });
}

export const deliveries: Check = ofStore('work', 'deliveries', async (store) => {
  const { waiting, oldestWaitingAt, complete } = (await store.status.work({ most: MOST })).deliveries;
  return deliveriesResult({
    waiting,
    complete,
    oldestMs: oldestWaitingAt === null ? 0 : store.now() - oldestWaitingAt,
  });
});

export function deliveriesResult(found: { waiting: number; complete: boolean; oldestMs: number }): Result {
  const { waiting, complete, oldestMs } = found;
  if (waiting === 0) return ok('No deliveries are waiting');
  const what = `Delivery backlog: ${grouped(waiting)}${complete ? '' : ' or more'}, the oldest waiting ${durationWords(oldestMs)}`;
  if (oldestMs < LONG_MS) return ok(what);
  return warning({
    what,
    why: 'Endpoints fail, webhooks are paused, or no node delivers webhooks (FLOWHOOK_ROLE)',
    fix: 'See the finding about webhooks. `flowhook webhooks deliveries ID` lists the waiting deliveries of a webhook',
  });
}

async function webhooksOf(store: Store): Promise<Webhook[]> {
  const all: Webhook[] = [];
  for await (const { id: teamId } of everyRow(store.teams.list, {})) {
    for await (const webhook of everyRow(store.webhooks.list, { teamId })) {
      all.push(webhook);
      if (all.length === MOST) return all;
    }
  }
  return all;
}
