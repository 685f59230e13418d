/** Delivery engines of several nodes on one PostgreSQL database: one node at a time sends to a webhook. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { makeDatabase } from '../../test/support/postgres.ts';
import { endpoint, setUp } from '../../test/support/webhooks/lanes.ts';
import { START_LIMIT } from '../model/lane.ts';
import { type MailAddress, readMailAddress } from '../model/messages/mail-address.ts';
import { createResolver } from '../net/resolver.ts';
import { parseSmtpUrl, type SmtpServer } from '../net/smtp-url.ts';
import { createMailing } from './mail/mailing.ts';

const LEASE_MS = 15_000;

/** Two nodes that check for deliveries when the test says so. */
async function twoNodes(t: TestContext) {
  const { url, drop } = await makeDatabase();
  const set = await setUp(t, { databaseUrl: url });
  t.after(drop);
  return { ...set, a: set.lanes(), b: set.lanes({ nodeId: 'node-b', store: await set.another() }) };
}

test('two nodes that check at the same time send each delivery once', async (t) => {
  const { a, b, subscribe, runs } = await twoNodes(t);
  const receiver = await endpoint(t, ({ response }) => response.writeHead(204).end());
  for (let n = 0; n < 8; n++) await subscribe(`${receiver.url}/${n}`);
  await runs(5);
  for (let round = 0; round < 3; round++) await Promise.all([a.tick(), b.tick()]);
  assert.equal(receiver.arrived.length, 40);
  assert.equal(new Set(receiver.arrived.map(({ path, id }) => `${path} ${id}`)).size, 40);
});

test('another node takes over when the lease expires, and failures reported by the first one are stale', async (t) => {
  const { a, b, store, teamId, subscribe, runs, advance } = await twoNodes(t);
  const receiver = await endpoint(t, ({ response }) => {
    if (receiver.arrived.length > 1) response.writeHead(204).end();
  });
  const webhookId = await subscribe(receiver.url);
  await runs();
  const hanging = a.tick();
  await receiver.until(1);
  advance(LEASE_MS - 1);
  await b.tick();
  assert.equal(receiver.arrived.length, 1);
  advance(1);
  await b.tick();
  const [first, second] = receiver.arrived;
  assert.equal(second?.id, first?.id);
  first?.response.writeHead(500).end();
  await hanging;
  const [delivery] = await store.deliveries.list({ teamId, webhookId, limit: 1 });
  assert.deepEqual([delivery?.state, delivery?.attempt, delivery?.last?.outcome], ['delivered', 1, 'ok']);
});

test('a node that was away sends nothing that it queued before another node took the lane', async (t) => {
  const { b, store, lanes, subscribe, runs, states, advance } = await twoNodes(t);
  // The node checks before it learns that it has lost the lane.
  const keepLanes = () => Promise.reject(new Error('For a test'));
  const a = lanes({ store: { ...store, deliveries: { ...store.deliveries, keepLanes } } });
  const receiver = await endpoint(t, ({ response }) => {
    if (receiver.arrived.length > START_LIMIT) response.writeHead(204).end();
  });
  const webhookId = await subscribe(receiver.url);
  await runs(20);
  const away = a.tick();
  await receiver.until(START_LIMIT);
  advance(LEASE_MS);
  await b.tick();
  assert.deepEqual(await states(webhookId), { delivered: 20 });
  await b.stop();
  await runs();
  const back = a.tick();
  for (const { response } of receiver.arrived.slice(0, START_LIMIT)) response.writeHead(204).end();
  await Promise.all([away, back]);
  await a.tick();
  assert.deepEqual(await states(webhookId), { delivered: 21 });
  assert.equal(receiver.arrived.length, START_LIMIT + 21);
});

test('an idle lane is taken by the first node that finds it', async (t) => {
  const { a, b, subscribe, runs } = await twoNodes(t);
  const receiver = await endpoint(t, ({ response }) => response.writeHead(204).end());
  await subscribe(receiver.url);
  await runs();
  await a.tick();
  await runs();
  await b.tick();
  assert.equal(receiver.arrived.length, 1, 'the first node still holds the lane');
  await a.stop();
  await b.tick();
  assert.equal(receiver.arrived.length, 2);
});

test('deliveries found before a lane was released are not sent afterwards', async (t) => {
  const { b, store, lanes, subscribe, runs, advance } = await twoNodes(t);
  const late = Promise.withResolvers<void>();
  const asked = Promise.withResolvers<void>();
  let looks = 0;
  const deliveries = {
    ...store.deliveries,
    lanes: async (input: Parameters<typeof store.deliveries.lanes>[0]) => {
      looks += 1;
      // The third check takes nothing; only the renewal before it matters.
      const found = looks === 3 ? [] : await store.deliveries.lanes(input);
      if (looks === 2) {
        asked.resolve();
        await late.promise;
      }
      return found;
    },
  };
  const a = lanes({ store: { ...store, deliveries } });
  const receiver = await endpoint(t, ({ response }) => {
    if (receiver.arrived.length === 1) response.writeHead(204).end();
  });
  await subscribe(receiver.url);
  await runs();
  await a.tick();
  // The lane has not been idle long enough when the check starts, but it has when the check ends.
  advance(9_000);
  await runs();
  const looking = a.tick();
  await asked.promise;
  advance(1_500);
  await a.tick();
  const sending = b.tick();
  await receiver.until(2);
  late.resolve();
  await looking;
  assert.equal(receiver.arrived.length, 2);
  receiver.arrived[1]?.response.writeHead(204).end();
  await sending;
});

test('a node without an SMTP server leaves mails to a node with one, and says why it cannot send them if there is none', async (t) => {
  const { a, lanes, store, sealer, teamId, another, runs, advance } = await twoNodes(t);
  const mailing = createMailing(
    {
      smtpUrl: parseSmtpUrl('smtp://127.0.0.1:9') as SmtpServer,
      mailFrom: { name: '', address: readMailAddress('flowhook@example.com') as MailAddress },
      mailDomains: undefined,
    },
    { sealer, resolver: createResolver(), publicUrl: () => 'http://127.0.0.1', now: () => store.now() },
  );
  t.after(() => mailing.close());
  const withMail = lanes({ nodeId: 'node-b', store: await another(), mailing });
  const hook = { url: 'mailto:ops@example.org', events: ['workflow_queued'], secret: 'sealed', limit: 9 };
  const made = await store.webhooks.subscribe({ teamId, workflowId: 'people', ...hook });
  assert.ok('webhook' in made);
  const webhook = { teamId, id: made.webhook.id };
  await store.webhooks.verify(webhook);
  const last = async () => (await store.deliveries.list({ teamId, webhookId: webhook.id, limit: 1 }))[0];

  await runs();
  await a.tick();
  assert.equal((await last())?.attempt, 0);
  await withMail.tick();
  // No rule has written a letter here.
  assert.match((await last())?.last?.error ?? '', /is no letter/);
  await withMail.stop();

  await runs();
  for (let second = 0; second < 60; second += 1) {
    await a.tick();
    assert.equal((await last())?.attempt, 0);
    advance(1_000);
  }
  await a.tick();
  const failed = await last();
  assert.deepEqual([failed?.state, failed?.attempt, failed?.last?.outcome], ['waiting', 1, 'connect']);
  assert.match(failed?.last?.error ?? '', /FLOWHOOK_SMTP_URL is not set/);
});
