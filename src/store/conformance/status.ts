/** The status of the database and of the work in it. */
import assert from 'node:assert/strict';
import { FAILED, load, settlement, subscribe } from './sending.ts';
import { caseWith, failAttempt, makeJob, makeRunning, makeWorkflow, type Open } from './setup.ts';

export function testStatus(open: Open): void {
  const it = caseWith(open);

  it('returns the size of the database and its schema version', async ({ store }) => {
    const { kind, version, bytes, walBytes, schema } = await store.status.database();
    assert.match(kind, /^(sqlite|postgres)$/);
    assert.match(version, /^\d+\.\d+/);
    assert.ok(bytes > 10_000 && Number.isInteger(bytes) && schema >= 8, `${bytes} ${schema}`);
    assert.equal(walBytes === null, kind === 'postgres');
  });

  it('counts unfinished work of all teams, up to a limit', async ({ store, advance }) => {
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

  it('returns since when deliveries are due, separately for failing endpoints and without paused ones', async ({
    store,
    advance,
  }) => {
    const nothing = { webhooks: 0, oldestDueAt: null };
    assert.deepEqual(await store.status.due(), { well: nothing, failing: nothing });
    const at = await makeWorkflow(store);
    const { teamId } = at;
    const dueAt = store.now();
    const [well, failing, ordered, paused] = [
      await subscribe(store, at, ['well']),
      await subscribe(store, { ...at, workflowId: null }, ['failing']),
      await subscribe(store, at, ['ordered'], { ordered: true, ratePerSecond: null, timeoutMs: 15_000 }),
      await subscribe(store, at, ['paused']),
    ];
    for (const id of [well, well, failing, failing, ordered, ordered, paused]) {
      await store.webhooks.test({ teamId, id });
    }
    await store.webhooks.pause({ teamId, id: paused, reason: 'by hand' });
    const later = { state: 'waiting', nextAt: dueAt + 60_000 } as const;
    for (const webhookId of [failing, ordered]) {
      const [first] = await load(store, teamId, webhookId);
      assert.ok(first !== undefined);
      const failed = { ...settlement(first, 1, later, FAILED), health: 'failing' as const };
      await store.deliveries.settle({ settlements: [failed] });
    }
    advance(1_000);
    // The first delivery of the ordered lane is not due yet, and the others wait behind it.
    const one = { webhooks: 1, oldestDueAt: dueAt };
    assert.deepEqual(await store.status.due(), { well: one, failing: one });
    advance(60_000);
    const both = { webhooks: 2, oldestDueAt: dueAt };
    assert.deepEqual(await store.status.due(), { well: one, failing: both });
  });

  it('returns the schema version that it finds and the one that it knows', async ({ store }) => {
    const { found, newest } = await store.status.schema();
    assert.ok(found >= 8 && Number.isInteger(found));
    assert.equal(newest, found);
  });
}
