/** Changing a webhook: rotation, settings, pauses, tests and health. */
import assert from 'node:assert/strict';
import type { Breaker } from '../../model/lane.ts';
import { DEFAULT_RULE } from '../../model/rule.ts';
import { DEFAULT_WEBHOOK_SETTINGS } from '../../model/webhook.ts';
import type { Store } from '../store.ts';
import { FAILED, HOLDER, load, OK, oneDelivery, settle, settlement, subscribe } from './sending.ts';
import { allEvents, caseWith, makeJob, makeWorkflow, type Open } from './setup.ts';

export function testWebhookChanges(open: Open): void {
  const it = caseWith(open);

  it('applies settings only to a new webhook', async ({ store }) => {
    const at = await makeWorkflow(store);
    const settings = { ordered: true, ratePerSecond: 2.5, timeoutMs: 20_000 };
    const id = await subscribe(store, at, ['*'], settings);
    assert.equal(await subscribe(store, at, ['*'], DEFAULT_WEBHOOK_SETTINGS), id);
    assert.deepEqual((await store.webhooks.get({ teamId: at.teamId, id }))?.settings, settings);
  });

  it('changes the given settings and leaves the rest', async ({ store }) => {
    const at = await makeWorkflow(store);
    const target = { teamId: at.teamId, id: await subscribe(store, at) };
    const changed = await store.webhooks.change({ ...target, settings: { timeoutMs: 1 }, headers: 'sealed' });
    assert.deepEqual(changed?.settings, { ...DEFAULT_WEBHOOK_SETTINGS, timeoutMs: 1 });
    await store.webhooks.change({ ...target, settings: { ratePerSecond: 7 } });
    assert.deepEqual(await store.webhooks.sealed(target), { secret: 'sealed', headers: 'sealed' });
    const webhook = await store.webhooks.change({ ...target, headers: null });
    assert.deepEqual(await store.webhooks.sealed(target), { secret: 'sealed', headers: null });
    assert.deepEqual(webhook?.settings, { ordered: false, ratePerSecond: 7, timeoutMs: 1 });
    assert.deepEqual(await store.webhooks.get(target), webhook);
    assert.equal(await store.webhooks.sealed({ ...target, teamId: 'team_x' }), undefined);
  });

  it('changes nothing if the webhook differs from what is expected', async ({ store }) => {
    const at = await makeWorkflow(store);
    const target = { teamId: at.teamId, id: await subscribe(store, at) };
    const expected = { settings: DEFAULT_WEBHOOK_SETTINGS, headers: null };
    const change = (timeoutMs: number) =>
      store.webhooks.change({ ...target, settings: { timeoutMs }, expected });
    const changed = await Promise.all([change(1_001), change(1_002), change(1_003)]);
    assert.equal(changed.filter((webhook) => webhook !== undefined).length, 1);
    const settings = (await store.webhooks.get(target))?.settings;
    assert.ok(settings);
    await store.webhooks.change({ ...target, headers: 'sealed' });
    const stale = { settings, headers: null };
    assert.equal(await store.webhooks.change({ ...target, headers: 'other', expected: stale }), undefined);
    assert.deepEqual(await store.webhooks.sealed(target), { secret: 'sealed', headers: 'sealed' });
  });

  it('rotates a secret; the one that receivers know also signs, unless there is no overlap', async ({
    store,
  }) => {
    const { teamId, webhookId: id } = await oneDelivery(store);
    const secrets = async () => (await store.deliveries.lanes(HOLDER))[0]?.secrets;
    await store.webhooks.rotate({ teamId, id, secret: 'second', overlapMs: 1_000 });
    await store.webhooks.rotate({ teamId, id, secret: 'third', overlapMs: 1_000 });
    // Receivers may not know the second secret, because the response that contained it may have been lost.
    assert.deepEqual(await secrets(), ['third', 'sealed']);
    await store.webhooks.rotate({ teamId, id, secret: 'fourth', overlapMs: 0 });
    assert.deepEqual(await secrets(), ['fourth']);
    assert.equal((await store.webhooks.sealed({ teamId, id }))?.secret, 'fourth');
  });

  it('reports the pause of a webhook once to the other webhooks of its workflow and of the team', async ({
    store,
    advance,
  }) => {
    const at = await makeWorkflow(store);
    const other = await makeWorkflow(store, { id: 'other' });
    const { teamId } = at;
    const url = 'https://ada:secret@a.test/?x=1';
    const created = await store.webhooks.subscribe({ ...at, url, events: ['*'], secret: 's', limit: 9 });
    const { webhook } = created as { webhook: { id: string } };
    const sibling = await subscribe(store, at, ['webhook_paused']);
    const wide = await subscribe(store, { teamId, workflowId: null });
    const elsewhere = await subscribe(store, other);
    const deaf = await subscribe(store, at, ['workflow_finished']);
    const target = { teamId, id: webhook.id };

    const paused = await store.webhooks.pause({ ...target, reason: 'It failed for 5 days' });
    const pausedAt = store.now();
    assert.deepEqual(
      [paused?.state, paused?.pausedAt, paused?.pausedReason],
      ['paused', pausedAt, 'It failed for 5 days'],
    );
    advance(5);
    assert.deepEqual(await store.webhooks.pause({ ...target, reason: 'Once more' }), paused);
    const [event, ...more] = await allEvents(store, teamId);
    assert.deepEqual([event?.type, event?.workflowId, more.length], ['webhook_paused', 'people', 0]);
    assert.deepEqual(event?.parsed.data, {
      webhookId: webhook.id,
      url: 'https://a.test/?x=1',
      pausedAt: new Date(pausedAt).toISOString(),
      reason: 'It failed for 5 days',
    });
    for (const [id, deliveries] of [
      [sibling, 1],
      [wide, 1],
      [elsewhere, 0],
      [deaf, 0],
    ] as const) {
      assert.equal((await load(store, teamId, id)).length, deliveries);
    }
    assert.deepEqual(await store.deliveries.list({ teamId, webhookId: webhook.id, limit: 9 }), []);

    // The pause of a team-wide webhook is reported to other team-wide webhooks.
    await store.webhooks.pause({ teamId, id: wide, reason: 'By hand' });
    assert.equal((await allEvents(store, teamId)).at(-1)?.workflowId, null);
    assert.equal((await load(store, teamId, sibling)).length, 1);
  });

  it('clears `failingSince` when a webhook is resumed or subscribed again', async ({ store }) => {
    const { teamId, webhookId: id, workflowId, due } = await oneDelivery(store);
    for (const resume of [
      () => store.webhooks.resume({ teamId, id }),
      () => subscribe(store, { teamId, workflowId }),
    ]) {
      await note(store, due, 'failing');
      await store.webhooks.pause({ teamId, id, reason: 'It fails' });
      assert.notEqual((await store.webhooks.get({ teamId, id }))?.failingSince, null);
      await resume();
      const webhook = await store.webhooks.get({ teamId, id });
      assert.deepEqual(
        [webhook?.state, webhook?.pausedAt, webhook?.pausedReason, webhook?.failingSince],
        ['active', null, null, null],
      );
      assert.deepEqual(await store.webhooks.resume({ teamId, id }), webhook, 'twice is harmless');
      assert.equal((await store.deliveries.lanes(HOLDER)).length, 1);
    }
  });

  it('stores since when a webhook fails, and its last success', async ({ store, advance }) => {
    const { teamId, webhookId: id, due } = await oneDelivery(store);
    const health = async () => {
      const webhook = await store.webhooks.get({ teamId, id });
      return [webhook?.failingSince, webhook?.lastSuccessAt];
    };
    const since = store.now();
    await note(store, due, 'failing');
    advance(10);
    await note(store, due, 'failing');
    assert.deepEqual(await health(), [since, null]);
    assert.equal((await store.deliveries.lanes(HOLDER))[0]?.failingSince, since);
    await note(store, due, null);
    assert.deepEqual(await health(), [since, null]);
    await note(store, due, 'well');
    assert.deepEqual(await health(), [null, store.now()]);
    advance(10);
    await note(store, due, 'failing');
    assert.deepEqual(await health(), [store.now(), store.now() - 10]);
  });

  it('stores the state of the circuit breaker until the webhook is resumed', async ({ store }) => {
    const { teamId, webhookId: id, due } = await oneDelivery(store);
    const open = { state: 'open', since: 5, until: 9, failures: 12 } as const;
    const breaker = async () => (await store.webhooks.get({ teamId, id }))?.breaker;
    assert.equal(await breaker(), null);
    await note(store, due, 'failing', open);
    assert.deepEqual(await breaker(), open);
    assert.deepEqual((await store.deliveries.lanes(HOLDER))[0]?.breaker, open);
    await note(store, due, null);
    assert.deepEqual(await breaker(), open);
    await note(store, due, null, null);
    assert.equal(await breaker(), null);
    await note(store, due, null, open);
    await store.webhooks.pause({ teamId, id, reason: 'It fails' });
    assert.deepEqual(await breaker(), open);
    assert.equal((await store.webhooks.resume({ teamId, id }))?.breaker, null);
  });

  it('reports an endpoint that begins to fail once to the other webhooks, until a delivery has succeeded', async ({
    store,
    advance,
  }) => {
    const { teamId, webhookId: id, workflowId, due } = await oneDelivery(store);
    const sibling = await subscribe(store, { teamId, workflowId }, ['webhook.failing']);
    const wide = await subscribe(store, { teamId, workflowId: null });
    const deaf = await subscribe(store, { teamId, workflowId }, ['webhook_paused']);
    await store.webhooks.change({ teamId, id, name: 'Orders' });
    const open = { state: 'open', since: 5, until: 90_000, failures: 10, openedAt: 5 } as const;
    const reports = async () =>
      (await allEvents(store, teamId)).filter(({ type }) => type === 'webhook_failing');

    const since = new Date(store.now()).toISOString();
    await note(store, due, 'failing');
    advance(10);
    assert.deepEqual(await reports(), [], 'one failure opens no breaker');
    await note(store, due, null, open);
    const [event, ...more] = await reports();
    assert.deepEqual([event?.workflowId, more.length], [workflowId, 0]);
    assert.deepEqual(event?.parsed.data, {
      webhookId: id,
      name: 'Orders',
      url: 'https://a.test/*',
      since,
      failures: 10,
      lastError: FAILED.error,
      retriesAt: '1970-01-01T00:01:30.000Z',
    });
    for (const [webhookId, deliveries] of [
      [sibling, 1],
      [wide, 1],
      [deaf, 0],
    ] as const) {
      assert.equal((await load(store, teamId, webhookId)).length, deliveries);
    }
    const received = (await load(store, teamId, id)).map(({ eventType }) => eventType);
    assert.deepEqual(received, ['workflow_queued'], 'not to the failing webhook itself');

    // The probe fails, or gets a response that is no success, and fails again.
    await note(store, due, null, { ...open, until: 99_000 });
    await note(store, due, null, { ...open, state: 'half_open' });
    await note(store, due, null, { ...open, until: 120_000 });
    assert.equal((await reports()).length, 1);
    await note(store, due, 'well', null);
    await note(store, due, 'failing', { ...open, openedAt: 200 });
    assert.equal((await reports()).length, 2, 'it has worked in between');
    await store.webhooks.pause({ teamId, id, reason: 'By hand' });
    await note(store, due, null, { ...open, openedAt: 300, state: 'half_open' });
    await note(store, due, null, { ...open, openedAt: 400 });
    assert.equal((await reports()).length, 2, 'nothing is said about a paused webhook');
  });

  it('shows other webhooks only the host of a chat webhook, whose address is a secret', async ({ store }) => {
    const { teamId, webhookId: id, due } = await oneDelivery(store);
    await store.webhooks.change({ teamId, id, rule: { ...DEFAULT_RULE, format: 'slack' } });
    const open = { state: 'open', since: 5, until: 9, failures: 12, openedAt: 5 } as const;
    await note(store, due, 'failing', open);
    await store.webhooks.pause({ teamId, id, reason: 'By hand' });
    const told = (await allEvents(store, teamId)).filter(({ type }) => type.startsWith('webhook_'));
    assert.deepEqual(
      told.map(({ type, parsed }) => [type, parsed.data.url]),
      [
        ['webhook_failing', 'https://a.test/'],
        ['webhook_paused', 'https://a.test/'],
      ],
    );
  });

  it('reports no second time a breaker that a previous version has stored as open', async ({ store }) => {
    const { teamId, due } = await oneDelivery(store);
    const open = { state: 'open', since: 5, until: 9, failures: 12 } as const;
    await note(store, due, 'failing', { ...open, openedAt: 5 });
    await note(store, due, null, open);
    await note(store, due, null, { ...open, openedAt: 70 });
    const types = (await allEvents(store, teamId)).map(({ type }) => type);
    assert.equal(types.filter((type) => type === 'webhook_failing').length, 1);
  });

  it('keeps the result of the last of several attempts settled together', async ({ store }) => {
    const { teamId, webhookId: id, due } = await oneDelivery(store);
    const open = { state: 'open', since: 5, until: 9, failures: 12 } as const;
    const failed = settlement(due, 9, { state: 'dead' });
    await store.deliveries.settle({
      settlements: [
        { ...failed, health: 'failing', breaker: open },
        { ...failed, breaker: null },
      ],
    });
    assert.equal((await store.webhooks.get({ teamId, id }))?.breaker, null);
  });

  it('returns when the first delivery of a webhook is due', async ({ store }) => {
    const { teamId, webhookId, workflowId, due } = await oneDelivery(store);
    const first = () => store.deliveries.firstDueAt({ teamId, webhookId });
    const createdAt = store.now();
    assert.equal(await first(), createdAt);
    await settle(store, due, 1, { state: 'waiting', nextAt: createdAt + 5_000 }, FAILED);
    assert.equal(await first(), createdAt + 5_000);
    await store.webhooks.change({ teamId, id: webhookId, settings: { ordered: true } });
    await store.webhooks.test({ teamId, id: webhookId });
    assert.equal(await first(), createdAt + 5_000, 'the first by sequence');
    await store.webhooks.change({ teamId, id: webhookId, settings: { ordered: false } });
    assert.equal(await first(), createdAt);
    const other = await subscribe(store, { teamId, workflowId }, ['workflow_failed']);
    assert.equal(await store.deliveries.firstDueAt({ teamId, webhookId: other }), null);
    assert.equal(await store.deliveries.firstDueAt({ teamId: 'team_x', webhookId }), null);
  });

  it('sends a test to one webhook only, even if it is not subscribed', async ({ store }) => {
    const at = await makeWorkflow(store);
    const { teamId } = at;
    const id = await subscribe(store, at, ['workflow_failed']);
    const all = await subscribe(store, at);
    const made = await store.webhooks.test({ teamId, id });
    assert.deepEqual(await load(store, teamId, all), []);
    const [due, ...more] = await load(store, teamId, id);
    assert.deepEqual(
      [due?.id, due?.eventId, due?.eventType, due?.origin, due?.class, more.length],
      [made?.deliveryId, made?.eventId, 'webhook_test', 'test', 'live', 0],
    );
    const event = await store.events.get({ teamId, id: made?.eventId ?? '' });
    assert.equal(event?.body, due?.body);
    const { type, workflowId, data } = JSON.parse(due?.body ?? '');
    assert.deepEqual([type, workflowId, data.webhookId], ['webhook_test', 'people', id]);

    // A paused webhook receives the test when it is resumed.
    await store.webhooks.pause({ teamId, id: all, reason: 'By hand' });
    assert.notEqual(await store.webhooks.test({ teamId, id: all }), undefined);
    assert.equal(await store.deliveries.lane({ teamId, webhookId: all, ...HOLDER }), undefined);
  });

  it('finds no webhook that is removed or belongs to another team', async ({ store }) => {
    const at = await makeWorkflow(store);
    const id = await subscribe(store, at);
    const nothing = async (target: { teamId: string; id: string }) => {
      assert.equal(await store.webhooks.rotate({ ...target, secret: 's', overlapMs: 1 }), undefined);
      assert.equal(await store.webhooks.change({ ...target, settings: {} }), undefined);
      assert.equal(await store.webhooks.pause({ ...target, reason: 'x' }), undefined);
      assert.equal(await store.webhooks.resume(target), undefined);
      assert.equal(await store.webhooks.test(target), undefined);
    };
    await nothing({ teamId: 'team_x', id });
    await store.webhooks.unsubscribe({ teamId: at.teamId, ids: [id] });
    await nothing({ teamId: at.teamId, id });
    assert.deepEqual(await allEvents(store, at.teamId), []);
  });

  it('delivers events of all workflows to a webhook of the whole team', async ({ store }) => {
    const { teamId } = await makeWorkflow(store);
    const id = await subscribe(store, { teamId, workflowId: null }, ['workflow_queued']);
    assert.equal(await subscribe(store, { teamId, workflowId: null }, ['workflow_queued']), id);
    assert.equal((await store.webhooks.get({ teamId, id }))?.workflowId, null);
    for (const workflow of ['one', 'two']) {
      await makeJob(store, await makeWorkflow(store, { id: workflow }));
    }
    await makeJob(store, await makeWorkflow(store, { team: 'foreign' }));
    assert.equal((await load(store, teamId, id)).length, 2);
  });

  it('settles deliveries of a removed webhook', async ({ store }) => {
    const { teamId, webhookId, due } = await oneDelivery(store);
    await store.webhooks.unsubscribe({ teamId, ids: [webhookId] });
    const settlements = [{ ...settlement(due, 1, { state: 'delivered' }), health: 'well' as const }];
    await store.deliveries.settle({ settlements });
    assert.equal((await store.deliveries.get({ teamId, id: due.id }))?.state, 'delivered');
  });
}

/** Settles an attempt with this health and breaker; the delivery stays due. */
async function note(
  store: Store,
  { teamId, id }: { teamId: string; id: string },
  health: 'failing' | 'well' | null,
  breaker?: Breaker | null,
): Promise<void> {
  const { webhookId, attempt } = (await store.deliveries.get({ teamId, id })) as {
    webhookId: string;
    attempt: number;
  };
  const next = { state: 'waiting', nextAt: store.now() } as const;
  const log = health === 'well' ? OK : FAILED;
  const one = settlement({ teamId, id, webhookId }, attempt + 1, next, log);
  await store.deliveries.settle({ settlements: [{ ...one, health, breaker }] });
}
