/** Ordered webhooks, rate limits, and priorities within a lane. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Arrived, endpoint, setUp } from '../../test/support/webhooks/lanes.ts';
import { allSteps } from '../store/conformance/setup.ts';

const well = ({ response }: Arrived) => response.writeHead(204).end();

function sequences(arrived: readonly Arrived[]): number[] {
  return arrived.map(({ body }) => JSON.parse(body).sequence);
}

test('an ordered webhook gets its events one at a time in their order', async (t) => {
  const { lanes, subscribe, runs } = await setUp(t);
  let open = 0;
  const receiver = await endpoint(t, ({ response }) => {
    assert.equal(++open, 1, 'one at a time');
    setImmediate(() => {
      open -= 1;
      response.writeHead(204).end();
    });
  });
  await subscribe(receiver.url, ['*'], { ordered: true });
  await runs(20);
  const one = lanes();
  await one.tick();
  await runs(5);
  await one.tick();
  const found = sequences(receiver.arrived);
  assert.equal(found.length, 75);
  assert.deepEqual(
    found,
    found.toSorted((a, b) => a - b),
  );
});

test('a failing delivery blocks only its own ordered webhook, until it is delivered', async (t) => {
  const { lanes, subscribe, runs, advance } = await setUp(t);
  let failures = 2;
  const receiver = await endpoint(t, ({ response }) => {
    failures -= 1;
    response.writeHead(failures >= 0 ? 500 : 204).end();
  });
  const other = await endpoint(t, well);
  await subscribe(receiver.url, ['workflow_queued'], { ordered: true });
  await subscribe(other.url);
  await runs(5);
  const one = lanes();
  await one.tick();
  assert.equal(receiver.arrived.length, 1);
  assert.equal(other.arrived.length, 5);
  await one.tick();
  assert.equal(receiver.arrived.length, 1, 'later deliveries wait');
  advance(5_500);
  await one.tick();
  assert.equal(receiver.arrived.length, 2);
  advance(330_000);
  await one.tick();
  const found = sequences(receiver.arrived);
  assert.equal(found.length, 7);
  assert.equal(new Set(found.slice(0, 3)).size, 1);
  assert.deepEqual(
    found,
    found.toSorted((a, b) => a - b),
  );
});

test('an ordered webhook continues after a delivery is dead', async (t) => {
  const { store, teamId, lanes, subscribe, runs, states, advance, now } = await setUp(t);
  let first = '';
  const receiver = await endpoint(t, ({ id, response }) => {
    first ||= id;
    response.writeHead(id === first ? 400 : 204).end();
  });
  const webhookId = await subscribe(receiver.url, ['workflow_queued'], { ordered: true });
  await runs(3);
  const one = lanes();
  for (let look = 0; look < 10; look++) {
    await one.tick();
    const listed = await store.deliveries.list({ teamId, webhookId, limit: 10 });
    const tried = listed.find(({ state, attempt }) => state === 'waiting' && attempt > 0);
    advance((tried?.nextAt ?? now()) - now());
  }
  assert.deepEqual(await states(webhookId), { dead: 1, delivered: 2 });
});

test('a webhook with a rate limit gets no more requests than that', async (t) => {
  const { lanes, subscribe, runs, advance } = await setUp(t);
  const receiver = await endpoint(t, well);
  await subscribe(receiver.url, ['workflow_queued'], { ratePerSecond: 2 });
  await runs(10);
  const one = lanes();
  await one.tick();
  assert.equal(receiver.arrived.length, 1);
  for (let half = 2; half <= 10; half++) {
    advance(499);
    await one.tick();
    assert.equal(receiver.arrived.length, half - 1);
    advance(1);
    await one.tick();
    assert.equal(receiver.arrived.length, half);
  }
});

test('a started lane with a rate limit wakes up by itself', async (t) => {
  const { lanes, subscribe, runs } = await setUp(t, { realTime: true });
  const receiver = await endpoint(t, well);
  await subscribe(receiver.url, ['workflow_queued'], { ratePerSecond: 50 });
  await runs(10);
  lanes().start();
  // With 500 ms between two checks, this would take 5 s.
  await receiver.until(10);
});

test('live deliveries precede retries and replays, which do not starve', async (t) => {
  const { store, teamId, lanes, subscribe, runs, advance } = await setUp(t);
  let open: Arrived[] = [];
  let answer = well;
  const receiver = await endpoint(t, (arrived) => answer(arrived));
  const webhookId = await subscribe(receiver.url, ['workflow_queued'], { ordered: false });
  await runs(10);
  const one = lanes();
  await one.tick();
  await store.deliveries.startReplay({ teamId, webhookId, states: ['delivered'] });
  await allSteps(store.deliveries.stepReplays, { limit: 10, waiting: 10 });
  await runs(10);
  answer = ({ response }) => response.writeHead(400).end();
  await one.tick();
  const old = new Set(receiver.arrived.map(({ id }) => id));
  advance(6_000);
  await runs(60);
  answer = (arrived) => {
    open.push(arrived);
    return arrived.response;
  };
  const before = receiver.arrived.length;
  const ticking = one.tick();
  for (let answered = 0; answered < 80; ) {
    await receiver.until(before + answered + 1);
    const some = open;
    open = [];
    for (const arrived of some) well(arrived);
    answered += some.length;
  }
  await ticking;
  const order = receiver.arrived.slice(before).map(({ id }) => (old.has(id) ? 'old' : 'new'));
  assert.equal(order.length, 80);
  const whileLive = order.slice(0, order.lastIndexOf('new') + 1);
  const lower = whileLive.filter((kind) => kind === 'old').length;
  assert.ok(lower >= 6 && lower <= 12, `${lower} of ${whileLive.length} were not live`);
});
