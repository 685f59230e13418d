/** The delivery engine with a real store and real receivers on the loopback interface. */
import assert from 'node:assert/strict';
import { createPublicKey, verify } from 'node:crypto';
import { test } from 'node:test';
import { Webhook as Verifier } from 'standardwebhooks';
import { endpoint, setUp } from '../../test/support/webhooks/lanes.ts';
import { Problem } from '../model/error.ts';
import { MAX_LIMIT, START_LIMIT } from '../model/lane.ts';
import { webhookSecret } from './sealed.ts';
import { publicSigningKeys } from './signing-keys.ts';

test('delivers exactly the stored bytes, signed by the webhook', async (t) => {
  const { store, sealer, teamId, lanes, subscribe, runs } = await setUp(t);
  const receiver = await endpoint(t, ({ response }) => response.writeHead(204).end());
  const id = await subscribe(receiver.url, ['*']);
  await runs();
  await lanes().tick();
  const events = await store.events.list({ teamId, afterSequence: 0, limit: 10 });
  assert.deepEqual(receiver.arrived.map((one) => one.body).sort(), events.map((event) => event.body).sort());
  const secret = await webhookSecret({ store, sealer }, { teamId, id });
  for (const { body, headers } of receiver.arrived) {
    new Verifier(secret).verify(body, headers);
    assert.doesNotMatch(headers['webhook-signature'] ?? '', / /);
    assert.equal(headers['webhook-id'], JSON.parse(body).id);
    assert.equal(headers['webhook-event'], JSON.parse(body).type);
  }
  const listed = await store.deliveries.list({ teamId, webhookId: id, limit: 10 });
  assert.deepEqual(
    listed.map((delivery) => [delivery.state, delivery.attempt]),
    [
      ['delivered', 1],
      ['delivered', 1],
      ['delivered', 1],
    ],
  );
});

test('also signs with the key of the team once somebody has read the public key', async (t) => {
  const { store, sealer, teamId, lanes, subscribe, runs } = await setUp(t);
  const receiver = await endpoint(t, ({ response }) => response.writeHead(204).end());
  await subscribe(receiver.url);
  const engine = lanes();
  await runs();
  await engine.tick();
  const [published] = await publicSigningKeys({ store, sealer }, { teamId });
  await runs();
  await engine.tick();
  const [before, after] = receiver.arrived.map(({ headers, body }) => ({
    content: Buffer.from(`${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`),
    signatures: headers['webhook-signature']?.split(' ') ?? [],
  }));
  assert.deepEqual(
    [before, after].map((one) => one?.signatures.map((signature) => signature.split(',')[0])),
    [['v1'], ['v1', 'v1a']],
  );
  const x = Buffer.from(published?.key.slice('whpk_'.length) ?? '', 'base64').toString('base64url');
  const publicKey = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
  const ofTeam = Buffer.from(after?.signatures[1]?.slice('v1a,'.length) ?? '', 'base64');
  assert.ok(verify(null, after?.content ?? Buffer.alloc(0), publicKey, ofTeam));
});

test('retries by the stored schedule, with the same id and a new attempt number', async (t) => {
  const { store, teamId, lanes, subscribe, runs, advance, now } = await setUp(t);
  const receiver = await endpoint(t, ({ response }) => response.writeHead(500).end('broken'));
  const webhookId = await subscribe(receiver.url);
  await runs();
  for (const [attempt, waitMs] of [
    [1, 5_000],
    [2, 300_000],
    [3, 1_800_000],
  ] as const) {
    // New lanes each time, so that the schedule is not in memory.
    const fresh = lanes();
    await fresh.tick();
    const [delivery] = await store.deliveries.list({ teamId, webhookId, limit: 1 });
    assert.equal(delivery?.attempt, attempt);
    assert.equal(delivery?.nextAt, now() + waitMs * 1.1);
    advance(waitMs * 1.1 - 1);
    await fresh.tick();
    assert.equal(receiver.arrived.length, attempt, 'never early');
    advance(1);
  }
  await lanes().tick();
  assert.deepEqual(
    receiver.arrived.map((one) => one.attempt),
    [1, 2, 3, 4],
  );
  assert.equal(new Set(receiver.arrived.map((one) => one.id)).size, 1);
  const [delivery] = await store.deliveries.list({ teamId, webhookId, limit: 1 });
  const logged = await store.deliveries.get({ teamId, id: delivery?.id ?? '' });
  assert.deepEqual(
    logged?.attempts.map(({ outcome, status, response }) => [outcome, status, response]),
    Array(4).fill(['http', 500, 'broken']),
  );
});

test('a delivery is dead after the last attempt', async (t) => {
  const { store, teamId, lanes, subscribe, runs, advance, now } = await setUp(t);
  const receiver = await endpoint(t, ({ response }) => response.writeHead(500).end());
  const webhookId = await subscribe(receiver.url);
  await runs();
  const one = lanes();
  for (let look = 0; look < 12; look += 1) {
    await one.tick();
    const [delivery] = await store.deliveries.list({ teamId, webhookId, limit: 1 });
    advance((delivery?.nextAt ?? now()) - now());
  }
  assert.equal(receiver.arrived.length, 10);
  const [delivery] = await store.deliveries.list({ teamId, webhookId, limit: 1 });
  assert.equal(delivery?.state, 'dead');
});

test('410 unsubscribes, and waiting deliveries of the webhook are not sent', async (t) => {
  const { store, teamId, lanes, subscribe, runs } = await setUp(t);
  const receiver = await endpoint(t, ({ response }) => response.writeHead(410).end());
  const webhookId = await subscribe(receiver.url);
  await runs(20);
  const one = lanes();
  await one.tick();
  await one.tick();
  assert.ok(receiver.arrived.length <= START_LIMIT, `${receiver.arrived.length} arrived`);
  assert.deepEqual(await store.webhooks.list({ teamId, limit: 100 }), []);
  const listed = await store.deliveries.list({ teamId, webhookId, limit: 100 });
  assert.deepEqual([...new Set(listed.map((delivery) => delivery.state))], ['canceled']);
});

test('sends a backlog of many pages, each delivery once, at most 16 at a time', async (t) => {
  const { lanes, subscribe, runs } = await setUp(t);
  let open = 0;
  let most = 0;
  const receiver = await endpoint(t, ({ response }) => {
    open += 1;
    most = Math.max(most, open);
    setImmediate(() => {
      open -= 1;
      response.writeHead(204).end();
    });
  });
  await subscribe(receiver.url, ['*']);
  await runs(70);
  await lanes().tick();
  assert.equal(receiver.arrived.length, 210);
  assert.equal(new Set(receiver.arrived.map((arrived) => arrived.id)).size, 210);
  assert.ok(most <= MAX_LIMIT, `${most} concurrent requests`);
});

test('a delivery in flight is not sent again, however often the engine checks', async (t) => {
  const { lanes, subscribe, runs } = await setUp(t);
  const receiver = await endpoint(t, () => undefined);
  await subscribe(receiver.url);
  await runs();
  const one = lanes();
  const ticks = [one.tick()];
  await receiver.until(1);
  for (let look = 0; look < 5; look += 1) ticks.push(one.tick());
  receiver.arrived[0]?.response.writeHead(204).end();
  await Promise.all(ticks);
  await one.tick();
  assert.equal(receiver.arrived.length, 1);
});

test('checks after each commit of its own process without being nudged', async (t) => {
  const { lanes, subscribe, runs } = await setUp(t);
  const receiver = await endpoint(t, ({ response }) => response.writeHead(204).end());
  await subscribe(receiver.url);
  lanes().start();
  await runs();
  await receiver.until(1);
});

test('a store that is temporarily unavailable causes neither lost nor duplicate deliveries', async (t) => {
  let away = 0;
  const failing = <T>(value: Promise<T>): Promise<T> => {
    away -= 1;
    return away < 0 ? value : Promise.reject(new Problem('database_unavailable'));
  };
  const { store, teamId, lanes, subscribe, runs } = await setUp(t, {
    wrap: (real) => ({
      ...real,
      now: () => real.now(),
      watch: (listener) => real.watch(listener),
      close: () => real.close(),
      deliveries: {
        ...real.deliveries,
        lanes: (input) => failing(real.deliveries.lanes(input)),
        load: (input) => failing(real.deliveries.load(input)),
        settle: async (input) => {
          await failing(Promise.resolve());
          return real.deliveries.settle(input);
        },
      },
    }),
  });
  const receiver = await endpoint(t, ({ response }) => {
    away = 3;
    response.writeHead(204).end();
  });
  const webhookId = await subscribe(receiver.url);
  await runs();
  const one = lanes();
  away = 1;
  await one.tick();
  assert.equal(receiver.arrived.length, 0);
  await one.tick();
  assert.equal(receiver.arrived.length, 1);
  const [delivery] = await store.deliveries.list({ teamId, webhookId, limit: 1 });
  assert.equal(delivery?.state, 'delivered');
});
