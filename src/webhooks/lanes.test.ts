/** Lanes on a real store, with real receivers on loopback. The store's clock is the test's own. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { Webhook as Verifier } from 'standardwebhooks';
import { Problem } from '../model/error.ts';
import { parseAllowNetworks } from '../net/address-policy.ts';
import { createGuardedDispatcher } from '../net/dispatcher.ts';
import { createResolver } from '../net/resolver.ts';
import { silentLogger } from '../observe/log.ts';
import { createSealer } from '../std/seal.ts';
import { definition, failAttempt, makeRunning } from '../store/conformance/setup.ts';
import { openStore } from '../store/open.ts';
import type { Store } from '../store/store.ts';
import { LANE_CONCURRENCY } from './lane.ts';
import { Lanes } from './lanes.ts';
import { webhookSecret } from './secret.ts';
import { publicSigningKeys } from './signing-keys.ts';
import { subscribeWebhook } from './subscribe.ts';

interface Arrived {
  id: string;
  attempt: number;
  headers: Record<string, string>;
  path: string;
  body: string;
  response: ServerResponse;
}

/** An endpoint that records what arrives; `answer` decides, and may keep the response for later. */
async function endpoint(t: TestContext, answer: (arrived: Arrived) => void) {
  const arrived: Arrived[] = [];
  const waiting = new Set<() => void>();
  const server = createServer(async (request: IncomingMessage, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const headers = request.headers as Record<string, string>;
    const one: Arrived = {
      id: headers['webhook-id'] ?? '',
      attempt: Number(headers['webhook-attempt']),
      headers,
      path: request.url ?? '',
      body: Buffer.concat(chunks).toString(),
      response,
    };
    arrived.push(one);
    answer(one);
    for (const check of waiting) check();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/hook`,
    arrived,
    async until(count: number): Promise<void> {
      if (arrived.length >= count) return;
      const reached = Promise.withResolvers<void>();
      const check = () => {
        if (arrived.length >= count) reached.resolve();
      };
      waiting.add(check);
      await reached.promise;
      waiting.delete(check);
    },
  };
}

/** A store, lanes that are not started, and what puts events into them. */
async function setUp(t: TestContext, wrap: (store: Store) => Store = (store) => store) {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-lanes-'));
  let nowMs = Date.now();
  const store = wrap(
    await openStore(`sqlite:${join(directory, 'flowhook.db')}`, {
      clock: () => nowMs,
      publicUrl: () => 'http://127.0.0.1',
      log: silentLogger,
      synchronous: 'OFF',
    }),
  );
  const sealer = createSealer(randomBytes(32));
  const policy = parseAllowNetworks('loopback');
  const resolver = createResolver();
  const dispatcher = createGuardedDispatcher({ policy, resolver });
  const { id: teamId } = await store.teams.ensure({ slug: 'default' });
  await store.workflows.apply({ teamId, id: 'people', definition: definition(), hash: '1', nextRunAt: null });
  const at = { teamId, workflowId: 'people' };
  const newLanes = (options: { totalMs?: number; stopGraceMs?: number } = {}) =>
    new Lanes({
      store,
      sealer,
      dispatcher,
      log: silentLogger,
      userAgent: 'flowhook/test',
      random: () => 0.5,
      ...options,
    });
  const lanes: Lanes[] = [];
  t.after(async () => {
    await dispatcher.destroy();
    await Promise.all(lanes.map((one) => one.stop()));
    await store.close();
    await rm(directory, { recursive: true });
  });
  return {
    store,
    sealer,
    teamId,
    lanes(options?: { totalMs?: number; stopGraceMs?: number }): Lanes {
      const made = newLanes(options);
      lanes.push(made);
      return made;
    },
    advance(ms: number) {
      nowMs += ms;
    },
    now: () => nowMs,
    async subscribe(url: string, events = ['workflow_queued']): Promise<string> {
      const deps = { store, sealer, policy, resolver, limit: 1_000 };
      return (await subscribeWebhook(deps, { ...at, url, events })).webhook.id;
    },
    /** Makes events: `workflow_queued`, `workflow_started` and `workflow_failed`, each this often. */
    async runs(times = 1): Promise<void> {
      for (let time = 0; time < times; time += 1) await failAttempt(store, await makeRunning(store, at));
    },
  };
}

test('delivers exactly the stored bytes, signed for this webhook and by this team', async (t) => {
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
    assert.equal(headers['webhook-id'], JSON.parse(body).id);
    assert.equal(headers['webhook-event'], JSON.parse(body).type);
  }
  assert.equal((await publicSigningKeys({ store, sealer }, { teamId })).length, 1);
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

test('retries by the schedule, which is in the table, with the same id and a new attempt number', async (t) => {
  const { store, teamId, lanes, subscribe, runs, advance, now } = await setUp(t);
  const receiver = await endpoint(t, ({ response }) => response.writeHead(500).end('broken'));
  const webhookId = await subscribe(receiver.url);
  await runs();
  for (const [attempt, waitMs] of [
    [1, 5_000],
    [2, 300_000],
    [3, 1_800_000],
  ] as const) {
    // New lanes each time: nothing of the schedule is in memory.
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

test('a delivery is dead when the schedule is used up', async (t) => {
  const { store, teamId, lanes, subscribe, runs, advance } = await setUp(t);
  const receiver = await endpoint(t, ({ response }) => response.writeHead(500).end());
  const webhookId = await subscribe(receiver.url);
  await runs();
  const one = lanes();
  for (let look = 0; look < 12; look += 1) {
    await one.tick();
    advance(30 * 3_600_000);
  }
  assert.equal(receiver.arrived.length, 10);
  const [delivery] = await store.deliveries.list({ teamId, webhookId, limit: 1 });
  assert.equal(delivery?.state, 'dead');
});

test('410 unsubscribes, and what waits for the webhook is not sent', async (t) => {
  const { store, teamId, lanes, subscribe, runs } = await setUp(t);
  const receiver = await endpoint(t, ({ response }) => response.writeHead(410).end());
  const webhookId = await subscribe(receiver.url);
  await runs(20);
  const one = lanes();
  await one.tick();
  await one.tick();
  assert.ok(receiver.arrived.length <= LANE_CONCURRENCY, `${receiver.arrived.length} arrived`);
  assert.deepEqual(await store.webhooks.list({ teamId }), []);
  const listed = await store.deliveries.list({ teamId, webhookId, limit: 100 });
  assert.deepEqual([...new Set(listed.map((delivery) => delivery.state))], ['canceled']);
});

test('an endpoint that hangs holds up no other webhook', async (t) => {
  const { lanes, subscribe, runs } = await setUp(t);
  const hanging = await endpoint(t, () => undefined);
  const healthy = await endpoint(t, ({ response }) => response.writeHead(204).end());
  await subscribe(hanging.url);
  await subscribe(healthy.url);
  await runs(10);
  const one = lanes();
  one.start();
  await healthy.until(10);
  assert.ok(hanging.arrived.length <= LANE_CONCURRENCY);
  await runs(5);
  await healthy.until(15);
  assert.ok(hanging.arrived.length <= LANE_CONCURRENCY);
  for (const { response } of hanging.arrived) response.destroy();
});

test('sends a backlog of many pages, each delivery once, a few at a time', async (t) => {
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
  assert.ok(most <= LANE_CONCURRENCY, `${most} at once`);
});

test('what is in flight is not sent again, however often it looks', async (t) => {
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

test('what was in flight when its process died is sent again with the same id', async (t) => {
  const { store, teamId, lanes, subscribe, runs } = await setUp(t);
  const receiver = await endpoint(t, ({ response }) => {
    if (receiver.arrived.length > 1) response.writeHead(204).end();
  });
  const webhookId = await subscribe(receiver.url);
  await runs();
  const died = lanes();
  void died.tick();
  await receiver.until(1);
  await lanes().tick();
  const [first, second] = receiver.arrived;
  assert.equal(second?.id, first?.id);
  assert.equal(second?.body, first?.body);
  assert.equal(receiver.arrived.length, 2);
  const [delivery] = await store.deliveries.list({ teamId, webhookId, limit: 1 });
  assert.equal(delivery?.state, 'delivered');
  first?.response.destroy();
});

test('a webhook that is unsubscribed while it has a queue gets nothing more', async (t) => {
  const { store, teamId, lanes, subscribe, runs } = await setUp(t);
  const receiver = await endpoint(t, () => undefined);
  const webhookId = await subscribe(receiver.url);
  await runs(20);
  const one = lanes();
  const first = one.tick();
  await receiver.until(LANE_CONCURRENCY);
  await store.webhooks.unsubscribe({ teamId, ids: [webhookId] });
  const second = one.tick();
  // Any look after the unsubscribing finds the lane gone; then the requests in flight may end.
  await store.deliveries.lanes();
  for (const { response } of receiver.arrived) response.writeHead(204).end();
  await Promise.all([first, second]);
  assert.equal(receiver.arrived.length, LANE_CONCURRENCY);
});

test('stop waits for what is in flight, writes it down, and sends nothing more', async (t) => {
  const { store, teamId, lanes, subscribe, runs } = await setUp(t);
  const receiver = await endpoint(t, () => undefined);
  const webhookId = await subscribe(receiver.url);
  await runs(10);
  const one = lanes();
  await one.stop();
  one.start();
  one.start();
  await receiver.until(LANE_CONCURRENCY);
  let stopped = false;
  const stopping = one.stop().then(() => {
    stopped = true;
  });
  await store.deliveries.lanes();
  assert.equal(stopped, false);
  for (const { response } of receiver.arrived) response.writeHead(204).end();
  await stopping;
  await one.stop();
  assert.equal(receiver.arrived.length, LANE_CONCURRENCY);
  const listed = await store.deliveries.list({ teamId, webhookId, limit: 100 });
  const states = listed.map((delivery) => delivery.state).sort();
  assert.deepEqual(states, [...Array(LANE_CONCURRENCY).fill('delivered'), ...Array(6).fill('waiting')]);
});

test('stop gives an endpoint that hangs no longer than one attempt may take', async (t) => {
  const { store, teamId, lanes, subscribe, runs } = await setUp(t);
  const receiver = await endpoint(t, () => undefined);
  const webhookId = await subscribe(receiver.url);
  await runs();
  const one = lanes({ totalMs: 100 });
  one.start();
  await receiver.until(1);
  await one.stop();
  const [delivery] = await store.deliveries.list({ teamId, webhookId, limit: 1 });
  assert.deepEqual([delivery?.state, delivery?.attempt], ['waiting', 1]);
});

test('stop cuts off what takes longer than its grace: it stays due, without an attempt used', async (t) => {
  const { store, teamId, lanes, subscribe, runs } = await setUp(t);
  const receiver = await endpoint(t, () => undefined);
  const webhookId = await subscribe(receiver.url);
  await runs();
  const one = lanes({ stopGraceMs: 20 });
  one.start();
  await receiver.until(1);
  await one.stop();
  const [delivery] = await store.deliveries.list({ teamId, webhookId, limit: 1 });
  assert.deepEqual([delivery?.state, delivery?.attempt], ['waiting', 0]);
  one.start();
  await receiver.until(2);
  const [first, second] = receiver.arrived.map(({ headers }) => headers['webhook-id']);
  assert.equal(second, first);
});

test('looks after each commit of its own process without being nudged', async (t) => {
  const { lanes, subscribe, runs } = await setUp(t);
  const receiver = await endpoint(t, ({ response }) => response.writeHead(204).end());
  await subscribe(receiver.url);
  lanes().start();
  await runs();
  await receiver.until(1);
});

test('a store that is away for a while costs neither deliveries nor doubles', async (t) => {
  let away = 0;
  const failing = <T>(value: Promise<T>): Promise<T> => {
    away -= 1;
    return away < 0 ? value : Promise.reject(new Problem('database_unavailable'));
  };
  const { store, teamId, lanes, subscribe, runs } = await setUp(t, (real) => ({
    ...real,
    now: () => real.now(),
    watch: (listener) => real.watch(listener),
    close: () => real.close(),
    deliveries: {
      ...real.deliveries,
      lanes: () => failing(real.deliveries.lanes()),
      load: (input) => failing(real.deliveries.load(input)),
      settle: async (input) => {
        await failing(Promise.resolve());
        return real.deliveries.settle(input);
      },
    },
  }));
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
