/** Engines of several nodes on one PostgreSQL database. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { makeDatabase } from '../../../test/support/postgres.ts';
import { listed, setUpRules } from '../../../test/support/webhooks/rules.ts';

const LEASE_MS = 6_000;

async function nodes(t: TestContext) {
  const { url, drop } = await makeDatabase();
  const set = await setUpRules(t, { databaseUrl: url });
  t.after(drop);
  return { ...set, node: async (nodeId: string) => set.engine({ nodeId, store: await set.another() }) };
}

test('another node decides as soon as the lease of a dead node has expired', async (t) => {
  const { node, subscribe, publish, sent, decisions, advance } = await nodes(t);
  const webhook = await subscribe({ filter: 'record.n == 1', firstVersion: 'send' });
  await (await node('node-a')).tick();
  await publish({ a: { n: 1 } });
  advance(LEASE_MS - 1);
  await (await node('node-b')).tick();
  assert.equal((await decisions(webhook))[0]?.state, 'pending');
  advance(1);
  await (await node('node-b')).tick();
  assert.deepEqual((await sent(webhook)).map(listed), [['added a']]);
});

test('two nodes that both believe to hold the lease send each message once', async (t) => {
  const { node, subscribe, publish, sent, advance } = await nodes(t);
  const cooldownMs = 3_600_000;
  const webhooks = await Promise.all(
    [0, 1, 2].map((n) => subscribe({ filter: `record.n >= ${n}`, firstVersion: 'send', cooldownMs })),
  );
  const a = await node('node-a');
  await a.tick();
  advance(LEASE_MS);
  const b = await node('node-b');
  await b.tick();
  const records = (add: number) =>
    Object.fromEntries(Array.from({ length: 300 }, (_, n) => [`r${n}`, { n: n + add }]));
  await publish(records(0));
  await Promise.all([a.tick(), b.tick()]);
  advance(1_000);
  await publish(records(1));
  advance(cooldownMs);
  await Promise.all([a.tick(), b.tick()]);
  for (const webhook of webhooks) {
    const ended = (await sent(webhook)).map(({ data }) => data.cooldownEnded === true);
    assert.deepEqual(ended.toSorted(), ended.length === 2 ? [false, true] : [false, false, true]);
  }
});
