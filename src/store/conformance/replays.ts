/** Replays: sending events once more, by name or by selection. */
import assert from 'node:assert/strict';
import type { DeliveryState } from '../../model/delivery.ts';
import type { Store } from '../store.ts';
import type { Replay } from '../webhook-operations.ts';
import { FAILED, load, oneDelivery, settle, settlement, subscribe } from './sending.ts';
import { caseWith, makeJob, makeMany, makeWorkflow, type Open } from './setup.ts';

export function testReplays(open: Open): void {
  const it = caseWith(open);

  it('sends one event once more: the same bytes in a delivery of its own', async ({ store, advance }) => {
    const { teamId, webhookId, due } = await oneDelivery(store);
    await settle(store, due, 1, { state: 'delivered' });
    advance(50);
    const again = (id: string, team = teamId) => store.deliveries.replay({ teamId: team, ids: [id] });
    const [id] = (await again(due.id)) ?? [];
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
    assert.notDeepEqual(await again(due.id), [id]);
    assert.equal(await again(due.id, 'team_x'), undefined);
    assert.equal(await again('dlv_x'), undefined);
    await store.webhooks.unsubscribe({ teamId, ids: [webhookId] });
    assert.equal(await again(due.id), undefined);
  });

  it('sends all of those that are named once more, or none', async ({ store }) => {
    const { teamId, webhookId, ids } = await manyDeliveries(store, 3);
    const count = async () => (await store.deliveries.list({ teamId, webhookId, limit: 99 })).length;
    const made = await store.deliveries.replay({ teamId, webhookId, ids: [...ids].reverse() });
    const events = async (of: readonly string[]) =>
      Promise.all(of.map(async (id) => (await store.deliveries.get({ teamId, id }))?.eventId));
    assert.deepEqual(await events(made ?? []), (await events(ids)).reverse());
    assert.equal(await count(), 6);
    assert.equal(await store.deliveries.replay({ teamId, webhookId, ids: [...ids, 'dlv_x'] }), undefined);
    const foreign = { teamId, webhookId: 'wh_x', ids };
    assert.equal(await store.deliveries.replay(foreign), undefined);
    assert.equal(await count(), 6);
  });

  it('answers a repeated key what the first call made, for its target alone and for a day', async ({
    store,
    advance,
  }) => {
    const { teamId, webhookId, ids } = await manyDeliveries(store, 2);
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
    }
    assert.equal(await count(), 2 + 2 + 1 + 1);
    // A call that failed is not remembered by its key.
    const foreign = { teamId, webhookId: 'wh_x', states: ['dead'] as DeliveryState[], idempotencyKey };
    assert.equal(await store.deliveries.startReplay(foreign), undefined);
    assert.equal(await store.deliveries.startReplay(foreign), undefined);
    assert.notDeepEqual(await store.deliveries.replay({ ...named, idempotencyKey: 'other' }), made[0]);
    assert.notDeepEqual(await store.deliveries.replay({ ...named, idempotencyKey: null }), made[0]);
    advance(24 * 3_600_000 + 1);
    for (const [n, call] of calls.entries()) assert.notDeepEqual(await call(), made[n]);
  });

  it('leaves out what failed and has arrived since, or is on its way, but not what is asked for as delivered', async ({
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
      while (!(await store.deliveries.stepReplays({ limit: 3, waiting: 100 })).done);
      return (await store.deliveries.getReplay({ teamId, id: started?.id ?? '' }))?.made;
    };
    assert.equal(await made(['dead']), 2, 'the second and the last one');
    assert.equal(await made(['dead']), 0, 'these are on their way now');
    assert.equal(await made(['dead', 'delivered']), 1, 'the first one, as delivered');
  });

  it('replays a selection, each event once, and survives a crash between any two steps', async ({
    store,
    reopen,
  }) => {
    const at = await manyDeliveries(store, 10);
    const { teamId, webhookId, ids } = at;
    // Two deliveries of one event are selected, and one of another is not.
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
    const due = await load(current, teamId, webhookId);
    assert.equal(new Set(due.map((delivery) => delivery.eventId)).size, 10);
    assert.equal(due.length, 10);
    assert.ok(due.every((delivery) => delivery.class === 'replay'));
    assert.deepEqual(await current.deliveries.stepReplays({ limit: 3, waiting: 100 }), { done: true });
    assert.equal(await current.deliveries.getReplay({ teamId: 'team_x', id: started.id }), undefined);
  });

  it('makes no more than may wait, and goes on when some have been sent', async ({ store }) => {
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
      while (!(await store.deliveries.stepReplays({ limit: 2, waiting: 3 })).done);
    };
    await stepAll();
    assert.deepEqual(await states(), ['running 3', 'running 0']);
    assert.equal((await load(store, teamId, webhookId)).length, 3);
    await endAll(store, at, 'delivered');
    await stepAll();
    // It does not replay its own replays, and the second one takes the room that is left.
    assert.deepEqual(await states(), ['done 5', 'running 1']);
    for (let n = 0; n < 2; n++) {
      await endAll(store, at, 'delivered');
      await stepAll();
    }
    assert.deepEqual(await states(), ['done 5', 'done 5']);
  });

  it('selects by the time of the deliveries and by their states', async ({ store, advance }) => {
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
    while (!(await store.deliveries.stepReplays({ limit: 9, waiting: 9 })).done);
    const made = (await load(store, teamId, webhookId)).filter(({ origin }) => origin === 'replay');
    const selected = all.filter(({ id }) => [ids[2], ids[3]].includes(id));
    assert.deepEqual(
      made.map(({ eventId }) => eventId),
      selected.map(({ eventId }) => eventId),
    );
  });

  it('reaches the webhooks behind many whose replays wait for room', async ({ store }) => {
    const at = await makeWorkflow(store);
    const { teamId } = at;
    // More than one step looks at, each with two deliveries.
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
    while (!(await store.deliveries.stepReplays({ limit: 50, waiting: 1 })).done);
    for (const id of replays) {
      const replay = await store.deliveries.getReplay({ teamId, id });
      assert.deepEqual([replay?.state, replay?.made], ['running', 1]);
    }
  });

  it('ends the replay of a webhook that is gone, and begins none', async ({ store }) => {
    const at = await manyDeliveries(store, 2);
    const { teamId, webhookId } = at;
    const input = { teamId, webhookId, states: ['canceled', 'waiting'] } as const;
    const replay = await store.deliveries.startReplay(input);
    await store.webhooks.unsubscribe({ teamId, ids: [webhookId] });
    assert.equal(await store.deliveries.startReplay(input), undefined);
    while (!(await store.deliveries.stepReplays({ limit: 9, waiting: 9 })).done);
    const ended = await store.deliveries.getReplay({ teamId, id: replay?.id ?? '' });
    assert.deepEqual([ended?.state, ended?.made], ['done', 0]);
  });
}

interface Many {
  teamId: string;
  workflowId: string;
  webhookId: string;
  ids: string[];
  times: number[];
}

/** A webhook with so many deliveries of as many events. */
async function manyDeliveries(store: Store, count: number, advance = (_: number) => {}): Promise<Many> {
  const at = await makeWorkflow(store);
  const webhookId = await subscribe(store, at, ['workflow_failed']);
  const ids: string[] = [];
  const times: number[] = [];
  for (let n = 0; n < count; n++) {
    advance(1_000);
    times.push(store.now());
    const made = await store.webhooks.test({ teamId: at.teamId, id: webhookId });
    ids.push(made?.deliveryId ?? '');
  }
  return { ...at, webhookId, ids, times };
}

async function endAll(
  store: Store,
  { teamId, webhookId }: Many,
  state: Extract<DeliveryState, 'delivered' | 'dead'>,
): Promise<void> {
  for (const due of await load(store, teamId, webhookId)) await settle(store, due, 1, { state });
}
