/** When something is next due, so that an idle node can sleep until then. */
import assert from 'node:assert/strict';
import { ORDERED } from './many-deliveries.ts';
import { FAILED, oneDelivery, settle, subscribe } from './sending.ts';
import { allSteps, caseWith, claimOne, failAttempt, makeJob, makeWorkflow, type Open } from './setup.ts';

export function testNextDue(open: Open): void {
  const it = caseWith(open);

  it('knows when the first waiting job is due', async ({ store, advance }) => {
    assert.equal(await store.jobs.nextDueAt(), null);
    const retried = await makeWorkflow(store, { id: 'retried', priority: 2 });
    await makeJob(store, retried);
    const held = await claimOne(store);
    assert.equal(await store.jobs.nextDueAt(), null, 'a running job is not waiting');
    const runAt = store.now() + 60_000;
    await failAttempt(store, held, { follows: { state: 'retrying', runAt } });
    assert.equal(await store.jobs.nextDueAt(), runAt);
    const queuedAt = store.now();
    const other = await makeWorkflow(store, { team: 'other' });
    await makeJob(store, other);
    assert.equal(await store.jobs.nextDueAt(), queuedAt);
    await store.workflows.pause({ teamId: other.teamId, id: other.workflowId });
    assert.equal(await store.jobs.nextDueAt(), runAt, 'jobs of paused workflows are left out');
    advance(60_000);
    await claimOne(store);
    assert.equal(await store.jobs.nextDueAt(), null);
  });

  it('knows when the first schedule is due', async ({ store }) => {
    assert.equal(await store.schedules.nextDueAt(), null);
    const nextRunAt = store.now() + 60_000;
    const schedule = { everyMs: 60_000, missed: 'run' } as const;
    const { teamId } = await makeWorkflow(store, { id: 'later', schedule, nextRunAt: nextRunAt + 1 });
    await makeWorkflow(store, { id: 'next', schedule, nextRunAt });
    await makeWorkflow(store, { id: 'without' });
    assert.equal(await store.schedules.nextDueAt(), nextRunAt);
    await store.workflows.pause({ teamId, id: 'next' });
    assert.equal(await store.schedules.nextDueAt(), nextRunAt + 1);
    await store.workflows.archive({ teamId, ids: ['later'] });
    assert.equal(await store.schedules.nextDueAt(), null);
  });

  it('knows when the first waiting delivery is due', async ({ store }) => {
    assert.equal(await store.deliveries.nextDueAt(), null);
    const { teamId, webhookId, due } = await oneDelivery(store);
    const createdAt = store.now();
    assert.equal(await store.deliveries.nextDueAt(), createdAt);
    const retriedAt = createdAt + 60_000;
    await settle(store, due, 1, { state: 'waiting', nextAt: retriedAt }, FAILED);
    assert.equal(await store.deliveries.nextDueAt(), retriedAt);
    const at = await makeWorkflow(store, { id: 'ordered' });
    const ordered = await subscribe(store, at, ['workflow_queued'], ORDERED);
    await makeJob(store, at);
    assert.equal(await store.deliveries.nextDueAt(), createdAt);
    await store.webhooks.pause({ teamId, id: ordered, reason: 'By hand' });
    assert.equal(await store.deliveries.nextDueAt(), retriedAt, 'paused webhooks are left out');
    await store.webhooks.unsubscribe({ teamId, ids: [webhookId] });
    assert.equal(await store.deliveries.nextDueAt(), null);
  });

  it('knows whether a replay is running', async ({ store }) => {
    const { teamId, webhookId, due } = await oneDelivery(store);
    await settle(store, due, 1, { state: 'delivered' });
    assert.equal(await store.deliveries.replaysRun(), false);
    await store.deliveries.startReplay({ teamId, webhookId, states: ['delivered'] });
    assert.equal(await store.deliveries.replaysRun(), true);
    await allSteps(store.deliveries.stepReplays, { limit: 9, waiting: 9 });
    assert.equal(await store.deliveries.replaysRun(), false);
  });
}
