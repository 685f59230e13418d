/** What a lane holds back, and for how long. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DueDelivery } from '../model/delivery.ts';
import { LANE_CONCURRENCY, Lane } from './lane.ts';

function newLane(): Lane {
  return new Lane({ teamId: 'team_1', webhookId: 'wh_1', url: 'http://receiver.example/', secret: 'sealed' });
}

function due(...ids: string[]): DueDelivery[] {
  return ids.map((id) => ({
    teamId: 'team_1',
    id,
    webhookId: 'wh_1',
    attempt: 0,
    eventId: `evt_${id}`,
    eventType: 'workflow_finished',
    body: '{}',
  }));
}

function ids(deliveries: DueDelivery[]): string[] {
  return deliveries.map((delivery) => delivery.id);
}

test('takes from a page only what is not in memory already', async () => {
  const lane = newLane();
  await lane.load(64, async () => due('a', 'b'));
  assert.equal(lane.take()?.id, 'a');
  assert.deepEqual(ids(await lane.load(64, async () => due('a', 'b', 'c'))), ['c']);
  assert.equal(lane.queued, 2);
});

test('a delivery may be loaded again after its release, as a retry is', async () => {
  const lane = newLane();
  await lane.load(64, async () => due('a'));
  lane.take();
  lane.landed();
  lane.release('a');
  assert.ok(lane.isEmpty);
  assert.deepEqual(ids(await lane.load(64, async () => due('a'))), ['a']);
});

test('a load begun before a settle has returned cannot bring the settled delivery back', async () => {
  const lane = newLane();
  await lane.load(64, async () => due('a'));
  lane.take();
  const page = Promise.withResolvers<DueDelivery[]>();
  const loading = lane.load(64, () => page.promise);
  lane.landed();
  lane.release('a');
  assert.ok(!lane.isEmpty);
  // It read the row as it was before the settle.
  page.resolve(due('a', 'b'));
  assert.deepEqual(ids(await loading), ['b']);
  assert.deepEqual(ids(await lane.load(64, async () => due('a'))), ['a']);
});

test('a failing load leaves the lane as it was', async () => {
  const lane = newLane();
  await lane.load(64, async () => due('a'));
  await assert.rejects(
    lane.load(64, async () => {
      throw new Error('away');
    }),
  );
  assert.deepEqual(ids(await lane.load(64, async () => due('a', 'b'))), ['b']);
});

test('loads once at a time', async () => {
  const lane = newLane();
  const page = Promise.withResolvers<DueDelivery[]>();
  const first = lane.load(64, () => page.promise);
  assert.deepEqual(await lane.load(64, async () => due('z')), []);
  page.resolve(due('a'));
  assert.deepEqual(ids(await first), ['a']);
});

test('sends a few at a time and gives back what it drops', async () => {
  const lane = newLane();
  await lane.load(5, async () => due('a', 'b', 'c', 'd', 'e'));
  assert.ok(lane.more);
  for (let taken = 0; taken < LANE_CONCURRENCY; taken += 1) {
    assert.ok(lane.canSend);
    lane.take();
  }
  assert.ok(!lane.canSend);
  lane.landed();
  assert.ok(lane.canSend);
  assert.deepEqual(ids(lane.drop()), ['e']);
  assert.ok(!lane.canSend);
  assert.deepEqual(ids(await lane.load(5, async () => due('d', 'e'))), ['e']);
  assert.ok(!lane.more);
});
