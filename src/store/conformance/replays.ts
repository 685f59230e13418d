/** Replays of named deliveries; counting what a replay would send, and the deliveries that it has sent. */
import assert from 'node:assert/strict';
import type { DeliveryState } from '../../model/delivery.ts';
import { endAll, manyDeliveries, ORDERED, testEvents } from './many-deliveries.ts';
import { FAILED, HOLDER, load, MANY, oneDelivery, settle, subscribe } from './sending.ts';
import { allSteps, caseWith, makeWorkflow, type Open } from './setup.ts';

export function testReplays(open: Open): void {
  const it = caseWith(open);

  it('sends an event again: the same bytes in a new delivery', async ({ store, advance }) => {
    const { teamId, webhookId, due } = await oneDelivery(store);
    await settle(store, due, 1, { state: 'delivered' });
    advance(50);
    const again = (id: string, team = teamId) => store.deliveries.replay({ teamId: team, ids: [id] });
    const [made] = (await again(due.id)) ?? [];
    const id = made?.id;
    assert.deepEqual(made, { id, isNew: true, attempt: 0 });
    const [replayed, ...more] = await load(store, teamId, webhookId);
    const { class: _, origin, createdAt, dueAt, ...same } = due;
    assert.deepEqual(replayed, {
      ...same,
      id,
      origin: 'replay',
      class: 'replay',
      createdAt: createdAt + 50,
      dueAt: dueAt + 50,
    });
    assert.equal(origin, 'event');
    assert.equal(more.length, 0);
    assert.deepEqual(await again(due.id), [{ id, isNew: false, attempt: 0 }], 'already waiting');
    await settle(store, replayed, 1, { state: 'delivered' });
    assert.notEqual((await again(due.id))?.[0]?.id, id);
    assert.equal(await again(due.id, 'team_x'), undefined);
    assert.equal(await again('dlv_x'), undefined);
    await store.webhooks.unsubscribe({ teamId, ids: [webhookId] });
    assert.equal(await again(due.id), undefined);
  });

  it('sends all named deliveries again, or none', async ({ store }) => {
    const at = await manyDeliveries(store, 3);
    const { teamId, webhookId, ids } = at;
    await endAll(store, at, 'delivered');
    const count = async () => (await store.deliveries.list({ teamId, webhookId, limit: 99 })).length;
    const made = await store.deliveries.replay({ teamId, webhookId, ids: [...ids].reverse() });
    const events = async (of: readonly string[]) =>
      Promise.all(of.map(async (id) => (await store.deliveries.get({ teamId, id }))?.eventId));
    const madeIds = made?.map(({ id }) => id) ?? [];
    assert.deepEqual(await events(madeIds), (await events(ids)).reverse());
    assert.ok(made?.every(({ isNew }) => isNew));
    assert.equal(await count(), 6);
    assert.equal(await store.deliveries.replay({ teamId, webhookId, ids: [...ids, 'dlv_x'] }), undefined);
    const foreign = { teamId, webhookId: 'wh_x', ids };
    assert.equal(await store.deliveries.replay(foreign), undefined);
    assert.equal(await count(), 6);
    await endAll(store, at, 'delivered');
    const twice = await store.deliveries.replay({ teamId, ids: [ids[0] as string, madeIds[2] as string] });
    assert.equal(twice?.[0]?.isNew, true);
    assert.deepEqual(twice[1], twice[0], 'both are of one event');
    assert.equal(await count(), 7);
  });

  it('returns the result of the first call with a key, per target and for a day', async ({
    store,
    advance,
  }) => {
    const at = await manyDeliveries(store, 2);
    const { teamId, webhookId, ids } = at;
    await endAll(store, at, 'delivered');
    const idempotencyKey = 'k';
    const count = async () => (await store.deliveries.list({ teamId, webhookId, limit: 99 })).length;
    const states: DeliveryState[] = ['dead'];
    const named = { teamId, webhookId, ids, idempotencyKey };
    const calls = [
      () => store.deliveries.replay(named),
      () => store.deliveries.replay({ teamId, ids: ids.slice(0, 1), idempotencyKey }),
      () => store.deliveries.startReplay({ teamId, webhookId, states, idempotencyKey }),
      () => store.webhooks.test({ teamId, id: webhookId, idempotencyKey }),
    ];
    const made = [];
    for (const call of calls) {
      const [first, ...others] = await Promise.all([call(), call(), call()]);
      assert.notEqual(first, undefined);
      for (const other of others) assert.deepEqual(other, first);
      made.push(first);
      await endAll(store, at, 'delivered');
    }
    assert.equal(await count(), 2 + 2 + 1 + 1);
    // A failed call is not remembered.
    const foreign = { teamId, webhookId: 'wh_x', states: ['dead'] as DeliveryState[], idempotencyKey };
    assert.equal(await store.deliveries.startReplay(foreign), undefined);
    assert.equal(await store.deliveries.startReplay(foreign), undefined);
    assert.notDeepEqual(await store.deliveries.replay({ ...named, idempotencyKey: 'other' }), made[0]);
    await endAll(store, at, 'delivered');
    assert.notDeepEqual(await store.deliveries.replay({ ...named, idempotencyKey: null }), made[0]);
    advance(24 * 3_600_000 + 1);
    for (const [n, call] of calls.entries()) {
      await endAll(store, at, 'delivered');
      assert.notDeepEqual(await call(), made[n]);
    }
  });

  it('makes a waiting delivery due instead of sending its event twice', async ({ store, advance }) => {
    const at = await manyDeliveries(store, 2);
    const { teamId, webhookId, ids } = at;
    const [first, second] = await load(store, teamId, webhookId);
    const later = { state: 'waiting', nextAt: store.now() + 3_600_000 } as const;
    await settle(store, first, 1, later, FAILED);
    await settle(store, second, 1, { state: 'dead' }, FAILED);
    advance(5_000);
    assert.deepEqual(await load(store, teamId, webhookId), []);
    const again = (id: string) => store.deliveries.replay({ teamId, ids: [id] });
    assert.deepEqual(await again(ids[0] as string), [{ id: ids[0], isNew: false, attempt: 1 }]);
    const [due, ...more] = await load(store, teamId, webhookId);
    assert.deepEqual(
      [due?.id, due?.attempt, due?.dueAt, due?.eventId],
      [ids[0], 1, store.now(), first?.eventId],
    );
    assert.equal(more.length, 0);
    const [copy] = (await again(ids[1] as string)) ?? [];
    assert.equal(copy?.isNew, true);
    const sent = (await load(store, teamId, webhookId)).find(({ id }) => id === copy?.id);
    await settle(store, sent, 1, { state: 'waiting', nextAt: store.now() + 3_600_000 }, FAILED);
    const waits = { id: copy?.id, isNew: false, attempt: 1 };
    assert.deepEqual(
      await again(ids[1] as string),
      [waits],
      'the copy of a dead delivery waits after a failure',
    );
    assert.deepEqual(await Promise.all([again(ids[1] as string), again(ids[1] as string)]), [
      [waits],
      [waits],
    ]);
    const { asked } = (await store.deliveries.lanes(HOLDER))[0] ?? {};
    assert.deepEqual(asked, { at: store.now(), deliveryId: copy?.id });
    const canceled = async () => store.webhooks.unsubscribe({ teamId, ids: [webhookId] });
    assert.equal(await canceled(), 1);
    assert.equal(await again(ids[0] as string), undefined);
  });

  it('makes all deliveries of an ordered webhook up to the replayed one due', async ({ store, advance }) => {
    const at = await makeWorkflow(store);
    const { teamId } = at;
    const webhookId = await subscribe(store, at, ['x'], ORDERED);
    const ids = await testEvents(store, { teamId, webhookId }, 3);
    const due = await store.deliveries.load({ teamId, webhookId, limits: MANY, ordered: true });
    for (const one of due) {
      await settle(store, one, 1, { state: 'waiting', nextAt: store.now() + 9_000 }, FAILED);
    }
    advance(1_000);
    await store.deliveries.replay({ teamId, ids: [ids[1] as string] });
    const found = await store.deliveries.load({ teamId, webhookId, limits: MANY, ordered: true });
    const waits = found.map(({ id, dueAt }) => [id, dueAt - store.now()]);
    assert.deepEqual(waits, [
      [ids[0], 0],
      [ids[1], 0],
      [ids[2], 8_000],
    ]);
  });

  it('counts in parts what a replay would send', async ({ store, advance }) => {
    const at = await manyDeliveries(store, 5, advance);
    const { teamId, webhookId, times } = at;
    const all = await load(store, teamId, webhookId);
    await settle(store, all[2], 1, { state: 'delivered' });
    const count = async (states: DeliveryState[], since?: number) => {
      const sequences: number[] = [];
      for (let after: { createdAt: number; id: string } | null | undefined; after !== null; ) {
        const input = { teamId, webhookId, states, since: since ?? 0, limit: 2 };
        const part = await store.deliveries.replayable(after === undefined ? input : { ...input, after });
        sequences.push(...part.found.map(({ sequence }) => sequence));
        after = part.next;
      }
      return sequences;
    };
    const sequences = all.map(({ sequence }) => sequence);
    assert.deepEqual(
      await count(['waiting']),
      sequences.filter((_, n) => n !== 2),
    );
    assert.deepEqual(await count(['waiting', 'delivered']), sequences);
    assert.deepEqual(await count(['waiting'], times[3]), sequences.slice(3));
    assert.deepEqual(await count(['dead', 'canceled']), []);
    assert.deepEqual(
      await store.deliveries.replayable({ teamId: 'team_x', webhookId, states: ['waiting'], limit: 9 }),
      { found: [], next: null },
    );
  });

  it('returns the states of the deliveries that a replay has sent', async ({ store, advance }) => {
    const at = await manyDeliveries(store, 4, advance);
    const { teamId, webhookId } = at;
    await endAll(store, at, 'dead');
    const started = await store.deliveries.startReplay({ teamId, webhookId, states: ['dead'] });
    const id = started?.id ?? '';
    await allSteps(store.deliveries.stepReplays, { limit: 9, waiting: 9 });
    const [one, two, three] = await load(store, teamId, webhookId);
    await settle(store, one, 1, { state: 'delivered' });
    await settle(store, two, 1, { state: 'dead' }, FAILED);
    const nextAt = store.now() + 5_000;
    await settle(store, three, 1, { state: 'waiting', nextAt }, { ...FAILED, outcome: 'http', status: 500 });
    const sent = await store.deliveries.replayed({ teamId, id, after: 0, limit: 9 });
    assert.deepEqual(
      sent.map(({ state, last }) => [state, last?.outcome ?? null, last?.status ?? null]),
      [
        ['delivered', 'ok', 204],
        ['dead', 'timeout', null],
        ['waiting', 'http', 500],
        ['waiting', null, null],
      ],
    );
    assert.equal(sent[2]?.last?.at, FAILED.startedAt);
    assert.deepEqual(
      await store.deliveries.replayed({ teamId, id, after: sent[0]?.sequence ?? 0, limit: 2 }),
      sent.slice(1, 3),
    );
    assert.deepEqual(await store.deliveries.replayed({ teamId: 'team_x', id, after: 0, limit: 9 }), []);
  });
}
