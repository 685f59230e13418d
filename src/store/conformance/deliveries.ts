/** What every driver must do with deliveries. */
import assert from 'node:assert/strict';
import type { Attempt, NextStep } from '../../model/delivery.ts';
import type { Settlement, Store } from '../store.ts';
import {
  allEvents,
  caseWith,
  claimOne,
  failAttempt,
  makeJob,
  makeWorkflow,
  type Open,
  publishRun,
} from './setup.ts';

export function testDeliveries(open: Open): void {
  const it = caseWith(open);

  it('fans an event out to those who are subscribed at that moment', async ({ store, byHand }) => {
    const at = await makeWorkflow(store);
    const other = await makeWorkflow(store, { id: 'other' });
    const foreign = await makeWorkflow(store, { team: 'foreign' });
    const all = await subscribe(store, at, ['*']);
    const aliased = await subscribe(store, at, ['never', 'Job.Queued']);
    const paused = await subscribe(store, at, ['all']);
    const deaf = await subscribe(store, at, ['workflow_failed', 'workflow_queue', '|*|']);
    await subscribe(store, other, ['*']);
    await subscribe(store, foreign, ['*']);
    const wide = await subscribe(store, other, ['workflow_started', 'workflow_queued']);
    await byHand('webhook.widen', { teamId: at.teamId, id: wide });
    const gone = await subscribe(store, at, ['workflow_queued']);
    await store.webhooks.unsubscribe({ teamId: at.teamId, ids: [gone] });
    await byHand('webhook.pause', { teamId: at.teamId, id: paused });

    const job = await makeJob(store, at);
    await subscribe(store, at, ['queued', '*']);
    const lanes = await store.deliveries.lanes();
    assert.deepEqual(new Set(lanes.map((lane) => lane.webhookId)), new Set([all, aliased, wide]));
    assert.deepEqual(
      lanes.find((lane) => lane.webhookId === all),
      { teamId: at.teamId, webhookId: all, url: `https://a.test/${'*'}`, secret: 'sealed' },
    );
    assert.deepEqual(await load(store, at.teamId, deaf), []);
    const [event] = await allEvents(store, at.teamId);
    const [due] = await load(store, at.teamId, all);
    assert.deepEqual(due, {
      teamId: at.teamId,
      id: due?.id,
      webhookId: all,
      attempt: 0,
      eventId: event?.id,
      eventType: 'workflow_queued',
      body: event?.body,
    });
    assert.match(due?.body ?? '', new RegExp(job.id));

    // What happened while it was paused is sent when it is resumed.
    await subscribe(store, at, ['all']);
    assert.equal((await load(store, at.teamId, paused)).length, 1);
    assert.equal((await store.deliveries.lanes()).length, 4);
  });

  it('finds the lanes of many webhooks and teams, and only those with something due', async ({
    store,
    advance,
  }) => {
    const expected = new Set<string>();
    for (const team of ['a', 'b', 'c']) {
      const at = await makeWorkflow(store, { team });
      for (let n = 0; n < 4; n++) expected.add(await subscribe(store, at, ['*', String(n)]));
      await publishRun(store, at, { a: 'Ada' });
    }
    const found = async () => new Set((await store.deliveries.lanes()).map((lane) => lane.webhookId));
    assert.deepEqual(await found(), expected);
    const [lane] = await store.deliveries.lanes();
    const due = await load(store, lane?.teamId ?? '', lane?.webhookId ?? '');
    assert.equal(due.length, 4);
    const later = { state: 'waiting', nextAt: store.now() + 5_000 } as const;
    await store.deliveries.settle({ settlements: due.map((delivery) => settlement(delivery, 1, later)) });
    expected.delete(lane?.webhookId ?? '');
    assert.deepEqual(await found(), expected);
    advance(5_000);
    assert.equal((await found()).size, 12);
  });

  it('loads what is due longest first, as many as asked for', async ({ store, advance }) => {
    const { teamId, webhookId } = await oneDelivery(store);
    advance(10);
    await claimOne(store);
    const [first, second] = await load(store, teamId, webhookId);
    assert.deepEqual([first?.eventType, second?.eventType], ['workflow_queued', 'workflow_started']);
    const one = await store.deliveries.load({ teamId, webhookId, limit: 1 });
    assert.deepEqual(one, [first]);
    const later = { state: 'waiting', nextAt: store.now() + 5 } as const;
    await settle(store, first, 1, later);
    assert.deepEqual(await load(store, teamId, webhookId), [second]);
    advance(5);
    assert.deepEqual(
      (await load(store, teamId, webhookId)).map((due) => [due.id, due.attempt]),
      [
        [second?.id, 0],
        [first?.id, 1],
      ],
    );
  });

  it('writes down every attempt and its outcome', async ({ store }) => {
    const { teamId, webhookId, due } = await oneDelivery(store);
    const nextAt = store.now() + 5_000;
    await settle(store, due, 1, { state: 'waiting', nextAt }, FAILED);
    const target = { teamId, id: due.id };
    assert.deepEqual(await store.deliveries.get(target), {
      state: 'waiting',
      webhookId,
      eventId: due.eventId,
      attempts: [FAILED],
    });
    assert.deepEqual(await store.deliveries.list({ teamId, webhookId, limit: 5 }), [
      { id: due.id, eventId: due.eventId, state: 'waiting', attempt: 1, nextAt },
    ]);
    await settle(store, due, 2, { state: 'delivered' });
    const delivered = await store.deliveries.get(target);
    assert.equal(delivered?.state, 'delivered');
    assert.deepEqual(delivered?.attempts, [FAILED, OK]);
    assert.equal(await store.deliveries.get({ teamId: 'team_x', id: due.id }), undefined);
  });

  it('takes a success always and twice, and a failure only from the attempt whose turn it is', async ({
    store,
  }) => {
    const { teamId, due } = await oneDelivery(store);
    const get = () => store.deliveries.get({ teamId, id: due.id });
    await settle(store, due, 2, { state: 'dead' }, FAILED);
    assert.deepEqual([(await get())?.state, (await get())?.attempts], ['waiting', []]);
    await settle(store, due, 1, { state: 'waiting', nextAt: store.now() }, FAILED);
    await settle(store, due, 1, { state: 'dead' }, FAILED);
    assert.equal((await get())?.state, 'waiting');
    // The first request was answered after all: it takes the place of the failure that was noted.
    await settle(store, due, 1, { state: 'delivered' });
    await settle(store, due, 1, { state: 'delivered' });
    await settle(store, due, 2, { state: 'dead' }, FAILED);
    assert.deepEqual([(await get())?.state, (await get())?.attempts], ['delivered', [OK]]);
  });

  it('takes the success of a delivery that was canceled meanwhile', async ({ store }) => {
    const { teamId, webhookId, due } = await oneDelivery(store);
    await store.webhooks.unsubscribe({ teamId, ids: [webhookId] });
    await settle(store, due, 1, { state: 'waiting', nextAt: store.now() }, FAILED);
    assert.equal((await store.deliveries.get({ teamId, id: due.id }))?.state, 'canceled');
    await settle(store, due, 1, { state: 'delivered' });
    assert.equal((await store.deliveries.get({ teamId, id: due.id }))?.state, 'delivered');
  });

  it('leaves a dead delivery alone', async ({ store }) => {
    const { teamId, webhookId, due } = await oneDelivery(store);
    await settle(store, due, 1, { state: 'dead' }, FAILED);
    assert.equal((await store.deliveries.get({ teamId, id: due.id }))?.state, 'dead');
    assert.deepEqual(await load(store, teamId, webhookId), []);
    assert.deepEqual(await store.deliveries.lanes(), []);
  });

  it('unsubscribes a webhook that answers 410 and cancels what waits for it', async ({ store }) => {
    const { teamId, webhookId, due } = await oneDelivery(store);
    await claimOne(store);
    assert.equal((await load(store, teamId, webhookId)).length, 2);
    const gone: Attempt = { ...FAILED, outcome: 'http', status: 410, error: null };
    await settle(store, due, 1, { state: 'canceled' }, gone);
    assert.deepEqual(await store.webhooks.list({ teamId }), []);
    const deliveries = await store.deliveries.list({ teamId, webhookId, limit: 5 });
    assert.deepEqual(
      deliveries.map((delivery) => [delivery.state, delivery.attempt]),
      [
        ['canceled', 0],
        ['canceled', 1],
      ],
    );
    assert.deepEqual((await store.deliveries.get({ teamId, id: due.id }))?.attempts, [gone]);
  });

  it('loads nothing for a webhook that is paused', async ({ store, byHand }) => {
    const { teamId, webhookId } = await oneDelivery(store);
    await byHand('webhook.pause', { teamId, id: webhookId });
    assert.deepEqual(await load(store, teamId, webhookId), []);
  });

  it('never loads what waits for a removed webhook, and cancels all of a large backlog', async ({
    store,
  }) => {
    const backlog = 1_200;
    const at = await makeWorkflow(store);
    const webhookId = await subscribe(store, at, ['workflow_queued']);
    for (let n = 0; n < backlog; n++) {
      await makeJob(store, at);
      await failAttempt(store, await claimOne(store));
    }
    const waiting = async () =>
      (await store.deliveries.list({ teamId: at.teamId, webhookId, limit: backlog })).filter(
        (delivery) => delivery.state === 'waiting',
      ).length;
    assert.equal(await waiting(), backlog);
    assert.equal(await store.webhooks.unsubscribe({ teamId: at.teamId, ids: [webhookId] }), 1);
    assert.deepEqual(await store.deliveries.lanes(), []);
    assert.deepEqual(await load(store, at.teamId, webhookId), []);
    const deadline = performance.now() + 10_000;
    while ((await waiting()) > 0) {
      assert.ok(performance.now() < deadline, 'the rest was never canceled');
      await new Promise(setImmediate);
    }
  });

  it('settles many deliveries of many webhooks in one call', async ({ store }) => {
    const at = await makeWorkflow(store);
    const ids = await Promise.all(
      Array.from({ length: 30 }, (_, n) => subscribe(store, at, ['*', String(n)])),
    );
    await makeJob(store, at);
    const due = (await Promise.all(ids.map((id) => load(store, at.teamId, id)))).flat();
    assert.equal(due.length, 30);
    await store.deliveries.settle({
      settlements: due.map((delivery) => settlement(delivery, 1, { state: 'delivered' })),
    });
    assert.deepEqual(await store.deliveries.lanes(), []);
  });
}

const OK: Attempt = {
  startedAt: 1,
  durationMs: 2,
  outcome: 'ok',
  status: 204,
  error: null,
  response: 'thanks',
};
const FAILED: Attempt = {
  startedAt: 3,
  durationMs: 4,
  outcome: 'timeout',
  status: null,
  error: 'No answer within 15 s',
  response: null,
};

interface Due {
  teamId: string;
  id: string;
  webhookId: string;
}

function settlement({ teamId, id, webhookId }: Due, attempt: number, next: NextStep, log = OK): Settlement {
  return { teamId, deliveryId: id, webhookId, attempt, next, log };
}

async function settle(
  store: Store,
  due: Due | undefined,
  attempt: number,
  next: NextStep,
  log = OK,
): Promise<void> {
  await store.deliveries.settle({ settlements: [settlement(due as Due, attempt, next, log)] });
}

async function subscribe(
  store: Store,
  at: { teamId: string; workflowId: string },
  events: string[],
): Promise<string> {
  const url = `https://a.test/${events.join()}`;
  const result = await store.webhooks.subscribe({ ...at, url, events, secret: 'sealed', limit: 100 });
  return (result as { webhook: { id: string } }).webhook.id;
}

function load(store: Store, teamId: string, webhookId: string) {
  return store.deliveries.load({ teamId, webhookId, limit: 100 });
}

/** One webhook and one delivery that is due for it, of a job that is queued. */
async function oneDelivery(store: Store) {
  const at = await makeWorkflow(store);
  const webhookId = await subscribe(store, at, ['*']);
  await makeJob(store, at);
  const [due] = await load(store, at.teamId, webhookId);
  assert.ok(due !== undefined);
  return { teamId: at.teamId, webhookId, due };
}
