/** Failing endpoints do not affect others. Some of the real receivers never respond, or return errors. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { test } from 'node:test';
import { type Arrived, endpoint, setUp } from '../../test/support/webhooks/lanes.ts';
import { MAX_LIMIT, START_LIMIT } from '../model/lane.ts';
import { HOLDER } from '../store/conformance/sending.ts';

const well = ({ response }: Arrived) => response.writeHead(204).end();

/** What five of fifty endpoints do. */
const MISBEHAVIOURS: Record<string, (arrived: Arrived) => void> = {
  hang: () => undefined,
  drip: ({ response }) => response.writeHead(200).write('.'),
  reset: ({ response }) => response.socket?.resetAndDestroy(),
  'answer 500': ({ response }) => response.writeHead(500).end(),
};

for (const [what, misbehave] of Object.entries(MISBEHAVIOURS)) {
  test(`5 of 50 endpoints ${what}: all deliveries to the others arrive in the meantime`, async (t) => {
    const { lanes, subscribe, runs } = await setUp(t);
    const bad = await endpoint(t, misbehave);
    const good = await endpoint(t, well);
    for (let n = 0; n < 50; n++) await subscribe(`${n < 5 ? bad.url : good.url}/${n}`);
    const one = lanes({ stopGraceMs: 0 });
    one.start();
    // Enough for the circuit breakers to open.
    await runs(12);
    await good.until(45 * 12);
    assert.equal(new Set(good.arrived.map(({ id, path }) => id + path)).size, 540);
    const open = bad.arrived.filter(({ response }) => !response.writableEnded && !response.destroyed);
    assert.ok(open.length <= 5 * START_LIMIT, `${open.length} are still open`);
  });
}

test('1,000 dead endpoints with 20 waiting deliveries each do not delay a healthy one', async (t) => {
  const { lanes, subscribe, runs, store } = await setUp(t);
  // Nothing listens on this port.
  const closed = createServer().listen(0, '127.0.0.1');
  await once(closed, 'listening');
  const { port } = closed.address() as AddressInfo;
  closed.close();
  const good = await endpoint(t, well);
  await Promise.all(Array.from({ length: 1_000 }, (_, n) => subscribe(`http://127.0.0.1:${port}/${n}`)));
  await runs(20);
  const due = await store.deliveries.lanes(HOLDER);
  assert.equal(due.length, 1_000);
  await subscribe(good.url);
  const one = lanes({ stopGraceMs: 0 });
  one.start();
  await runs(20);
  await good.until(20);
  assert.ok((await store.deliveries.lanes(HOLDER)).length > 0, 'dead endpoints still have due deliveries');
});

test('200 endpoints that start to hang at the same time delay the others by about a second', async (t) => {
  const { lanes, subscribe, runs, advance } = await setUp(t);
  const hanging = await endpoint(t, () => undefined);
  const good = await endpoint(t, well);
  for (let n = 0; n < 200; n++) await subscribe(`${hanging.url}/${n}`);
  await subscribe(good.url);
  await runs(4);
  const one = lanes({ stopGraceMs: 0 });
  one.start();
  // 800 requests would hang; 384 slots are available to them.
  await hanging.until(380);
  advance(1_000);
  await good.until(4);
  assert.ok(hanging.arrived.length <= 384 + 256, 'endpoints known to hang get no more requests');
});

test('endpoints that hang free their slots after a second, even if the clock is set back', async (t) => {
  const { lanes, subscribe, runs, advance } = await setUp(t);
  const hanging = await endpoint(t, () => undefined);
  const good = await endpoint(t, well);
  for (let n = 0; n < 200; n++) await subscribe(`${hanging.url}/${n}`);
  await runs(4);
  const one = lanes({ stopGraceMs: 0 });
  one.start();
  await hanging.until(380);
  advance(-1_800_000);
  advance(1_000);
  await subscribe(good.url);
  await runs();
  await good.until(1);
  assert.ok(!hanging.arrived.some(({ response }) => response.destroyed), 'no hanging request was aborted');
});

test('an endpoint that hangs delays no other webhook, and does not exceed the limit of its lane', async (t) => {
  const { lanes, subscribe, runs } = await setUp(t);
  const hanging = await endpoint(t, () => undefined);
  const healthy = await endpoint(t, well);
  await subscribe(hanging.url);
  await subscribe(healthy.url);
  await runs(10);
  const one = lanes({ stopGraceMs: 0 });
  one.start();
  await healthy.until(10);
  assert.ok(hanging.arrived.length <= START_LIMIT);
  await runs(5);
  await healthy.until(15);
  assert.ok(hanging.arrived.length <= START_LIMIT);
});

test('a fast endpoint gets up to 16 concurrent requests', async (t) => {
  const { lanes, subscribe, runs } = await setUp(t);
  let held: Arrived[] | undefined;
  const receiver = await endpoint(t, (arrived) => {
    if (held === undefined) well(arrived);
    else held.push(arrived);
  });
  await subscribe(receiver.url, ['*']);
  await runs(60);
  const one = lanes({ stopGraceMs: 0 });
  await one.tick();
  held = [];
  const before = receiver.arrived.length;
  await runs(20);
  const ticking = one.tick();
  await receiver.until(before + MAX_LIMIT);
  assert.equal(held.length, MAX_LIMIT);
  const waiting = held;
  held = undefined;
  for (const arrived of waiting) well(arrived);
  await ticking;
  assert.equal(receiver.arrived.length, 240);
});
