/** Deliveries: fan-out, loading, settling and listing. */
import assert from 'node:assert/strict';
import type { Attempt } from '../../model/delivery.ts';
import { DEFAULT_WEBHOOK_SETTINGS } from '../../model/webhook.ts';
import type { DeliveryFilter } from '../operations/deliveries/deliveries.ts';
import { FAILED, HOLDER, load, OK, oneDelivery, settle, settlement, subscribe } from './sending.ts';
import {
  allEvents,
  allSteps,
  caseWith,
  claimOne,
  makeJob,
  makeMany,
  makeWorkflow,
  type Open,
} from './setup.ts';

export function testDeliveries(open: Open): void {
  const it = caseWith(open);

  it('delivers an event to the webhooks that are subscribed at that moment', async ({ store }) => {
    const at = await makeWorkflow(store);
    const other = await makeWorkflow(store, { id: 'other' });
    const foreign = await makeWorkflow(store, { team: 'foreign' });
    const all = await subscribe(store, at, ['*']);
    const aliased = await subscribe(store, at, ['never', 'Job.Queued']);
    const paused = await subscribe(store, at, ['all']);
    const deaf = await subscribe(store, at, ['workflow_failed', 'workflow_queue', '|*|']);
    await subscribe(store, other, ['*']);
    await subscribe(store, foreign, ['*']);
    const wide = await subscribe(store, { ...at, workflowId: null }, ['workflow_started', 'workflow_queued']);
    const gone = await subscribe(store, at, ['workflow_queued']);
    await store.webhooks.unsubscribe({ teamId: at.teamId, ids: [gone] });
    await store.webhooks.pause({ teamId: at.teamId, id: paused, reason: 'For a test' });

    const job = await makeJob(store, at);
    await subscribe(store, at, ['queued', '*']);
    const lanes = await store.deliveries.lanes(HOLDER);
    assert.deepEqual(new Set(lanes.map((lane) => lane.webhookId)), new Set([all, aliased, wide]));
    const found = lanes.find((lane) => lane.webhookId === all);
    assert.deepEqual(found, {
      teamId: at.teamId,
      webhookId: all,
      epoch: found?.epoch,
      url: 'https://a.test/*',
      secrets: ['sealed'],
      headers: null,
      signingKey: null,
      settings: DEFAULT_WEBHOOK_SETTINGS,
      failingSince: null,
      breaker: null,
      rewrites: 0,
      asked: null,
    });
    assert.deepEqual(await load(store, at.teamId, deaf), []);
    const [, event] = await allEvents(store, at.teamId);
    const [, due] = await load(store, at.teamId, all);
    assert.deepEqual(due, {
      teamId: at.teamId,
      id: due?.id,
      webhookId: all,
      origin: 'event',
      class: 'live',
      attempt: 0,
      dueAt: store.now(),
      createdAt: store.now(),
      eventId: event?.id,
      messageId: event?.id,
      eventType: 'workflow_queued',
      sequence: 2,
      body: event?.body,
      rewrites: 0,
      trace: null,
    });
    assert.match(due?.body ?? '', new RegExp(job.id));

    // Events that occur during a pause are sent after it.
    await subscribe(store, at, ['all']);
    assert.equal((await load(store, at.teamId, paused)).length, 1);
    assert.equal((await store.deliveries.lanes(HOLDER)).length, 4);
  });

  it('loads due deliveries up to a limit, longest due first', async ({ store, advance }) => {
    const { teamId, webhookId } = await oneDelivery(store);
    advance(10);
    await claimOne(store);
    const [first, second] = await load(store, teamId, webhookId);
    assert.deepEqual([first?.eventType, second?.eventType], ['workflow_queued', 'workflow_started']);
    const one = await store.deliveries.load({
      teamId,
      webhookId,
      limits: { live: 1, retry: 1, replay: 1 },
      ordered: false,
    });
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

  it('stores every attempt and its outcome', async ({ store }) => {
    const { teamId, webhookId, due } = await oneDelivery(store);
    const nextAt = store.now() + 5_000;
    await settle(store, due, 1, { state: 'waiting', nextAt }, FAILED);
    const target = { teamId, id: due.id };
    const summary = {
      id: due.id,
      webhookId,
      webhookName: null,
      webhookUrl: 'https://a.test/*',
      workflowId: 'people',
      eventId: due.eventId,
      messageId: null,
      eventType: 'workflow_queued',
      origin: 'event',
      state: 'waiting',
      attempt: 1,
      nextAt,
      createdAt: store.now(),
      last: { outcome: 'timeout', status: null, error: FAILED.error, at: FAILED.startedAt },
    };
    const bodies = { body: due.body, eventBody: due.body };
    assert.deepEqual(await store.deliveries.get(target), { ...summary, ...bodies, attempts: [FAILED] });
    assert.deepEqual(await store.deliveries.list({ teamId, webhookId, limit: 5 }), [summary]);
    await settle(store, due, 2, { state: 'delivered' });
    const delivered = await store.deliveries.get(target);
    assert.equal(delivered?.state, 'delivered');
    assert.deepEqual(delivered?.attempts, [FAILED, OK]);
    assert.equal(await store.deliveries.get({ teamId: 'team_x', id: due.id }), undefined);
  });

  it('accepts every success, even twice, and a failure only from the next attempt', async ({ store }) => {
    const { teamId, due } = await oneDelivery(store);
    const get = () => store.deliveries.get({ teamId, id: due.id });
    await settle(store, due, 2, { state: 'dead' }, FAILED);
    assert.deepEqual([(await get())?.state, (await get())?.attempts], ['waiting', []]);
    await settle(store, due, 1, { state: 'waiting', nextAt: store.now() }, FAILED);
    await settle(store, due, 1, { state: 'dead' }, FAILED);
    assert.equal((await get())?.state, 'waiting');
    // The first request succeeded after all, which replaces the stored failure.
    await settle(store, due, 1, { state: 'delivered' });
    await settle(store, due, 1, { state: 'delivered' });
    await settle(store, due, 2, { state: 'dead' }, FAILED);
    assert.deepEqual([(await get())?.state, (await get())?.attempts], ['delivered', [OK]]);
  });

  it('accepts the success of a delivery that was canceled meanwhile', async ({ store }) => {
    const { teamId, webhookId, due } = await oneDelivery(store);
    await store.webhooks.unsubscribe({ teamId, ids: [webhookId] });
    await settle(store, due, 1, { state: 'waiting', nextAt: store.now() }, FAILED);
    assert.equal((await store.deliveries.get({ teamId, id: due.id }))?.state, 'canceled');
    await settle(store, due, 1, { state: 'delivered' });
    assert.equal((await store.deliveries.get({ teamId, id: due.id }))?.state, 'delivered');
  });

  it('never sends a dead delivery again', async ({ store }) => {
    const { teamId, webhookId, due } = await oneDelivery(store);
    await settle(store, due, 1, { state: 'dead' }, FAILED);
    assert.equal((await store.deliveries.get({ teamId, id: due.id }))?.state, 'dead');
    assert.deepEqual(await load(store, teamId, webhookId), []);
    assert.deepEqual(await store.deliveries.lanes(HOLDER), []);
  });

  it('unsubscribes a webhook that returns 410, and cancels its waiting deliveries', async ({ store }) => {
    const { teamId, webhookId, due } = await oneDelivery(store);
    await claimOne(store);
    assert.equal((await load(store, teamId, webhookId)).length, 2);
    const gone: Attempt = { ...FAILED, outcome: 'http', status: 410, error: null };
    await settle(store, due, 1, { state: 'canceled' }, gone);
    assert.deepEqual(await store.webhooks.list({ teamId, limit: 100 }), []);
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

  it('unsubscribes a webhook that returns 410 even if the delivery has expired meanwhile', async ({
    store,
    advance,
  }) => {
    const { teamId, due } = await oneDelivery(store);
    await settle(store, due, 1, { state: 'waiting', nextAt: store.now() }, FAILED);
    advance(1_000);
    await allSteps(store.deliveries.expire, { teamId, olderMs: 1, limit: 9 });
    const gone: Attempt = { ...FAILED, outcome: 'http', status: 410, error: null };
    await settle(store, due, 2, { state: 'canceled' }, gone);
    assert.equal((await store.deliveries.get({ teamId, id: due.id }))?.state, 'dead');
    assert.deepEqual(await store.webhooks.list({ teamId, limit: 100 }), []);
  });

  it('never loads deliveries of a removed webhook, and cancels all of a large backlog', async ({ store }) => {
    // More than twice as many deliveries as one step cancels.
    const backlog = 1_024;
    const { teamId, webhookId } = await oneDelivery(store);
    await makeMany(backlog - 1, () => store.webhooks.test({ teamId, id: webhookId }));
    const waiting = async () =>
      (await store.deliveries.list({ teamId, webhookId, states: ['waiting'], limit: backlog })).length;
    assert.equal(await waiting(), backlog);
    assert.equal(await store.webhooks.unsubscribe({ teamId, ids: [webhookId] }), 1);
    assert.deepEqual(await store.deliveries.lanes(HOLDER), []);
    assert.deepEqual(await load(store, teamId, webhookId), []);
    const deadline = performance.now() + 60_000;
    while ((await waiting()) > 0) {
      assert.ok(performance.now() < deadline, 'the rest is canceled');
      await new Promise(setImmediate);
    }
  });

  it('cancels deliveries of removed webhooks that an ended process left', async ({ store, another }) => {
    // More deliveries than are canceled while the other store closes.
    const backlog = 2_048;
    const { teamId, webhookId } = await oneDelivery(store);
    await makeMany(backlog - 1, () => store.webhooks.test({ teamId, id: webhookId }));
    const other = await another();
    await other.webhooks.unsubscribe({ teamId, ids: [webhookId] });
    await other.close();
    const waiting = async () =>
      (await store.deliveries.list({ teamId, webhookId, states: ['waiting'], limit: backlog })).length;
    for (let round = 0; (await waiting()) > 0; round += 1) {
      assert.ok(round < backlog, 'the rest is canceled');
      await store.deliveries.cancelRemoved({ teamId });
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
    assert.deepEqual(await store.deliveries.lanes(HOLDER), []);
  });

  it('lists by state and time in pages, newest first', async ({ store, advance }) => {
    const at = await makeWorkflow(store);
    const { teamId } = at;
    const webhookId = await subscribe(store, at, ['workflow_failed']);
    const ids: string[] = [];
    const times: number[] = [];
    // Two deliveries have the same time, so that the time alone does not determine where a page ends.
    for (let n = 0; n < 12; n++) {
      if (n % 2 === 0) advance(10);
      times.push(store.now());
      ids.unshift((await store.webhooks.test({ teamId, id: webhookId }))?.deliveryId ?? '');
    }
    const due = await load(store, teamId, webhookId);
    for (const [n, state] of (['delivered', 'dead', 'delivered', 'dead'] as const).entries()) {
      await settle(store, due[n * 3], 1, { state });
    }
    const pages = async (filter: Partial<DeliveryFilter>, limit = 100) => {
      const found: string[] = [];
      for (;;) {
        const before = found.at(-1);
        const target = { teamId, webhookId, ...filter, limit };
        const page = await store.deliveries.list(before === undefined ? target : { ...target, before });
        assert.ok(page.length <= limit);
        found.push(...page.map(({ id }) => id));
        if (page.length < limit) return found;
      }
    };
    const of = (...places: number[]) => places.map((place) => ids[11 - place]);
    assert.deepEqual(await pages({}), ids);
    for (const limit of [1, 5, 12]) assert.deepEqual(await pages({}, limit), ids);
    assert.deepEqual(await pages({ states: ['dead'] }), of(9, 3));
    assert.deepEqual(await pages({ states: ['dead', 'delivered'] }, 1), of(9, 6, 3, 0));
    assert.deepEqual(await pages({ states: ['canceled'] }), []);
    const [since, until] = [times[2] as number, times[6] as number];
    assert.deepEqual(await pages({ since, until }, 2), of(7, 6, 5, 4, 3, 2));
    assert.deepEqual(await pages({ since, until, states: ['waiting'] }, 2), of(7, 5, 4, 2));
    assert.deepEqual(await pages({ webhookId: 'wh_x' }), []);
    assert.deepEqual(await pages({ teamId: 'team_x' }), []);
    const foreign = { teamId, webhookId, before: 'dlv_x', limit: 9 };
    assert.deepEqual(await store.deliveries.list(foreign), [], 'a page after an unknown delivery is empty');
  });
}
