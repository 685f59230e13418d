/** Lanes: webhooks with due deliveries, and which deliveries are loaded first. */
import assert from 'node:assert/strict';
import { LONGEST_WAIT_MS } from '../../model/delivery.ts';
import { DEFAULT_WEBHOOK_SETTINGS, type WebhookSettings } from '../../model/webhook.ts';
import type { Store } from '../store.ts';
import {
  dueLanes,
  FAILED,
  HOLDER,
  load,
  MANY,
  oneDelivery,
  settle,
  settlement,
  subscribe,
} from './sending.ts';
import {
  caseWith,
  claimOne,
  failAttempt,
  makeJob,
  makeMany,
  makeWorkflow,
  type Open,
  publishRun,
} from './setup.ts';

const ORDERED: WebhookSettings = { ...DEFAULT_WEBHOOK_SETTINGS, ordered: true };

export function testLanes(open: Open): void {
  const it = caseWith(open);

  it('finds the lanes of many webhooks and teams, but only those with due deliveries', async ({
    store,
    advance,
  }) => {
    const expected = new Set<string>();
    for (const team of ['a', 'b', 'c']) {
      const at = await makeWorkflow(store, { team });
      for (let n = 0; n < 4; n++) expected.add(await subscribe(store, at, ['*', String(n)]));
      await publishRun(store, at, { a: 'Ada' });
    }
    assert.deepEqual(await dueLanes(store), expected);
    const [lane] = await store.deliveries.lanes(HOLDER);
    assert.ok(lane);
    const due = await load(store, lane.teamId, lane.webhookId);
    assert.equal(due.length, 4);
    const later = { state: 'waiting', nextAt: store.now() + 5_000 } as const;
    await store.deliveries.settle({ settlements: due.map((delivery) => settlement(delivery, 1, later)) });
    expected.delete(lane.webhookId);
    assert.deepEqual(await dueLanes(store), expected);
    advance(5_000);
    assert.equal((await dueLanes(store)).size, 12);
  });

  it('finds any number of lanes, and counts their waiting deliveries', async ({ store }) => {
    const expected = new Set<string>();
    const since = store.now();
    for (const team of ['a', 'b', 'c']) {
      const at = await makeWorkflow(store, { team });
      await makeMany(101, async (n) =>
        expected.add(await subscribe(store, at, ['workflow_queued', String(n)])),
      );
      await makeJob(store, at);
    }
    assert.deepEqual(await dueLanes(store), expected);
    const { deliveries } = await store.status.work({ most: 1_000 });
    assert.deepEqual(deliveries, { waiting: 303, oldestWaitingAt: since, complete: true });
    assert.deepEqual((await store.status.due()).well, { webhooks: 303, oldestDueAt: since });
  });

  it('finds a single lane like all, but not if it is paused, removed or not due', async ({ store }) => {
    const { teamId, webhookId, due } = await oneDelivery(store);
    const lane = () => store.deliveries.lane({ teamId, webhookId, ...HOLDER });
    assert.deepEqual(await lane(), (await store.deliveries.lanes(HOLDER))[0]);
    assert.equal(await store.deliveries.lane({ teamId: 'team_x', webhookId, ...HOLDER }), undefined);
    await store.webhooks.pause({ teamId, id: webhookId, reason: 'For a test' });
    assert.equal(await lane(), undefined);
    assert.deepEqual(await store.deliveries.lanes(HOLDER), []);
    assert.deepEqual(await load(store, teamId, webhookId), []);
    await store.webhooks.resume({ teamId, id: webhookId });
    assert.equal((await lane())?.webhookId, webhookId);
    await settle(store, due, 1, { state: 'waiting', nextAt: store.now() + 1 }, FAILED);
    assert.equal(await lane(), undefined);
    await store.webhooks.unsubscribe({ teamId, ids: [webhookId] });
    assert.equal(await lane(), undefined);
  });

  it('returns everything needed for sending: two secrets while the previous one is valid', async ({
    store,
    advance,
  }) => {
    const { teamId, webhookId } = await oneDelivery(store);
    const lane = async () => (await store.deliveries.lanes(HOLDER))[0];
    const settings = { ...DEFAULT_WEBHOOK_SETTINGS, ratePerSecond: 3 };
    await store.webhooks.change({ teamId, id: webhookId, settings, headers: 'sealed headers' });
    await store.webhooks.rotate({ teamId, id: webhookId, secret: 'second', overlapMs: 1_000 });
    const key = { id: 'sig_1', publicKey: 'AA', privateKey: 'sealed key', createdAt: 1 };
    await store.teams.ensureSigningKey({ teamId, ...key });
    const found = await lane();
    assert.deepEqual(found, {
      teamId,
      webhookId,
      epoch: found?.epoch,
      url: 'https://a.test/*',
      secrets: ['second', 'sealed'],
      headers: 'sealed headers',
      signingKey: 'sealed key',
      settings,
      failingSince: null,
      breaker: null,
      rewrites: 0,
      asked: null,
    });
    advance(999);
    assert.equal((await lane())?.secrets.length, 2);
    advance(1);
    assert.deepEqual((await lane())?.secrets, ['second']);
  });

  it('loads up to a limit per class: live before retry before replay', async ({ store }) => {
    const at = await makeWorkflow(store);
    const webhookId = await subscribe(store, at, ['workflow_queued']);
    const target = { teamId: at.teamId, webhookId };
    await queueAndFail(store, at, 12);
    const due = await load(store, at.teamId, webhookId);
    const now = { state: 'waiting', nextAt: store.now() } as const;
    for (const delivery of due.slice(0, 3)) await settle(store, delivery, 1, now, FAILED);
    for (const delivery of due.slice(3, 6)) {
      await settle(store, delivery, 1, { state: 'delivered' });
      await store.deliveries.replay({ teamId: at.teamId, ids: [delivery.id] });
    }
    const loaded = async (limits: { live: number; retry: number; replay: number }) =>
      (await store.deliveries.load({ ...target, limits, ordered: false })).map((one) => one.class);
    const all = [...Array(6).fill('live'), ...Array(3).fill('retry'), ...Array(3).fill('replay')];
    assert.deepEqual(await loaded(MANY), all);
    assert.deepEqual(await loaded({ live: 1, retry: 2, replay: 1 }), ['live', 'retry', 'retry', 'replay']);
    assert.deepEqual(await loaded({ live: 0, retry: 0, replay: 2 }), ['replay', 'replay']);
    // A failed replay stays in the class `replay`.
    const [replayed] = await store.deliveries.load({
      ...target,
      limits: { live: 0, retry: 0, replay: 1 },
      ordered: false,
    });
    await settle(store, replayed, 1, now, FAILED);
    assert.deepEqual(await loaded({ live: 0, retry: 0, replay: 9 }), ['replay', 'replay', 'replay']);
  });

  it('counts held deliveries among due ones, whether it returns them or not', async ({ store }) => {
    const at = await makeWorkflow(store);
    const { teamId } = at;
    const webhookId = await subscribe(store, at, ['workflow_queued']);
    await queueAndFail(store, at, 5);
    const due = (await load(store, teamId, webhookId)).map(({ id }) => id);
    for (const ordered of [false, true]) {
      const fresh = async (live: number, held: ReadonlySet<string>) => {
        const limits = { live, retry: 0, replay: 0 };
        const found = await store.deliveries.load({ teamId, webhookId, limits, ordered, held });
        return found.map(({ id }) => id).filter((id) => !held.has(id));
      };
      assert.deepEqual(await fresh(4, new Set(due.slice(0, 3))), due.slice(3, 4));
      assert.deepEqual(await fresh(9, new Set(due.slice(1, 3))), [due[0], due[3], due[4]]);
      assert.deepEqual(await fresh(9, new Set(due)), []);
    }
  });

  it('loads ordered deliveries by event, due or not, and waits for the first', async ({ store, advance }) => {
    const at = await makeWorkflow(store);
    const { teamId } = at;
    const webhookId = await subscribe(store, at, ['workflow_queued'], ORDERED);
    await queueAndFail(store, at, 4);
    const inOrder = (live = 9) =>
      store.deliveries.load({ teamId, webhookId, limits: { ...MANY, live }, ordered: true });
    const [first, second, ...rest] = await inOrder();
    assert.equal(rest.length, 2);
    const nextAt = store.now() + 1_000;
    await settle(store, first, 1, { state: 'waiting', nextAt }, FAILED);
    assert.deepEqual(
      (await inOrder(2)).map((due) => [due.id, due.dueAt, due.class]),
      [
        [first?.id, nextAt, 'retry'],
        [second?.id, store.now(), 'live'],
      ],
    );
    assert.deepEqual(
      await store.deliveries.lanes(HOLDER),
      [],
      'the others are due, but the first one is not',
    );
    assert.equal(await store.deliveries.lane({ teamId, webhookId, ...HOLDER }), undefined);
    advance(1_000);
    assert.equal((await store.deliveries.lanes(HOLDER)).length, 1);
    await settle(store, first, 2, { state: 'delivered' });
    assert.equal((await store.deliveries.lanes(HOLDER)).length, 1);
    // A replayed delivery has the position of its event.
    const replayed = await store.deliveries.replay({ teamId, ids: [first?.id ?? ''] });
    assert.equal((await inOrder())[0]?.id, replayed?.[0]?.id);
  });

  it('finds the lane of a webhook that is no longer ordered', async ({ store }) => {
    const at = await makeWorkflow(store);
    const webhookId = await subscribe(store, at, ['workflow_queued'], ORDERED);
    await queueAndFail(store, at, 2);
    const [first] = await load(store, at.teamId, webhookId);
    await settle(store, first, 1, { state: 'waiting', nextAt: store.now() + 1_000 }, FAILED);
    assert.equal((await store.deliveries.lanes(HOLDER)).length, 0);
    await store.webhooks.change({ teamId: at.teamId, id: webhookId, settings: { ordered: false } });
    const [lane] = await store.deliveries.lanes(HOLDER);
    assert.deepEqual(lane?.settings, DEFAULT_WEBHOOK_SETTINGS);
  });

  it('considers deliveries due that are dated further ahead than any can wait: the clock was set back', async ({
    store,
    advance,
  }) => {
    const at = await makeWorkflow(store);
    const { teamId } = at;
    const webhookId = await subscribe(store, at, ['workflow_queued']);
    const ordered = await subscribe(store, at, ['job.queued'], ORDERED);
    await queueAndFail(store, at, 3);
    const [first, second] = await load(store, teamId, webhookId);
    const now = { state: 'waiting', nextAt: store.now() } as const;
    await settle(store, first, 1, now, FAILED);
    await settle(store, second, 1, { state: 'delivered' });
    await store.deliveries.replay({ teamId, webhookId, ids: [second?.id ?? ''] });
    const classes = async () => (await load(store, teamId, webhookId)).map((due) => due.class);
    const all = await classes();
    assert.deepEqual(all, ['live', 'retry', 'replay']);

    advance(-LONGEST_WAIT_MS);
    assert.deepEqual(await classes(), [], 'a retry may be this far ahead');
    assert.deepEqual(await dueLanes(store), new Set());
    advance(-1);
    assert.deepEqual(await classes(), all);
    assert.deepEqual(await dueLanes(store), new Set([webhookId, ordered]));
    assert.equal((await store.deliveries.lane({ teamId, webhookId, ...HOLDER }))?.webhookId, webhookId);
    // Deliveries due by the current clock come first.
    await queueAndFail(store, at, 1);
    const due = await load(store, teamId, webhookId);
    assert.deepEqual(
      due.map(({ class: name, dueAt }) => [name, dueAt <= store.now()]),
      [
        ['live', true],
        ['retry', false],
        ['replay', false],
      ],
    );
  });

  it('finds many lanes with many waiting deliveries each', async ({ store }) => {
    const at = await makeWorkflow(store);
    // More lanes than one statement searches.
    const ids = await makeMany(220, (n) => subscribe(store, at, ['workflow_queued', String(n)]));
    await queueAndFail(store, at, 5);
    assert.deepEqual(await dueLanes(store), new Set(ids));
  });
}

/** Queues and ends a number of jobs in sequence. */
async function queueAndFail(
  store: Store,
  at: { teamId: string; workflowId: string },
  jobs: number,
): Promise<void> {
  for (let n = 0; n < jobs; n++) {
    await makeJob(store, at);
    await failAttempt(store, await claimOne(store));
  }
}
