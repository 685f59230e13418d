/** Cooldowns of webhooks: through the engine, by the clock of the store. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { listed, type Records, setUpRules } from '../../../test/support/webhooks/rules.ts';
import { DEFAULT_RULE } from '../../model/rule.ts';

const HOUR_MS = 3_600_000;
const price = (values: Record<string, number>): Records =>
  Object.fromEntries(Object.entries(values).map(([id, price]) => [id, { price }]));

async function withCooldown(t: TestContext, changes: { cooldownMs?: number | null; filter?: string } = {}) {
  const set = await setUpRules(t);
  const rule = {
    filter: 'record.price < 50',
    firstVersion: 'send',
    cooldownMs: HOUR_MS,
    ...changes,
  } as const;
  const webhook = await set.subscribe(rule);
  const engine = set.engine();
  const messages = async () => {
    const sent = await set.sent(webhook);
    return sent.map((message) => {
      const prices = (message.data.differences ?? []).map(({ id, fields }) => {
        const field = (fields as { key: string; value?: unknown }[]).find(({ key }) => key === 'price');
        return `${id} ${field?.value ?? 'removed'}`;
      });
      return [...prices, ...(message.data.cooldownEnded === true ? ['at the end'] : [])].join(', ');
    });
  };
  return {
    ...set,
    webhook,
    rule,
    engine,
    /** Publishes prices, lets the engine decide, and returns what was sent so far: ids with their prices. */
    async publishes(values: Record<string, number>) {
      await set.publish(price(values));
      await engine.tick();
      return messages();
    },
    messages,
  };
}

test('a record that matched is silent for the cooldown, then its newest state is sent by the clock', async (t) => {
  const { publishes, advance, engine, messages, sent, webhook, decisions } = await withCooldown(t);
  assert.deepEqual(await publishes({ a: 40, b: 60 }), ['a 40']);
  advance(HOUR_MS / 2);
  assert.deepEqual(await publishes({ a: 30, b: 60 }), ['a 40']);
  assert.deepEqual(await publishes({ a: 20, b: 45 }), ['a 40', 'b 45'], 'other records are not silent');
  advance(HOUR_MS / 2 - 1);
  await engine.tick();
  assert.equal((await messages()).length, 2);
  advance(1);
  await engine.tick();
  assert.deepEqual(await messages(), ['a 40', 'b 45', 'a 20, at the end']);
  const [first, second, last] = await sent(webhook);
  assert.notEqual(last?.id, second?.id, 'the message has an id of its own');
  assert.equal(last?.data.version, 3, 'of the newest event that it covers');
  assert.equal(first?.data.version, 1);
  assert.deepEqual((await decisions(webhook))[1], {
    state: 'filtered',
    matched: 0,
    examined: 1,
    reason: '0 of 1 difference matches. 1 record is in a cooldown',
  });
});

test('after a cooldown nothing is sent about a record that is as it was, or no longer matches', async (t) => {
  const { publishes, advance, engine, messages } = await withCooldown(t);
  await publishes({ a: 40, b: 40 });
  advance(1_000);
  await publishes({ a: 30, b: 90 });
  advance(1_000);
  await publishes({ a: 40, b: 90 });
  advance(HOUR_MS);
  await engine.tick();
  assert.deepEqual(await messages(), ['a 40, b 40']);
  assert.deepEqual(await publishes({ a: 39, b: 39 }), ['a 40, b 40', 'a 39, b 39'], 'both are audible again');
});

test('a record that is sent at the end of its cooldown is silent again, from that end', async (t) => {
  const { publishes, advance, engine, messages } = await withCooldown(t);
  await publishes({ a: 40 });
  advance(1_000);
  await publishes({ a: 30 });
  // The node is late.
  advance(HOUR_MS + 5_000);
  await engine.tick();
  assert.deepEqual(await messages(), ['a 40', 'a 30, at the end']);
  advance(HOUR_MS - 6_001);
  assert.equal((await publishes({ a: 20 })).length, 2);
  advance(1);
  await engine.tick();
  assert.deepEqual(await messages(), ['a 40', 'a 30, at the end', 'a 20, at the end']);
});

test('cooldowns that are over end before an event that happens later, in one message', async (t) => {
  const { publishes, publish, advance, engine, messages } = await withCooldown(t);
  await publishes({ a: 40, b: 41 });
  advance(1_000);
  await publishes({ a: 30, b: 31 });
  advance(HOUR_MS);
  await publish(price({ a: 20, b: 31, c: 10 }));
  await engine.tick();
  // `a` is silent again, because its end was sent.
  assert.deepEqual(await messages(), ['a 40, b 41', 'a 30, b 31, at the end', 'c 10']);
});

test('a removed record that was silent is sent as removed, if that matches', async (t) => {
  const { publishes, advance, engine, sent, webhook } = await withCooldown(t, {
    filter: 'record.price < 50 || change == "removed"',
  });
  await publishes({ a: 40, b: 90 });
  advance(1_000);
  await publishes({ b: 90 });
  advance(HOUR_MS);
  await engine.tick();
  assert.deepEqual((await sent(webhook)).map(listed), [['added a'], ['removed a']]);
});

test('a rule without a cooldown respects those that still run', async (t) => {
  const { publishes, advance, engine, messages, store, teamId, webhook, rule } = await withCooldown(t);
  await publishes({ a: 40 });
  const changed = { ...DEFAULT_RULE, ...rule, cooldownMs: null };
  await store.webhooks.change({ teamId, id: webhook, rule: changed });
  advance(1_000);
  assert.deepEqual(await publishes({ a: 30 }), ['a 40']);
  advance(HOUR_MS);
  await engine.tick();
  assert.deepEqual(await messages(), ['a 40', 'a 30, at the end']);
  assert.deepEqual(await publishes({ a: 29 }), ['a 40', 'a 30, at the end', 'a 29']);
});

test('a message about a lost commit is sent once', async (t) => {
  const { publishes, advance, messages, engine, store } = await withCooldown(t);
  await publishes({ a: 40 });
  advance(1_000);
  await publishes({ a: 30 });
  advance(HOUR_MS);
  const { step } = store.decisions;
  let isLost = false;
  // The first write succeeds, but its response is lost.
  Object.assign(store.decisions, {
    step: async (input: Parameters<typeof step>[0]) => {
      const counts = await step(input);
      if (isLost) return counts;
      isLost = true;
      throw new Error('lost');
    },
  });
  await engine.tick();
  await engine.tick();
  assert.deepEqual(await messages(), ['a 40', 'a 30, at the end']);
});

test('a cooldown that is over before its event is decided ends in the same tick', async (t) => {
  const { publish, engine, advance, messages, store, at, webhook } = await withCooldown(t);
  await publish(price({ a: 60 }));
  await publish(price({ a: 40 }));
  advance(HOUR_MS);
  await engine.tick();
  assert.deepEqual(await messages(), ['a 40']);
  const until = Number.MAX_SAFE_INTEGER;
  const { teamId } = at;
  assert.equal(await store.decisions.ended({ teamId, webhookId: webhook, until, limit: 1 }), undefined);
});
