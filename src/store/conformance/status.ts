/** What every driver must tell of the database and of the work in it. */
import assert from 'node:assert/strict';
import { subscribe } from './sending.ts';
import { caseWith, failAttempt, makeJob, makeRunning, makeWorkflow, type Open } from './setup.ts';

export function testStatus(open: Open): void {
  const it = caseWith(open);

  it('tells how large the database is, and how far its tables have come', async ({ store }) => {
    const { kind, version, bytes, walBytes, schema } = await store.status.database();
    assert.match(kind, /^(sqlite|postgres)$/);
    assert.match(version, /^\d+\.\d+/);
    assert.ok(bytes > 10_000 && Number.isInteger(bytes) && schema >= 8, `${bytes} ${schema}`);
    assert.equal(walBytes === null, kind === 'postgres');
  });

  it('counts what is to be done for all teams, up to a bound', async ({ store, advance }) => {
    const nothing = { queued: 0, running: 0, retrying: 0, complete: true };
    const none = { waiting: 0, oldestWaitingAt: null, complete: true };
    assert.deepEqual(await store.status.work({ most: 10 }), { jobs: nothing, deliveries: none });
    const first = await makeWorkflow(store);
    const oldestWaitingAt = store.now();
    const webhookId = await subscribe(store, { ...first, workflowId: null }, ['x']);
    await store.webhooks.test({ teamId: first.teamId, id: webhookId });
    advance(1_000);
    const second = await makeWorkflow(store, { team: 'other' });
    const other = await subscribe(store, { ...second, workflowId: null }, ['x']);
    for (let n = 0; n < 2; n++) await store.webhooks.test({ teamId: second.teamId, id: other });
    const follows = { state: 'retrying', runAt: store.now() + 3_600_000 } as const;
    await failAttempt(store, await makeRunning(store, second), { follows });
    await makeRunning(store, first);
    await makeJob(store, await makeWorkflow(store, { id: 'waits' }));
    const { jobs, deliveries } = await store.status.work({ most: 10 });
    assert.deepEqual(jobs, { queued: 1, running: 1, retrying: 1, complete: true });
    assert.deepEqual(deliveries, { waiting: 3, oldestWaitingAt, complete: true });
    const bounded = await store.status.work({ most: 2 });
    assert.deepEqual([bounded.deliveries.waiting, bounded.deliveries.complete], [2, false]);
    assert.equal(bounded.jobs.complete, false);
  });
}
