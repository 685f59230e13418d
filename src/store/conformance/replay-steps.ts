/** Replays of a selection, carried out in steps. */
import assert from 'node:assert/strict';
import type { DeliveryState } from '../../model/delivery.ts';
import type { Replay } from '../operations/deliveries/replays.ts';
import { endAll, manyDeliveries, ORDERED, testEvents } from './many-deliveries.ts';
import { FAILED, HOLDER, load, MANY, settle, settlement, subscribe } from './sending.ts';
import { allSteps, caseWith, makeJob, makeMany, makeWorkflow, type Open } from './setup.ts';

export function testReplaySteps(open: Open): void {
  const it = caseWith(open);

  it('skips failed events that were delivered since or are waiting, but not requested delivered ones', async ({
    store,
    advance,
  }) => {
    const at = await manyDeliveries(store, 4);
    const { teamId, webhookId, ids } = at;
    await endAll(store, at, 'dead');
    advance(1_000);
    const again = async (n: number) => store.deliveries.replay({ teamId, ids: [ids[n] as string] });
    await again(0);
    await endAll(store, at, 'delivered');
    await again(1);
    await endAll(store, at, 'dead');
    await again(2);
    const made = async (states: DeliveryState[]) => {
      const started = await store.deliveries.startReplay({ teamId, webhookId, states });
      await allSteps(store.deliveries.stepReplays, { limit: 3, waiting: 100 });
      return (await store.deliveries.getReplay({ teamId, id: started?.id ?? '' }))?.made;
    };
    assert.equal(await made(['dead']), 2, 'the second and the last one');
    assert.equal(await made(['dead']), 0, 'these are waiting now');
    assert.equal(await made(['dead', 'delivered']), 1, 'the first one, as delivered');
  });

  it('replays a selection, each event once, and survives a crash between any two steps', async ({
    store,
    reopen,
    advance,
  }) => {
    const at = await manyDeliveries(store, 10);
    const { teamId, webhookId, ids } = at;
    // Two deliveries of one event are selected, and one of another event is not.
    await endAll(store, at, 'dead');
    await store.deliveries.replay({ teamId, ids: [ids[0] as string] });
    await endAll(store, at, 'dead');
    const [spared] = await load(store, teamId, await subscribe(store, at, ['x']));
    assert.equal(spared, undefined);
    const started = (await store.deliveries.startReplay({ teamId, webhookId, states: ['dead'] })) as Replay;
    assert.deepEqual(started, {
      teamId,
      id: started.id,
      webhookId,
      states: ['dead'],
      since: 0,
      until: store.now(),
      made: 0,
      state: 'running',
      createdAt: store.now(),
    });
    let current = store;
    for (let steps = 0; ; steps++) {
      assert.ok(steps < 20);
      const { done } = await current.deliveries.stepReplays({ limit: 3, waiting: 100 });
      current = await reopen();
      if (done) break;
    }
    const replay = await current.deliveries.getReplay({ teamId, id: started.id });
    assert.deepEqual(replay, { ...started, made: 10, state: 'done' });
    advance(1_000);
    const due = await load(current, teamId, webhookId);
    assert.equal(new Set(due.map((delivery) => delivery.eventId)).size, 10);
    assert.equal(due.length, 10);
    assert.ok(due.every((delivery) => delivery.class === 'replay'));
    assert.deepEqual(await current.deliveries.stepReplays({ limit: 3, waiting: 100 }), { done: true });
    assert.equal(await current.deliveries.getReplay({ teamId: 'team_x', id: started.id }), undefined);
  });

  it('sends no more than may wait, and continues when some have been sent', async ({ store, advance }) => {
    const at = await manyDeliveries(store, 5);
    const { teamId, webhookId } = at;
    await endAll(store, at, 'delivered');
    const one = await store.deliveries.startReplay({ teamId, webhookId, states: ['delivered'] });
    const two = await store.deliveries.startReplay({ teamId, webhookId, states: ['delivered'] });
    const states = async () =>
      Promise.all(
        [one, two].map(async (replay) => {
          const { state, made } = (await store.deliveries.getReplay({
            teamId,
            id: replay?.id ?? '',
          })) as Replay;
          return `${state} ${made}`;
        }),
      );
    const stepAll = async () => {
      advance(1_000);
      await allSteps(store.deliveries.stepReplays, { limit: 2, waiting: 3 });
    };
    await stepAll();
    assert.deepEqual(await states(), ['running 3', 'running 0']);
    assert.equal((await load(store, teamId, webhookId)).length, 3);
    await endAll(store, at, 'delivered');
    await stepAll();
    // The first replay does not replay its own deliveries, and the second replay gets the remaining room.
    assert.deepEqual(await states(), ['done 5', 'running 1']);
    for (let n = 0; n < 2; n++) {
      await endAll(store, at, 'delivered');
      await stepAll();
    }
    assert.deepEqual(await states(), ['done 5', 'done 5']);
  });

  it('selects by the time and state of deliveries', async ({ store, advance }) => {
    const at = await manyDeliveries(store, 6, advance);
    const { teamId, webhookId, ids, times } = at;
    const all = await load(store, teamId, webhookId);
    await settle(store, all[1], 1, { state: 'dead' }, FAILED);
    await settle(store, all[2], 1, { state: 'dead' }, FAILED);
    await settle(store, all[3], 1, { state: 'delivered' });
    const since = times[2] as number;
    const until = times[4] as number;
    const states = ['dead', 'delivered', 'canceled'] as const;
    const replay = await store.deliveries.startReplay({ teamId, webhookId, states, since, until });
    assert.deepEqual([replay?.since, replay?.until, replay?.states.length], [since, until, 3]);
    await allSteps(store.deliveries.stepReplays, { limit: 9, waiting: 9 });
    const made = (await load(store, teamId, webhookId)).filter(({ origin }) => origin === 'replay');
    const selected = all.filter(({ id }) => [ids[2], ids[3]].includes(id));
    assert.deepEqual(
      made.map(({ eventId }) => eventId),
      selected.map(({ eventId }) => eventId),
    );
  });

  it('reaches webhooks behind many whose replays wait for room', async ({ store }) => {
    const at = await makeWorkflow(store);
    const { teamId } = at;
    // More webhooks than one step visits, each with two deliveries.
    const ids = await makeMany(110, (n) => subscribe(store, at, ['job.queued', 'job.canceled', String(n)]));
    const job = await makeJob(store, at);
    await store.jobs.cancel({ teamId, id: job.id, by: 'somebody' });
    const due = (await makeMany(ids.length, (n) => load(store, teamId, ids[n] ?? ''))).flat();
    assert.equal(due.length, 220);
    const settlements = due.map((delivery) => settlement(delivery, 1, { state: 'dead' }));
    await store.deliveries.settle({ settlements });
    const replays = await makeMany(ids.length, async (n) => {
      const target = { teamId, webhookId: ids[n] ?? '', states: ['dead'] } as const;
      return (await store.deliveries.startReplay(target))?.id ?? '';
    });
    await allSteps(store.deliveries.stepReplays, { limit: 50, waiting: 1 });
    for (const id of replays) {
      const replay = await store.deliveries.getReplay({ teamId, id });
      assert.deepEqual([replay?.state, replay?.made], ['running', 1]);
    }
  });

  it('replays waiting and dead events in order: waiting deliveries become due, dead ones are copied', async ({
    store,
    advance,
  }) => {
    const at = await manyDeliveries(store, 6, advance);
    const { teamId, webhookId, ids } = at;
    const all = await load(store, teamId, webhookId);
    const later = { state: 'waiting', nextAt: store.now() + 3_600_000 } as const;
    for (const n of [0, 3]) await settle(store, all[n], 1, { state: 'dead' }, FAILED);
    for (const n of [1, 4]) await settle(store, all[n], 1, later, FAILED);
    await settle(store, all[5], 1, { state: 'delivered' });
    advance(1_000);
    // A later delivery of the first event is waiting.
    const [copy] = (await store.deliveries.replay({ teamId, ids: [ids[0] as string] })) ?? [];
    await settle(
      store,
      (await load(store, teamId, webhookId)).find(({ id }) => id === copy?.id),
      1,
      later,
      FAILED,
    );
    advance(1_000);
    const states = ['waiting', 'dead'] as const;
    const { found, next } = await store.deliveries.replayable({ teamId, webhookId, states, limit: 99 });
    // The first event is found twice: dead, and as its waiting copy.
    const counted = new Map(found.toReversed().map(({ sequence, state }) => [sequence, state]));
    assert.deepEqual([...counted.values()].sort(), ['dead', 'dead', 'waiting', 'waiting', 'waiting']);
    assert.equal(next, null);
    const started = await store.deliveries.startReplay({ teamId, webhookId, states });
    await allSteps(store.deliveries.stepReplays, { limit: 2, waiting: 100 });
    advance(1_000);
    const due = await load(store, teamId, webhookId);
    assert.deepEqual(
      due.map(({ eventId }) => eventId),
      all.slice(0, 5).map(({ eventId }) => eventId),
    );
    assert.deepEqual(
      due.map(({ id }) => id === copy?.id || ids.includes(id)),
      [true, true, true, false, true],
    );
    assert.ok(due.every((one) => one.class === 'replay'));
    assert.equal((await store.deliveries.list({ teamId, webhookId, limit: 99 })).length, 6 + 1 + 1);
    const replay = await store.deliveries.getReplay({ teamId, id: started?.id ?? '' });
    assert.deepEqual([replay?.state, replay?.made], ['done', 5]);
  });

  it('continues while failed deliveries wait for their next attempt, but not while replays are due', async ({
    store,
    advance,
  }) => {
    const at = await manyDeliveries(store, 5);
    const { teamId, webhookId } = at;
    await endAll(store, at, 'dead');
    const started = await store.deliveries.startReplay({ teamId, webhookId, states: ['dead'] });
    const made = async () => {
      advance(1_000);
      await allSteps(store.deliveries.stepReplays, { limit: 9, waiting: 2 });
      return (await store.deliveries.getReplay({ teamId, id: started?.id ?? '' }))?.made;
    };
    assert.equal(await made(), 2);
    assert.equal(await made(), 2, 'two are due');
    const later = { state: 'waiting', nextAt: store.now() + 3_600_000 } as const;
    for (const due of await load(store, teamId, webhookId)) await settle(store, due, 1, later, FAILED);
    assert.equal(await made(), 4);
  });

  it('sends an ordered webhook nothing while a replay places deliveries', async ({ store }) => {
    const at = await makeWorkflow(store);
    const { teamId } = at;
    const webhookId = await subscribe(store, at, ['x'], ORDERED);
    const lane = { teamId, webhookId };
    await testEvents(store, lane, 4);
    const ordered = () => store.deliveries.load({ ...lane, limits: MANY, ordered: true });
    const all = await ordered();
    for (const n of [0, 1, 2]) await settle(store, all[n], 1, { state: 'dead' }, FAILED);
    assert.equal((await store.deliveries.lanes(HOLDER)).length, 1);
    const started = await store.deliveries.startReplay({ ...lane, states: ['dead'] });
    const isHeld = async () => {
      assert.deepEqual(await store.deliveries.lanes(HOLDER), []);
      assert.equal(await store.deliveries.lane({ ...lane, ...HOLDER }), undefined);
      assert.deepEqual(await ordered(), []);
    };
    await isHeld();
    await store.deliveries.stepReplays({ limit: 2, waiting: 1 });
    await isHeld();
    await allSteps(store.deliveries.stepReplays, { limit: 2, waiting: 1 });
    assert.equal((await store.deliveries.getReplay({ teamId, id: started?.id ?? '' }))?.made, 3);
    assert.equal((await store.deliveries.lanes(HOLDER)).length, 1);
    assert.deepEqual(
      (await ordered()).map(({ eventId }) => eventId),
      all.map(({ eventId }) => eventId),
    );
  });

  it('ends the replay of a removed webhook, and starts none', async ({ store }) => {
    const at = await manyDeliveries(store, 2);
    const { teamId, webhookId } = at;
    const input = { teamId, webhookId, states: ['canceled', 'waiting'] } as const;
    const replay = await store.deliveries.startReplay(input);
    await store.webhooks.unsubscribe({ teamId, ids: [webhookId] });
    assert.equal(await store.deliveries.startReplay(input), undefined);
    await allSteps(store.deliveries.stepReplays, { limit: 9, waiting: 9 });
    const ended = await store.deliveries.getReplay({ teamId, id: replay?.id ?? '' });
    assert.deepEqual([ended?.state, ended?.made], ['done', 0]);
  });
}
