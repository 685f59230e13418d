/** Replays, expiry and deletion, with a real store. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { endpoint, setUp } from '../../test/support/webhooks/lanes.ts';
import { silentLogger } from '../observe/log.ts';
import { teamRetention } from '../store/retention.ts';
import { replayOutcome, webhookReplay } from './replay.ts';

const DAY_MS = 24 * 3_600_000;
const quiet = { log: silentLogger, random: () => 0.5, nodeId: 'local' };

test('replays a selection in parts, no faster than it is sent, each event once', async (t) => {
  const { store, teamId, lanes, subscribe, runs, advance } = await setUp(t);
  const receiver = await endpoint(t, ({ response }) => response.writeHead(204).end());
  const webhookId = await subscribe(receiver.url, ['*']);
  await runs(100);
  const one = lanes();
  await one.tick();
  const started = await store.deliveries.startReplay({ teamId, webhookId, states: ['delivered'] });
  assert.ok(started);
  const replay = webhookReplay({ store, ...quiet });
  await replay.tick();
  assert.equal((await store.deliveries.getReplay({ teamId, id: started.id }))?.made, 256);
  assert.equal((await store.deliveries.getReplay({ teamId, id: started.id }))?.state, 'running');
  advance(1_000);
  await one.tick();
  await replay.tick();
  advance(1_000);
  await one.tick();
  const done = await store.deliveries.getReplay({ teamId, id: started.id });
  assert.deepEqual([done?.state, done?.made], ['done', 300]);
  assert.equal(receiver.arrived.length, 600);
  assert.equal(new Set(receiver.arrived.map(({ id }) => id)).size, 300);
});

test('counts an attempt that was running when the replay made its delivery due', async (t) => {
  const { store, teamId, lanes, subscribe, runs, advance } = await setUp(t);
  let isHeld = false;
  const arrived = Promise.withResolvers<void>();
  const release = Promise.withResolvers<void>();
  const receiver = await endpoint(t, async ({ response }) => {
    if (isHeld) {
      arrived.resolve();
      await release.promise;
    }
    response.writeHead(401).end();
  });
  const webhookId = await subscribe(receiver.url, ['workflow_queued']);
  await runs(1);
  const one = lanes();
  await one.tick();
  isHeld = true;
  advance(10_000);
  const retried = one.tick();
  await arrived.promise;
  advance(10);
  const started = await store.deliveries.startReplay({ teamId, webhookId, states: ['waiting'] });
  assert.ok(started);
  await webhookReplay({ store, ...quiet }).tick();
  assert.equal((await replayOutcome(store, started)).underWay, 1);
  release.resolve();
  await retried;
  const { underWay, failed } = await replayOutcome(store, started);
  assert.deepEqual({ underWay, failed }, { underWay: 0, failed: 1 });
});

test('replays to an ordered webhook strictly in the order of the events, including waiting deliveries', async (t) => {
  const { store, teamId, lanes, subscribe, runs, advance } = await setUp(t);
  let status = 204;
  const receiver = await endpoint(t, ({ response }) => response.writeHead(status).end());
  const webhookId = await subscribe(receiver.url, ['workflow_queued'], { ordered: true });
  const one = lanes();
  await runs(40);
  await one.tick();
  status = 500;
  await runs(3);
  await one.tick();
  status = 204;
  const before = receiver.arrived.length;
  const started = await store.deliveries.startReplay({ teamId, webhookId, states: ['delivered', 'waiting'] });
  await one.tick();
  assert.equal(receiver.arrived.length, before, 'nothing is sent until all deliveries are queued in order');
  await webhookReplay({ store, ...quiet }).tick();
  assert.equal((await store.deliveries.getReplay({ teamId, id: started?.id ?? '' }))?.made, 43);
  advance(1_000);
  await one.tick();
  const sequences = receiver.arrived.slice(before).map(({ body }) => JSON.parse(body).sequence);
  assert.equal(sequences.length, 43);
  assert.deepEqual(
    sequences,
    sequences.toSorted((a, b) => a - b),
  );
  assert.equal((await store.deliveries.list({ teamId, webhookId, limit: 100 })).length, 43 + 40);
});

test('expires deliveries that waited longer than the schedule, and deletes old ones', async (t) => {
  const { store, teamId, subscribe, runs, states, advance, lanes } = await setUp(t);
  const receiver = await endpoint(t, ({ response }) => response.writeHead(204).end());
  const paused = await subscribe(receiver.url);
  const active = await subscribe(`${receiver.url}/2`);
  await store.webhooks.pause({ teamId, id: paused, reason: 'On request' });
  await runs(3);
  await lanes().tick();
  const retention = teamRetention(
    { store, ...quiet },
    { keepJobs: 9, jobsMs: DAY_MS, attemptsMs: 14 * DAY_MS, eventsMs: 30 * DAY_MS, auditMs: DAY_MS },
  );
  advance(3 * DAY_MS);
  await retention.tick();
  assert.deepEqual(await states(paused), { waiting: 3 });
  advance(DAY_MS);
  await retention.tick();
  assert.deepEqual(await states(paused), { dead: 3 });
  const [delivered] = await store.deliveries.list({ teamId, webhookId: active, limit: 1 });
  const attempts = async () => (await store.deliveries.get({ teamId, id: delivered?.id ?? '' }))?.attempts;
  assert.equal((await attempts())?.length, 1);
  advance(11 * DAY_MS);
  await retention.tick();
  assert.deepEqual(await attempts(), []);
  advance(16 * DAY_MS);
  await retention.tick();
  assert.deepEqual([await states(paused), await states(active)], [{}, {}]);
  const left = await store.events.list({ teamId, afterSequence: 0, limit: 10 });
  assert.equal(left.length, 1, 'the newest event has the last sequence of the team');
});
