/** Usage: counting what teams have done, by hours and days. */
import assert from 'node:assert/strict';
import { LATENCY_BOUNDS_MS, type UsageCounts, type UsageKind, type UsagePeriod } from '../../model/usage.ts';
import type { Store } from '../store.ts';
import { FAILED, load, OK, settle, subscribe } from './sending.ts';
import {
  allSteps,
  caseWith,
  countUsage,
  failAttempt,
  makeJob,
  makeRunning,
  makeWorkflow,
  type Open,
  publishRun,
} from './setup.ts';

const HOUR = 3_600_000;
const GRACE = { graceMs: 60_000 };

export function testUsage(open: Open): void {
  const it = caseWith(open);

  it('counts jobs and records of the team and of each workflow, by hours and days', async ({
    store,
    advance,
  }) => {
    const at = await makeWorkflow(store);
    const other = await makeWorkflow(store, { id: 'orders' });
    const { teamId, workflowId } = at;
    const from = store.now();
    await publishRun(store, at, { a: 'Ada', b: 'Grace' });
    await publishRun(store, at, { a: 'Ada' });
    advance(HOUR);
    await publishRun(store, at, { a: 'Augusta', c: 'Joan' });
    await failAttempt(store, await makeRunning(store, other));
    await store.jobs.cancel({ teamId, id: (await makeJob(store, other)).id, by: 'somebody' });
    await countAll(store);
    const first = { finished: 2, added: 2, removed: 1 };
    const second = { finished: 1, added: 1, changed: 1 };
    const orders = { failed: 1, canceled: 1 };
    const hours = (kind: UsageKind, subject: string) => read(store, teamId, kind, subject, 'hour');
    assert.deepEqual(await hours('workflow', workflowId), [
      { start: from, ...first },
      { start: from + HOUR, ...second },
    ]);
    assert.deepEqual(await hours('workflow', 'orders'), [{ start: from + HOUR, ...orders }]);
    assert.deepEqual(await hours('team', ''), [
      { start: from, ...first },
      { start: from + HOUR, ...second, ...orders },
    ]);
    assert.deepEqual(await read(store, teamId, 'team', '', 'day'), [
      { start: from, finished: 3, added: 3, changed: 1, removed: 1, ...orders },
    ]);
  });

  it('counts everything once, in any number of calls and steps of any size', async ({ store }) => {
    const at = await makeWorkflow(store);
    const { teamId } = at;
    await publishRun(store, at, { a: 'Ada' });
    await countUsage(store, { ...GRACE, limit: 1 });
    await publishRun(store, at, { b: 'Grace' });
    await Promise.all([countAll(store), countAll(store), countAll(store)]);
    assert.deepEqual(await read(store, teamId, 'team', '', 'day'), [
      { start: store.now(), finished: 2, added: 2, removed: 1 },
    ]);
  });

  it('counts attempts some time after they started, of the team and of each webhook', async ({
    store,
    advance,
  }) => {
    const at = await makeWorkflow(store);
    const { teamId } = at;
    const from = store.now();
    const webhookId = await subscribe(store, at, ['job.queued']);
    const other = await subscribe(store, at, ['job.queued', 'job.canceled']);
    await makeJob(store, at);
    const [due] = await load(store, teamId, webhookId);
    const [second] = await load(store, teamId, other);
    const later = { state: 'waiting', nextAt: from } as const;
    await settle(store, due, 1, later, { ...FAILED, startedAt: from });
    await settle(store, due, 2, { state: 'delivered' }, { ...OK, startedAt: from, durationMs: 150 });
    for (let n = 1; n < 10; n++) await settle(store, second, n, later, { ...FAILED, startedAt: from + 1 });
    await settle(store, second, 10, { state: 'dead' }, { ...FAILED, startedAt: from + 2 });
    advance(59_999);
    await countAll(store);
    assert.deepEqual(await read(store, teamId, 'team', '', 'hour'), []);
    advance(3);
    // Attempts that started in the same millisecond are counted together, however small the step.
    await countUsage(store, { ...GRACE, limit: 1 });
    assert.equal((await store.usage.read(query(store, teamId))).countedUntil, from + 2);
    const latency = LATENCY_BOUNDS_MS.map((ms) => (ms === 200 ? 1 : 0)).concat(0);
    assert.deepEqual(await read(store, teamId, 'webhook', webhookId, 'hour'), [
      { start: from, delivered: 1, failedAttempts: 1, latency },
    ]);
    assert.deepEqual(await read(store, teamId, 'webhook', other, 'hour'), [
      { start: from, failedAttempts: 10, dead: 1 },
    ]);
    assert.deepEqual(await read(store, teamId, 'team', '', 'day'), [
      { start: from, delivered: 1, failedAttempts: 11, dead: 1, latency },
    ]);
  });

  it('counts expired deliveries as dead', async ({ store, advance }) => {
    const at = await makeWorkflow(store);
    const { teamId } = at;
    const webhookId = await subscribe(store, at, ['job.queued']);
    await makeJob(store, at);
    await store.webhooks.pause({ teamId, id: webhookId, reason: 'By hand' });
    advance(HOUR);
    await allSteps(store.deliveries.expire, { teamId, olderMs: 1, limit: 10 });
    await countAll(store);
    const expected = [{ start: store.now(), dead: 1 }];
    assert.deepEqual(await read(store, teamId, 'webhook', webhookId, 'hour'), expected);
    assert.deepEqual(await read(store, teamId, 'team', '', 'hour'), expected);
  });

  it('separates teams, and counts nothing for a team that is being deleted', async ({ store, advance }) => {
    const at = await makeWorkflow(store);
    const gone = await makeWorkflow(store, { team: 'gone' });
    for (const one of [at, gone]) await publishRun(store, one, { a: 'Ada' });
    await store.teams.retire({ teamId: gone.teamId, force: true });
    advance(HOUR);
    await countAll(store);
    assert.equal((await read(store, at.teamId, 'team', '', 'hour')).length, 1);
    assert.deepEqual(await read(store, gone.teamId, 'team', '', 'hour'), []);
  });

  it('continues after the clock was set back', async ({ store, advance }) => {
    const at = await makeWorkflow(store);
    const { teamId } = at;
    const webhookId = await subscribe(store, at, ['job.queued']);
    advance(1_000 * HOUR);
    await countAll(store);
    advance(-1_000 * HOUR);
    await countAll(store);
    await makeJob(store, at);
    const [due] = await load(store, teamId, webhookId);
    await settle(store, due, 1, { state: 'delivered' }, { ...OK, startedAt: store.now() });
    advance(HOUR);
    await countAll(store);
    assert.equal((await read(store, teamId, 'webhook', webhookId, 'hour'))[0]?.delivered, 1);
  });

  it('prunes old hours before old days', async ({ store, advance }) => {
    const at = await makeWorkflow(store);
    const { teamId } = at;
    await publishRun(store, at, { a: 'Ada' });
    await countAll(store);
    advance(48 * HOUR);
    const prune = () =>
      allSteps(store.usage.prune, { teamId, hoursMs: 24 * HOUR, daysMs: 72 * HOUR, limit: 1 });
    await prune();
    const left = () =>
      Promise.all(
        (['hour', 'day'] as const).map(
          async (period) => (await read(store, teamId, 'team', '', period)).length,
        ),
      );
    assert.deepEqual(await left(), [0, 1]);
    advance(48 * HOUR);
    await prune();
    assert.deepEqual(await left(), [0, 0]);
  });
}

async function countAll(store: Store): Promise<void> {
  await countUsage(store, { ...GRACE, limit: 100 });
}

function query(store: Store, teamId: string) {
  const whose = { kind: 'team', subject: '', period: 'hour' } as const;
  return { teamId, ...whose, from: 0, until: store.now() + 2_000 * HOUR };
}

/** The nonzero counts. */
async function read(
  store: Store,
  teamId: string,
  kind: UsageKind,
  subject: string,
  period: UsagePeriod,
): Promise<(Partial<UsageCounts> & { start: number })[]> {
  const { periods } = await store.usage.read({ ...query(store, teamId), kind, subject, period });
  const isSomething = (count: unknown) => (Array.isArray(count) ? count.some((one) => one > 0) : count !== 0);
  return periods.map(
    (counts) =>
      Object.fromEntries(
        Object.entries(counts).filter(([, count]) => isSomething(count)),
      ) as Partial<UsageCounts> & {
        start: number;
      },
  );
}
