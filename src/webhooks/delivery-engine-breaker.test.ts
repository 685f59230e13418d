/** Endpoints that are down and recover, that ask for a pause, or whose webhook is paused. The test controls the clock. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { type Arrived, endpoint, setUp } from '../../test/support/webhooks/lanes.ts';
import { createSealer } from '../std/seal.ts';
import { newSealedSecret } from './sealed.ts';

const well = ({ response }: Arrived) => response.writeHead(204).end();
const broken = ({ response }: Arrived) => response.writeHead(500).end();
const DAY_MS = 24 * 3_600_000;

/** An endpoint that measures its number of concurrent requests. */
function counting(answer: (arrived: Arrived) => void) {
  const seen = { open: 0, most: 0 };
  return {
    seen,
    answer(arrived: Arrived): void {
      seen.open += 1;
      seen.most = Math.max(seen.most, seen.open);
      setImmediate(() => {
        seen.open -= 1;
        answer(arrived);
      });
    },
  };
}

test('an endpoint that is down gets one probe at a time, and waiting deliveries use no attempts', async (t) => {
  const { store, teamId, lanes, subscribe, runs, advance } = await setUp(t);
  const receiver = await endpoint(t, broken);
  const webhookId = await subscribe(receiver.url);
  await runs(40);
  const one = lanes();
  await one.tick();
  const burst = receiver.arrived.length;
  assert.ok(burst >= 10 && burst <= 10 + 4, `${burst} requests until it opened`);
  // With the jitter of 10 %: 33 s, 66 s, 132 s.
  for (const [waitMs, probes] of [
    [32_999, 0],
    [1, 1],
    [65_999, 1],
    [1, 2],
    [131_999, 2],
    [1, 3],
  ] as const) {
    advance(waitMs);
    await one.tick();
    assert.equal(receiver.arrived.length, burst + probes);
  }
  const listed = await store.deliveries.list({ teamId, webhookId, limit: 100 });
  assert.equal(
    listed.reduce((sum, { attempt }) => sum + attempt, 0),
    burst + 3,
  );
});

test('a delivery sent by hand is the immediate probe of an endpoint that is down, and the others follow its success', async (t) => {
  const { store, teamId, lanes, subscribe, runs, states, advance } = await setUp(t);
  let isUp = false;
  const receiver = await endpoint(t, (arrived) => (isUp ? well(arrived) : broken(arrived)));
  const webhookId = await subscribe(receiver.url);
  await runs(40);
  const one = lanes();
  await one.tick();
  const burst = receiver.arrived.length;
  advance(1_000);
  await one.tick();
  assert.equal(receiver.arrived.length, burst, 'the lane rests');
  const ask = async () => {
    // The newest of many waiting deliveries: far behind what the lane would load.
    const [newest] = await store.deliveries.list({ teamId, webhookId, states: ['waiting'], limit: 1 });
    const made = await store.deliveries.replay({ teamId, ids: [newest?.id ?? ''] });
    assert.deepEqual(made, [{ id: newest?.id, isNew: false, attempt: newest?.attempt }]);
    await one.tick();
    return newest?.eventId;
  };
  assert.equal(await ask(), receiver.arrived[burst]?.id);
  assert.equal(receiver.arrived.length, burst + 1, 'one probe, and the lane rests again');
  advance(1_000);
  await one.tick();
  assert.equal(receiver.arrived.length, burst + 1);
  isUp = true;
  assert.equal(await ask(), receiver.arrived[burst + 1]?.id);
  advance(400_000);
  await one.tick();
  assert.deepEqual(await states(webhookId), { delivered: 40 });
  assert.equal((await store.deliveries.list({ teamId, webhookId, limit: 100 })).length, 40);
});

test('an endpoint that recovers gets one request, then two, then four', async (t) => {
  const { lanes, subscribe, runs, states, advance } = await setUp(t);
  let isUp = false;
  const { seen, answer } = counting((arrived) => (isUp ? well(arrived) : broken(arrived)));
  const receiver = await endpoint(t, answer);
  const webhookId = await subscribe(receiver.url);
  await runs(60);
  const one = lanes();
  await one.tick();
  const atOnce: number[] = [];
  isUp = true;
  advance(33_000);
  seen.most = 0;
  const before = receiver.arrived.length;
  const ticking = one.tick();
  for (const count of [1, 2, 4]) {
    await receiver.until(before + count);
    atOnce.push(seen.most);
  }
  await ticking;
  assert.deepEqual(atOnce.slice(0, 2), [1, 1]);
  assert.ok((atOnce[2] ?? 0) <= 2);
  assert.ok(seen.most <= 16);
  advance(400_000);
  await one.tick();
  assert.deepEqual(await states(webhookId), { delivered: 60 });
});

test('after a restart, a failing endpoint gets one request at first', async (t) => {
  const { lanes, subscribe, runs, advance } = await setUp(t);
  let isUp = false;
  const { seen, answer } = counting((arrived) => (isUp ? well(arrived) : broken(arrived)));
  const receiver = await endpoint(t, answer);
  await subscribe(receiver.url);
  await runs(30);
  await lanes().tick();
  advance(3_600_000);
  isUp = true;
  seen.most = 0;
  const before = receiver.arrived.length;
  const ticking = lanes().tick();
  await receiver.until(before + 2);
  assert.equal(seen.most, 1);
  await ticking;
});

test('Retry-After makes the whole lane rest, and waiting deliveries use no attempts', async (t) => {
  const { store, teamId, lanes, subscribe, runs, advance } = await setUp(t);
  let asks: Record<string, string> | undefined = { 'retry-after': '600' };
  const receiver = await endpoint(t, ({ response }) => {
    response.writeHead(asks === undefined ? 204 : 429, asks).end();
  });
  const webhookId = await subscribe(receiver.url);
  await runs(20);
  const one = lanes();
  await one.tick();
  const first = receiver.arrived.length;
  assert.ok(first <= 4, `${first} were under way`);
  advance(599_000);
  await one.tick();
  assert.equal(receiver.arrived.length, first);
  const listed = await store.deliveries.list({ teamId, webhookId, limit: 100 });
  assert.equal(
    listed.reduce((sum, { attempt }) => sum + attempt, 0),
    first,
  );
  asks = undefined;
  advance(2_000);
  await one.tick();
  assert.equal(receiver.arrived.length, first + 20);
});

test('the store is not asked when deliveries are due while some are due in a lane that rests', async (t) => {
  const looked = Promise.withResolvers<void>();
  const asked = Promise.withResolvers<void>();
  let looks = 0;
  let questions = 0;
  const { lanes, subscribe, runs, advance } = await setUp(t, {
    wrap: (real) => ({
      ...real,
      deliveries: {
        ...real.deliveries,
        lanes(holder) {
          looks += 1;
          if (looks === 4) looked.resolve();
          return real.deliveries.lanes(holder);
        },
        nextDueAt() {
          questions += 1;
          asked.resolve();
          return real.deliveries.nextDueAt();
        },
      },
    }),
  });
  let status = 429;
  const receiver = await endpoint(t, ({ response }) => {
    response.writeHead(status, status === 429 ? { 'retry-after': '600' } : {}).end();
  });
  await subscribe(receiver.url);
  await runs(20);
  const one = lanes();
  await one.tick();
  one.start();
  await looked.promise;
  assert.equal(questions, 0);
  status = 204;
  advance(601_000);
  await one.tick();
  await asked.promise;
});

test('a webhook without success for five days is paused, and another one is notified why', async (t) => {
  const { store, teamId, lanes, subscribe, runs, states, advance } = await setUp(t);
  let isUp = false;
  const failing = await endpoint(t, (arrived) => (isUp ? well(arrived) : broken(arrived)));
  const other = await endpoint(t, well);
  const id = await subscribe(failing.url);
  await subscribe(other.url, ['webhook_paused']);
  const one = lanes();
  for (let day = 0; day <= 5; day++) {
    assert.equal((await store.webhooks.get({ teamId, id }))?.state, 'active');
    await runs();
    await one.tick();
    advance(DAY_MS);
  }
  const webhook = await store.webhooks.get({ teamId, id });
  assert.equal(webhook?.state, 'paused');
  assert.match(webhook?.pausedReason ?? '', /five days.*HTTP 500/);
  await one.tick();
  assert.equal(other.arrived.length, 1);
  assert.match(other.arrived[0]?.body ?? '', /"webhook_paused"/);
  const before = failing.arrived.length;
  await runs();
  await one.tick();
  assert.equal(failing.arrived.length, before, 'due deliveries wait');
  isUp = true;
  await store.webhooks.resume({ teamId, id });
  await one.tick();
  assert.ok(((await states(id)).delivered ?? 0) > 0, 'sending continues immediately');
});

test('a webhook whose secret cannot be decrypted rests for a minute, without attempts, and blocks no other webhook', async (t) => {
  const { store, teamId, lanes, subscribe, runs, states, advance } = await setUp(t);
  const receiver = await endpoint(t, well);
  const other = await endpoint(t, well);
  const id = await subscribe(receiver.url);
  await subscribe(other.url);
  const foreign = newSealedSecret(createSealer(randomBytes(32)), teamId);
  await store.webhooks.rotate({ teamId, id, secret: foreign, overlapMs: 0 });
  const said: unknown[] = [];
  const one = lanes({ onError: (fields) => said.push(fields) });
  await runs(5);
  for (let look = 0; look < 5; look++) await one.tick();
  advance(61_000);
  await one.tick();
  assert.equal(said.length, 1);
  assert.equal(other.arrived.length, 5);
  assert.equal(receiver.arrived.length, 0);
  assert.deepEqual(await states(id), { waiting: 5 });
});

test('stores whether an endpoint fails only when that changes', async (t) => {
  const { store, teamId, lanes, subscribe, runs, advance, now } = await setUp(t);
  let isUp = true;
  const receiver = await endpoint(t, (arrived) => (isUp ? well(arrived) : broken(arrived)));
  const id = await subscribe(receiver.url);
  const one = lanes();
  const health = async () => {
    const webhook = await store.webhooks.get({ teamId, id });
    return [webhook?.failingSince, webhook?.lastSuccessAt];
  };
  await runs();
  await one.tick();
  const first = now();
  assert.deepEqual(await health(), [null, first]);
  advance(30_000);
  await runs();
  await one.tick();
  assert.deepEqual(await health(), [null, first], 'not written again within a minute');
  isUp = false;
  await runs();
  await one.tick();
  const failedAt = now();
  advance(1_000);
  await runs();
  await one.tick();
  assert.deepEqual(await health(), [failedAt, first]);
  isUp = true;
  advance(10_000);
  await one.tick();
  assert.deepEqual(await health(), [null, now()]);
});

test('an attempt that cannot be settled is repeated after a minute, and blocks nothing permanently', async (t) => {
  let refuses = true;
  const { store, teamId, lanes, subscribe, runs, advance } = await setUp(t, {
    wrap: (real) => ({
      ...real,
      deliveries: {
        ...real.deliveries,
        settle: async (input) => {
          if (refuses) throw new Error('constraint failed');
          return real.deliveries.settle(input);
        },
      },
    }),
  });
  const receiver = await endpoint(t, ({ response }) => response.writeHead(204).end());
  const webhookId = await subscribe(receiver.url, ['workflow_queued'], { ordered: true });
  await runs(2);
  const one = lanes();
  await one.tick();
  assert.equal(receiver.arrived.length, 1);
  refuses = false;
  advance(59_999);
  await one.tick();
  assert.equal(receiver.arrived.length, 1);
  advance(1);
  await one.tick();
  const [first, again, second] = receiver.arrived.map(({ id }) => id);
  assert.equal(again, first);
  assert.notEqual(second, first);
  const listed = await store.deliveries.list({ teamId, webhookId, limit: 9 });
  assert.deepEqual(
    listed.map(({ state }) => state),
    ['delivered', 'delivered'],
  );
});

test('setting the clock back by days delays no waiting delivery', async (t) => {
  const { store, teamId, lanes, subscribe, runs, advance } = await setUp(t);
  let isUp = true;
  const receiver = await endpoint(t, ({ response }) => response.writeHead(isUp ? 204 : 503).end());
  for (const [path, settings] of [
    ['rate', { ratePerSecond: 1 }],
    ['order', { ordered: true }],
    ['rest', {}],
  ] as const) {
    await subscribe(`${receiver.url}/${path}`, ['workflow_queued'], settings);
  }
  const one = lanes();
  await runs();
  await one.tick();
  isUp = false;
  await runs(12);
  await one.tick();
  isUp = true;
  advance(-3 * 24 * 3_600_000);
  for (let n = 0; n < 40; n++) {
    advance(1_000);
    await one.tick();
  }
  for (const { id } of await store.webhooks.list({ teamId, limit: 100 })) {
    const waiting = await store.deliveries.list({ teamId, webhookId: id, states: ['waiting'], limit: 99 });
    assert.deepEqual(waiting, []);
  }
});

test('stores why and until when deliveries are held back, and the end of it', async (t) => {
  const { store, teamId, lanes, subscribe, runs, advance, now } = await setUp(t);
  let isUp = false;
  const receiver = await endpoint(t, (arrived) => (isUp ? well(arrived) : broken(arrived)));
  const id = await subscribe(receiver.url);
  const breaker = async () => (await store.webhooks.get({ teamId, id }))?.breaker;
  assert.equal(await breaker(), null);
  await runs(40);
  const one = lanes();
  await one.tick();
  const since = now();
  const opened = await breaker();
  const expected = { state: 'open', since, until: since + 33_000, failures: 0, openedAt: since };
  assert.deepEqual({ ...opened, failures: 0 }, expected);
  assert.ok((opened?.failures ?? 0) >= 10);
  assert.equal((await store.deliveries.lanes({ nodeId: 'node-a', leaseMs: 15_000, limit: 9 })).length, 1);

  advance(33_000);
  await one.tick();
  const probed = await breaker();
  assert.deepEqual([probed?.state, probed?.since, probed?.until], ['open', since, now() + 66_000]);
  assert.equal(probed?.failures, receiver.arrived.length);

  isUp = true;
  advance(66_000);
  await one.tick();
  assert.equal(await breaker(), null);
});

test('stores a pause that the endpoint asked for', async (t) => {
  const { store, teamId, lanes, subscribe, runs, now, advance } = await setUp(t);
  let isBusy = true;
  const receiver = await endpoint(t, ({ response }) =>
    response.writeHead(isBusy ? 429 : 204, isBusy ? { 'retry-after': '120' } : {}).end(),
  );
  const id = await subscribe(receiver.url);
  const breaker = async () => (await store.webhooks.get({ teamId, id }))?.breaker;
  await runs();
  const one = lanes();
  await one.tick();
  assert.deepEqual(await breaker(), { state: 'closed', since: now(), until: now() + 120_000, failures: 1 });
  isBusy = false;
  advance(600_000);
  await one.tick();
  assert.equal(await breaker(), null);
});
