/** Retries at many webhooks. */
import assert from 'node:assert/strict';
import { ORDERED, testEvents } from './many-deliveries.ts';
import { FAILED, HOLDER, load, settle, subscribe } from './sending.ts';
import { allSteps, caseWith, makeJob, makeWorkflow, type Open } from './setup.ts';

const HOUR_MS = 3_600_000;

export function testRetries(open: Open): void {
  const it = caseWith(open);

  it('retries what a selection names at every webhook, without a duplicate, also after crashes', async (opened) => {
    const { store, advance, reopen } = opened;
    const at = await makeWorkflow(store);
    const { teamId } = at;
    const webhookIds = [await subscribe(store, at, ['a']), await subscribe(store, at, ['b'])];
    const untouched = await subscribe(store, at, ['workflow_queued']);
    await store.webhooks.change({ teamId, id: untouched, labels: ['customer:acme'] });
    await makeJob(store, at);
    const [queued] = await load(store, teamId, untouched);
    const nextAt = store.now() + HOUR_MS;
    await settle(store, queued, 1, { state: 'waiting', nextAt }, FAILED);
    const busy = { ...FAILED, outcome: 'http', status: 503 } as const;
    for (const webhookId of webhookIds) {
      await testEvents(store, { teamId, webhookId }, 4);
      const due = await load(store, teamId, webhookId);
      await settle(store, due[0], 1, { state: 'waiting', nextAt }, busy);
      await settle(store, due[1], 1, { state: 'dead' }, busy);
      await settle(store, due[2], 1, { state: 'dead' }, FAILED);
      await settle(store, due[3], 1, { state: 'delivered' });
    }
    advance(1_000);
    const selection = {
      teamId,
      states: ['waiting', 'dead'] as const,
      since: 0,
      until: store.now(),
      narrowing: { eventTypes: ['webhook_test'] as const, status: { from: 500, to: 599 } },
    };
    const retryable = (await store.deliveries.retryable({ ...selection, limit: 9 })).map(({ id }) => id);
    assert.deepEqual(retryable, [...webhookIds, untouched].sort());
    const ofLabel = await store.deliveries.retryable({ ...selection, label: 'customer:acme', limit: 9 });
    assert.deepEqual(ofLabel, [{ id: untouched }]);
    const planned = await store.deliveries.replayable({
      ...selection,
      webhookId: webhookIds[0] as string,
      limit: 9,
    });
    assert.deepEqual(planned.found.map(({ state }) => state).sort(), ['dead', 'waiting']);
    const before = await Promise.all(
      webhookIds.map((id) => store.deliveries.list({ teamId, webhookId: id, limit: 9 })),
    );
    const start = { ...selection, webhookIds: [...retryable, 'wh_x'], idempotencyKey: 'k' };
    const [id, again] = await Promise.all([
      store.deliveries.startRetry(start),
      store.deliveries.startRetry(start),
    ]);
    assert.equal(again, id);
    let current = store;
    for (let steps = 0; ; steps++) {
      assert.ok(steps < 30);
      const { done } = await current.deliveries.stepReplays({ limit: 1, waiting: 100 });
      current = await reopen();
      if (done) break;
    }
    const replays = await current.deliveries.replaysOfRetry({ teamId, id: id as string });
    assert.deepEqual(
      replays.map(({ webhookId, state, made }) => [webhookId, state, made]),
      retryable.map((one) => [one, 'done', one === untouched ? 0 : 2]),
    );
    advance(1_000);
    for (const [n, webhookId] of webhookIds.entries()) {
      const due = await load(current, teamId, webhookId);
      const [waited] = before[n]?.filter(({ state }) => state === 'waiting') ?? [];
      assert.equal(due.length, 2);
      assert.deepEqual(
        due.filter((one) => one.id === waited?.id).map((one) => [one.attempt, one.eventId]),
        [[1, waited?.eventId]],
        'the waiting delivery keeps its id, its attempts and its event',
      );
      assert.equal(new Set(due.map((one) => one.messageId)).size, 2);
      assert.equal((await current.deliveries.list({ teamId, webhookId, limit: 9 })).length, 5, 'one is new');
    }
    assert.deepEqual(await load(current, teamId, untouched), []);
    assert.deepEqual(await current.deliveries.replaysOfRetry({ teamId: 'team_x', id: id as string }), []);
  });

  it('starts no retry without a webhook', async ({ store }) => {
    const { teamId } = await makeWorkflow(store);
    const start = { teamId, states: ['dead'] as const, since: 0, until: 9, narrowing: {} };
    assert.equal(await store.deliveries.startRetry({ ...start, webhookIds: ['wh_x'] }), undefined);
    assert.equal(await store.deliveries.startRetry({ ...start, webhookIds: [] }), undefined);
  });

  it('makes earlier deliveries of an ordered webhook due, which must be sent first', async ({
    store,
    advance,
  }) => {
    const at = await makeWorkflow(store);
    const { teamId } = at;
    const webhookId = await subscribe(store, at, ['workflow_queued'], ORDERED);
    await makeJob(store, at);
    const [first] = await store.deliveries.load({ teamId, webhookId, limits: ONE, ordered: true });
    await settle(store, first, 1, { state: 'waiting', nextAt: store.now() + HOUR_MS }, FAILED);
    await testEvents(store, { teamId, webhookId }, 2);
    advance(1_000);
    assert.deepEqual(await store.deliveries.lanes(HOLDER), [], 'the first one holds back the others');
    const narrowing = { eventTypes: ['webhook_test'] as const };
    const selection = { teamId, states: ['waiting'] as const, since: 0, until: store.now(), narrowing };
    await store.deliveries.startRetry({ ...selection, webhookIds: [webhookId] });
    await allSteps(store.deliveries.stepReplays, { limit: 9, waiting: 9 });
    const due = await store.deliveries.load({ teamId, webhookId, limits: ONE, ordered: true });
    assert.equal(due[0]?.id, first?.id);
    assert.equal(due[0]?.attempt, 1);
  });
}

const ONE = { live: 1, retry: 1, replay: 1 };
