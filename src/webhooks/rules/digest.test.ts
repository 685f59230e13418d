/** Digests of webhooks: through the engine, by the clock of the store. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { type Records, type Sent, setUpRules } from '../../../test/support/webhooks/rules.ts';
import type { Rule } from '../../model/rule.ts';

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
