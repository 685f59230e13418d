/** Digests of webhooks: through the engine, by the clock of the store. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { type Records, type Sent, setUpRules } from '../../../test/support/webhooks/rules.ts';
import type { Rule } from '../../model/rule.ts';
import { allSteps, makeJob, makeRunning } from '../../store/conformance/setup.ts';

const HOUR_MS = 3_600_000;
const price = (values: Record<string, number>): Records =>
  Object.fromEntries(Object.entries(values).map(([id, price]) => [id, { price }]));

/** What a digest says: each record with its price before the first match and its newest one, and its events. */
function told({ type, data }: Sent): string[] {
  if (type !== 'webhook_digest') return [type];
  const { workflows, events } = data as {
    workflows: {
      differences: {
        type: string;
        id: string;
        fields: { key: string; value?: number; previousValue?: number }[];
      }[];
    }[];
    events: { type: string }[];
  };
  const records = workflows
    .flatMap(({ differences }) => differences)
    .map(({ type, id, fields }) => {
      const field = fields.find(({ key }) => key === 'price');
      return `${type} ${id} ${field?.previousValue ?? '-'} ${field?.value ?? '-'}`;
    });
  return [...records, ...events.map((event) => event.type)];
}

async function withDigest(t: TestContext, rule: Partial<Rule> = {}, events = ['workflow_data_change']) {
  const set = await setUpRules(t);
  const webhook = await set.subscribe(
    { filter: 'record.price < 50', firstVersion: 'send', digest: { everyMs: HOUR_MS }, ...rule },
    events,
  );
  const engine = set.engine();
  return {
    ...set,
    webhook,
    engine,
    async publishes(values: Record<string, number>) {
      await set.publish(price(values));
      await engine.tick();
    },
    messages: async () => (await set.sent(webhook)).map(told),
    async waits(ms: number) {
      set.advance(ms);
      await engine.tick();
    },
  };
}

test('matches are gathered for an hour, then sent in one message with the newest state of each record', async (t) => {
  const { publishes, waits, messages, sent, webhook, decisions, now } = await withDigest(t);
  const from = now();
  await publishes({ a: 40, b: 60, c: 60 });
  await waits(HOUR_MS / 2);
  await publishes({ a: 30, b: 45, c: 60 });
  await publishes({ a: 90, b: 45, c: 61 });
  assert.deepEqual(await messages(), []);
  await waits(HOUR_MS / 2 - 1);
  assert.deepEqual(await messages(), []);
  await waits(1);
  assert.deepEqual(await messages(), [['changed b 60 45', 'added a - 90']]);
  const [message] = await sent(webhook);
  const { workflows, events, ...data } = message?.data ?? {};
  assert.deepEqual(data, {
    webhookId: webhook,
    from: new Date(from).toISOString(),
    until: new Date(from + HOUR_MS).toISOString(),
    matched: 3,
    records: 2,
    more: 0,
  });
  assert.deepEqual(events, []);
  assert.equal(message?.type, 'webhook_digest');
  const [{ workflowId, differences, ...workflow }] = workflows as [Record<string, unknown>];
  assert.deepEqual(workflow, { version: 3, previousVersion: 0, matched: 3, records: 2, truncated: false });
  assert.deepEqual((await decisions(webhook)).slice(0, 3), [
    { state: 'gathered', matched: 1, examined: 3, reason: 'Gathered: 1 of 3 differences matches' },
    { state: 'gathered', matched: 2, examined: 2, reason: 'Gathered: 2 of 2 differences match' },
    { state: 'filtered', matched: 0, examined: 2, reason: '0 of 2 differences match' },
  ]);
  await waits(10 * HOUR_MS);
  assert.equal((await messages()).length, 1);
});

test('an event at exactly the end is in the next digest, and a server that was down sends the same', async (t) => {
  const { publish, advance, engine, messages, sent, webhook, now } = await withDigest(t);
  const from = now();
  await publish(price({ a: 40 }));
  advance(HOUR_MS - 1);
  await publish(price({ a: 41 }));
  advance(1);
  await publish(price({ a: 42 }));
  advance(100 * HOUR_MS);
  await engine.tick();
  assert.deepEqual(await messages(), [['added a - 41'], ['changed a 41 42']]);
  const ends = (await sent(webhook)).map(({ data }) => Date.parse(String(data.until)) - from);
  assert.deepEqual(ends, [HOUR_MS, 2 * HOUR_MS]);
});

test('a record that is as it was is in the digest without fields, and so is one that came and went', async (t) => {
  const { publishes, waits, messages, sent, webhook } = await withDigest(t);
  await publishes({ a: 60 });
  await publishes({ a: 40, b: 30 });
  await publishes({ a: 60 });
  await waits(HOUR_MS);
  assert.deepEqual(await messages(), [['changed a - -', 'removed b - -']]);
  assert.equal((await sent(webhook))[0]?.data.matched, 2);
});

test('other events are gathered too, with the reason of a failure, even after they were deleted', async (t) => {
  const events = ['workflow_failed', 'workflow_canceled', 'workflow_data_change'];
  const { at, store, teamId, engine, waits, advance, messages, sent, webhook, publish, decisions } =
    await withDigest(t, { filter: null, digest: { everyMs: 7 * 24 * HOUR_MS } }, events);
  const held = await makeRunning(store, at);
  const then = { state: 'failed' } as const;
  await store.jobs.fail({
    held,
    reason: 'error',
    error: 'The command ended with exit code 7',
    failures: 3,
    then,
  });
  await engine.tick();
  await publish(price({ a: 70 }));
  await engine.tick();
  assert.deepEqual(
    (await decisions(webhook)).map(({ state, reason }) => [state, reason]),
    [
      ['gathered', 'Gathered'],
      ['gathered', 'Gathered: 1 of 1 difference matches'],
    ],
  );
  advance(7 * 24 * HOUR_MS - 1);
  await makeJob(store, at);
  await allSteps(store.deliveries.prune, { teamId, attemptsMs: 0, eventsMs: 0, limit: 9 });
  await waits(1);
  assert.deepEqual(await messages(), [['added a - 70', 'workflow_failed']]);
  const [failed] = ((await sent(webhook))[0]?.data.events ?? []) as { summary: string; type: string }[];
  assert.equal(failed?.summary, 'The command ended with exit code 7');
});

test('a digest gets the form of its webhook, and a test is sent without waiting for it', async (t) => {
  const { publishes, waits, sent, webhook, store, teamId, engine } = await withDigest(t, {
    format: 'cloudevents',
  });
  await publishes({ a: 40 });
  await store.webhooks.test({ teamId, id: webhook });
  await engine.tick();
  await waits(HOUR_MS);
  const types = (await sent(webhook)).map(({ type }) => type);
  assert.deepEqual(types, ['flowhook.webhook_test', 'flowhook.webhook_digest']);
});

test('other webhooks do not receive a digest', async (t) => {
  const { publishes, waits, subscribe, sent } = await withDigest(t);
  const other = await subscribe({ filter: 'event.type != "workflow_data_change"' }, ['*']);
  await publishes({ a: 40 });
  await waits(HOUR_MS);
  assert.ok((await sent(other)).every(({ type }) => type !== 'webhook_digest'));
});

test('a digest that is changed or removed is sent now, and so is what was still to be gathered for it', async (t) => {
  for (const digest of [null, { everyMs: 2 * HOUR_MS }]) {
    const { publish, publishes, advance, messages, engine, webhook, store, teamId } = await withDigest(t);
    await publishes({ a: 40 });
    advance(1_000);
    await publish(price({ a: 41 }));
    const rule = (await store.webhooks.get({ teamId, id: webhook }))?.rule ?? assert.fail();
    await store.webhooks.change({ teamId, id: webhook, rule: { ...rule, filter: 'record.price > 0' } });
    await engine.tick();
    assert.deepEqual(await messages(), [], 'another filter leaves the digest open');
    await publish(price({ a: 42 }));
    advance(1);
    await store.webhooks.change({ teamId, id: webhook, rule: { ...rule, digest } });
    await engine.tick();
    assert.deepEqual(await messages(), [['added a - 42']]);
    await publishes({ a: 43 });
    assert.deepEqual((await messages()).slice(1), digest === null ? [['workflow_data_change']] : []);
  }
});

test('a digest whose rule was removed altogether is sent now', async (t) => {
  const { publish, engine, messages, webhook, store, teamId } = await withDigest(t);
  await publish(price({ a: 40 }));
  await store.webhooks.change({ teamId, id: webhook, rule: null });
  await engine.tick();
  assert.deepEqual(await messages(), [['added a - 40']], 'although nothing was gathered before');
});

test('a digest of a paused webhook is made at its end, and waits with other deliveries', async (t) => {
  const { publishes, waits, messages, webhook, store, teamId } = await withDigest(t);
  await publishes({ a: 40 });
  await store.webhooks.pause({ teamId, id: webhook, reason: 'On request' });
  await waits(HOUR_MS);
  assert.deepEqual(await messages(), [['added a - 40']]);
  assert.deepEqual(
    (await store.deliveries.list({ teamId, webhookId: webhook, limit: 9 })).map(({ state }) => state),
    ['waiting'],
  );
});

test('a removed webhook sends no digest, and leaves no rows', async (t) => {
  const { publishes, waits, messages, webhook, store, teamId } = await withDigest(t);
  await publishes({ a: 40 });
  await store.webhooks.unsubscribe({ teamId, ids: [webhook] });
  await waits(HOUR_MS);
  assert.deepEqual(await messages(), []);
  assert.equal(await store.decisions.endedDigest({ teamId, webhookId: webhook }), undefined);
  assert.equal(await store.decisions.raise({ teamId }), null);
});

test('if the clock was ahead, a digest ends one period after the next event', async (t) => {
  const { publishes, waits, advance, messages } = await withDigest(t);
  advance(10 * 24 * HOUR_MS);
  await publishes({ a: 40 });
  advance(-10 * 24 * HOUR_MS);
  await publishes({ a: 41 });
  await waits(HOUR_MS - 1);
  assert.deepEqual(await messages(), []);
  await waits(1);
  assert.deepEqual(await messages(), [['added a - 41']]);
});

test('an event that matches nothing shortens a digest as well, after the clock was set back', async (t) => {
  const { publishes, waits, advance, messages } = await withDigest(t);
  await publishes({ a: 40 });
  advance(-HOUR_MS / 2);
  await publishes({ a: 40, b: 99 });
  await waits(HOUR_MS);
  assert.deepEqual(await messages(), [['added a - 40']]);
});

test('after the clock was set back, a webhook that no longer has a digest sends it before what it would mix with', async (t) => {
  const { publishes, waits, advance, messages, webhook, store, teamId } = await withDigest(t);
  await publishes({ a: 40 });
  const rule = (await store.webhooks.get({ teamId, id: webhook }))?.rule ?? assert.fail();
  await store.webhooks.change({ teamId, id: webhook, rule: { ...rule, digest: null, cooldownMs: HOUR_MS } });
  advance(-HOUR_MS);
  await publishes({ a: 41 });
  await waits(HOUR_MS);
  assert.deepEqual((await messages()).map((one) => one.join()).sort(), [
    'added a - 40',
    'workflow_data_change',
  ]);
});

test('a record in a cooldown is gathered when that ends, if its webhook has a digest by then', async (t) => {
  const cooldown = { digest: null, cooldownMs: 2 * HOUR_MS };
  const { publishes, waits, messages, sent, webhook, store, teamId } = await withDigest(t, cooldown);
  await publishes({ a: 40 });
  const rule = (await store.webhooks.get({ teamId, id: webhook }))?.rule ?? assert.fail();
  const digest = { everyMs: HOUR_MS };
  await store.webhooks.change({ teamId, id: webhook, rule: { ...rule, cooldownMs: null, digest } });
  await publishes({ a: 30, b: 20 });
  await waits(HOUR_MS);
  assert.deepEqual(await messages(), [['workflow_data_change'], ['added b - 20']]);
  await waits(HOUR_MS);
  await waits(HOUR_MS);
  assert.deepEqual((await messages())[2], ['changed a 40 30']);
  assert.equal((await sent(webhook)).length, 3);
});

test('of 100,000 matches in one digest, 1,000 records are kept and all are counted', async (t) => {
  const { publish, engine, waits, sent, webhook, decisions, store, teamId } = await withDigest(t, {
    filter: 'true',
  });
  await publish(Object.fromEntries(Array.from({ length: 50_000 }, (_, n) => [`r${n}`, { n }])));
  await engine.tick();
  await publish(Object.fromEntries(Array.from({ length: 50_000 }, (_, n) => [`r${n}`, { n: n + 1 }])));
  await engine.tick();
  const rows = await store.decisions.endedDigest({ teamId, webhookId: webhook });
  assert.equal(rows?.rows.length, 1_001);
  await waits(HOUR_MS);
  const [message, ...others] = await sent(webhook);
  assert.deepEqual(others, []);
  const { matched, records, workflows } = (message?.data ?? {}) as unknown as {
    matched: number;
    records: number;
    workflows: { truncated: boolean; differences: unknown[]; version: number; previousVersion: number }[];
  };
  const [{ truncated, differences, version, previousVersion }] = workflows as [(typeof workflows)[number]];
  assert.deepEqual([matched, records, truncated, version, previousVersion], [100_000, 1_000, true, 2, 0]);
  assert.ok(differences.length > 50 && differences.length <= 100, `${differences.length} are listed`);
  assert.ok(JSON.stringify(message).length < 20_000);
  assert.deepEqual((await decisions(webhook)).map(({ state, matched }) => [state, matched]).slice(0, 2), [
    ['gathered', 50_000],
    ['gathered', 50_000],
  ]);
});

test('a digest keeps 2 MB of records, and counts the matches of those that it no longer keeps', async (t) => {
  const { publish, engine, waits, sent, webhook } = await withDigest(t, { filter: 'true' });
  const long = (n: number, length: number) =>
    Object.fromEntries([...'abcd'].map((id) => [id, { n, text: 'x'.repeat(length) }]));
  await publish(long(1, 10));
  await publish(long(2, 600_000));
  await engine.tick();
  await waits(HOUR_MS);
  const { matched, records } = (await sent(webhook))[0]?.data ?? {};
  assert.deepEqual([matched, records], [8, 3]);
});

test('a record with a long text leaves room for its other fields, and for the other records', async (t) => {
  const { publish, engine, waits, sent, webhook } = await withDigest(t);
  await publish({ a: { price: 1, text: 'x'.repeat(1_000_000) }, b: { price: 2 } });
  await engine.tick();
  await waits(HOUR_MS);
  const [message] = await sent(webhook);
  const { workflows } = (message as Sent).data as {
    workflows: { differences: object[]; truncated: boolean }[];
  };
  const field = (key: string, value: unknown) => ({ key, value });
  const added = (id: string, price: number) => ({
    ...{ type: 'added', id, title: id, url: null },
    fields: [field('id', id), field('price', price)],
  });
  assert.deepEqual(workflows[0]?.differences, [{ ...added('a', 1), moreFields: 1 }, added('b', 2)]);
  assert.equal(workflows[0]?.truncated, true);
});
