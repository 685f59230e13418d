/** Stopping or killing a delivery engine, unsubscribing and erasing, while requests are in flight. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { endpoint, setUp } from '../../test/support/webhooks/lanes.ts';
import { START_LIMIT } from '../model/lane.ts';
import { HOLDER } from '../store/conformance/sending.ts';
import type { Store } from '../store/store.ts';

test('a delivery in flight when the process dies is sent again with the same id', async (t) => {
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

test('a webhook that is unsubscribed while deliveries are queued receives nothing more', async (t) => {
  const { store, teamId, lanes, subscribe, runs } = await setUp(t);
  const receiver = await endpoint(t, () => undefined);
  const webhookId = await subscribe(receiver.url);
  await runs(20);
  const one = lanes();
  const first = one.tick();
  await receiver.until(START_LIMIT);
  await store.webhooks.unsubscribe({ teamId, ids: [webhookId] });
  const second = one.tick();
  // Any check after the unsubscribe finds the lane gone; then the requests in flight may end.
  await store.deliveries.lanes(HOLDER);
  for (const { response } of receiver.arrived) response.writeHead(204).end();
  await Promise.all([first, second]);
  assert.equal(receiver.arrived.length, START_LIMIT);
});

test('a delivery queued in memory is sent as an erasure rewrote it', async (t) => {
  const { store, teamId, lanes, subscribe, runs } = await setUp(t);
  let answers = false;
  const receiver = await endpoint(t, ({ response }) => {
    if (answers) response.writeHead(204).end();
  });
  await subscribe(receiver.url);
  await runs(20);
  const one = lanes();
  const first = one.tick();
  await receiver.until(START_LIMIT);
  await erase(store, teamId);
  const second = one.tick();
  // Any check after the erasure finds that the lane's queue is stale; then the requests in flight may end.
  await store.deliveries.lanes(HOLDER);
  answers = true;
  for (const { response } of receiver.arrived) response.writeHead(204).end();
  await Promise.all([first, second]);
  assert.equal(receiver.arrived.length, 20);
  const isErased = receiver.arrived.map(({ body }) => body.includes('erased'));
  assert.deepEqual(isErased, [...Array(START_LIMIT).fill(false), ...Array(20 - START_LIMIT).fill(true)]);
});

test('a delivery loaded during an erasure is sent as the erasure rewrote it', async (t) => {
  const { store, teamId, lanes, subscribe, runs } = await setUp(t);
  const receiver = await endpoint(t, ({ response }) => response.writeHead(204).end());
  await subscribe(receiver.url);
  await runs();
  const read = Promise.withResolvers<void>();
  const late = Promise.withResolvers<void>();
  const load: Store['deliveries']['load'] = async (input) => {
    const found = await store.deliveries.load(input);
    read.resolve();
    await late.promise;
    return found;
  };
  const one = lanes({ store: { ...store, deliveries: { ...store.deliveries, load } } });
  const first = one.tick();
  await read.promise;
  await erase(store, teamId);
  const second = one.tick();
  // Reads of SQLite end within their turn: the check after the erasure has its result.
  await new Promise((later) => setImmediate(later));
  late.resolve();
  await Promise.all([first, second]);
  assert.deepEqual(
    receiver.arrived.map(({ body }) => body.includes('erased')),
    [true],
  );
});

test('stop waits for requests in flight, settles them, and sends nothing more', async (t) => {
  const { store, teamId, lanes, subscribe, runs } = await setUp(t);
  const receiver = await endpoint(t, () => undefined);
  const webhookId = await subscribe(receiver.url);
  await runs(10);
  const one = lanes();
  await one.stop();
  one.start();
  one.start();
  await receiver.until(START_LIMIT);
  let stopped = false;
  const stopping = one.stop().then(() => {
    stopped = true;
  });
  await store.deliveries.lanes(HOLDER);
  assert.equal(stopped, false);
  for (const { response } of receiver.arrived) response.writeHead(204).end();
  await stopping;
  await one.stop();
  assert.equal(receiver.arrived.length, START_LIMIT);
  const listed = await store.deliveries.list({ teamId, webhookId, limit: 100 });
  const states = listed.map((delivery) => delivery.state).sort();
  assert.deepEqual(states, [...Array(START_LIMIT).fill('delivered'), ...Array(6).fill('waiting')]);
});

test('stop does not wait longer than the timeout of an attempt', async (t) => {
  const { store, teamId, lanes, subscribe, runs } = await setUp(t);
  const receiver = await endpoint(t, () => undefined);
  const webhookId = await subscribe(receiver.url, ['workflow_queued'], { timeoutMs: 100 });
  await runs();
  const one = lanes();
  one.start();
  await receiver.until(1);
  await one.stop();
  const [delivery] = await store.deliveries.list({ teamId, webhookId, limit: 1 });
  assert.deepEqual([delivery?.state, delivery?.attempt], ['waiting', 1]);
});

test('stop aborts requests after the grace period: their deliveries stay due, and use no attempt', async (t) => {
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

test('stop waits until the last attempt has paused its webhook', async (t) => {
  const asked = Promise.withResolvers<void>();
  const mayPause = Promise.withResolvers<void>();
  const { lanes, subscribe, runs, advance } = await setUp(t, {
    wrap: (real) => ({
      ...real,
      webhooks: {
        ...real.webhooks,
        async pause(input) {
          asked.resolve();
          await mayPause.promise;
          return real.webhooks.pause(input);
        },
      },
    }),
  });
  let isLast = false;
  const receiver = await endpoint(t, ({ response }) => {
    if (!isLast) response.writeHead(500).end();
  });
  await subscribe(receiver.url);
  const one = lanes();
  for (let day = 0; day < 5; day++) {
    await runs();
    await one.tick();
    advance(24 * 3_600_000);
  }
  isLast = true;
  await runs();
  const before = receiver.arrived.length;
  one.start();
  await receiver.until(before + 1);
  let stopped = false;
  const stopping = one.stop().then(() => {
    stopped = true;
  });
  for (const { response } of receiver.arrived) if (!response.writableEnded) response.writeHead(500).end();
  await asked.promise;
  for (let turn = 0; turn < 100; turn++) await new Promise(setImmediate);
  const stoppedEarly = stopped;
  mayPause.resolve();
  await stopping;
  assert.equal(stoppedEarly, false);
});

/** Removes the name of the workflow from every event. */
async function erase(store: Store, teamId: string): Promise<void> {
  const place = 'event';
  const { texts } = await store.erasure.scanTexts({
    teamId,
    workflowId: null,
    place,
    needles: ['"'],
    after: null,
  });
  const erased = texts.map(({ key, text }) => ({ key, was: text, text: text.replace('people', 'erased') }));
  assert.equal(await store.erasure.rewrite({ teamId, place, texts: erased }), texts.length);
}
