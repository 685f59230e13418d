/** What a lane loads and sends, and when. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type DeliveryClass, type DueDelivery, LONGEST_WAIT_MS } from '../model/delivery.ts';
import { type LaneHealth, MAX_REST_MS, START_LIMIT, startHealth } from '../model/lane.ts';
import { DEFAULT_WEBHOOK_SETTINGS, type WebhookSettings } from '../model/webhook.ts';
import { Lane } from './lane.ts';

const NAME = { teamId: 'team_1', webhookId: 'wh_1' };

function newLane(
  settings: Partial<WebhookSettings> = {},
  failingSince: number | null = null,
  health: Partial<LaneHealth> = {},
): Lane {
  const lane = new Lane(
    {
      ...NAME,
      epoch: 0,
      rewrites: 0,
      asked: null,
      url: 'http://receiver.example/',
      secrets: ['sealed'],
      headers: null,
      signingKey: null,
      settings: { ...DEFAULT_WEBHOOK_SETTINGS, ...settings },
      failingSince,
      breaker: null,
    },
    { ...startHealth(failingSince), ...health },
  );
  lane.mayHaveMore();
  return lane;
}

function due(...ids: string[]): DueDelivery[] {
  return ids.map((id, sequence) => one(id, { sequence }));
}

function one(id: string, changes: Partial<DueDelivery> & { class?: DeliveryClass } = {}): DueDelivery {
  return {
    ...NAME,
    id,
    origin: 'event',
    class: 'live',
    attempt: 0,
    dueAt: 0,
    createdAt: 0,
    eventId: `evt_${id}`,
    messageId: `evt_${id}`,
    eventType: 'workflow_finished',
    sequence: 1,
    body: '{}',
    rewrites: 0,
    trace: null,
    ...changes,
  };
}

function ids(deliveries: DueDelivery[] | undefined): string[] | undefined {
  return deliveries?.map((delivery) => delivery.id);
}

/** Loads from a table with these due deliveries. */
function load(lane: Lane, ...found: DueDelivery[]) {
  lane.mayHaveMore();
  return lane.load(99_999, async () => found);
}

test('takes only deliveries from a page that are not in memory', async () => {
  const lane = newLane();
  await load(lane, ...due('a', 'b'));
  assert.equal(lane.take(0)?.id, 'a');
  assert.deepEqual(ids(await load(lane, ...due('a', 'b', 'c'))), ['c']);
  assert.equal(lane.queued, 2);
});

test('a delivery can be loaded again after its release, as for a retry', async () => {
  const lane = newLane();
  await load(lane, ...due('a'));
  lane.take(0);
  lane.requestEnded();
  lane.release('a');
  assert.ok(lane.isEmpty);
  assert.deepEqual(ids(await load(lane, ...due('a'))), ['a']);
});

test('a load that started before a settlement cannot restore the settled delivery', async () => {
  const lane = newLane();
  await load(lane, ...due('a'));
  lane.take(0);
  const page = Promise.withResolvers<DueDelivery[]>();
  lane.mayHaveMore();
  const loading = lane.load(99_999, () => page.promise);
  lane.requestEnded();
  lane.release('a');
  assert.ok(!lane.isEmpty);
  // The load read the row before it was settled.
  page.resolve(due('a', 'b'));
  assert.deepEqual(ids(await loading), ['b']);
  assert.deepEqual(ids(await load(lane, ...due('a'))), ['a']);
});

test('a failing load leaves the lane as it was', async () => {
  const lane = newLane();
  await load(lane, ...due('a'));
  lane.mayHaveMore();
  await assert.rejects(
    lane.load(99_999, async () => {
      throw new Error('away');
    }),
  );
  assert.ok(lane.wantsMore);
  assert.deepEqual(ids(await load(lane, ...due('a', 'b'))), ['b']);
});

test('runs one load at a time, and notes that another one was requested', async () => {
  const lane = newLane();
  const page = Promise.withResolvers<DueDelivery[]>();
  const first = lane.load(99_999, () => page.promise);
  assert.equal(await load(lane, ...due('z')), undefined);
  assert.ok(lane.missed);
  page.resolve(due('a'));
  assert.deepEqual(ids(await first), ['a']);
});

test('requests more deliveries than it holds, and none while it has enough', async () => {
  const lane = newLane();
  const full = Array.from({ length: 128 }, (_, number) => one(`d${number}`));
  await load(lane, ...full);
  assert.ok(!lane.wantsMore || lane.queued <= 32);
  for (let taken = 0; taken < START_LIMIT; taken += 1) lane.take(0);
  let asked: number | undefined;
  lane.mayHaveMore();
  await lane.load(99_999, async (limits) => {
    asked = limits.live;
    return [];
  });
  assert.equal(asked, 0);
});

test('sends a few at a time and releases what it drops', async () => {
  const lane = newLane();
  await load(lane, ...due('a', 'b', 'c', 'd', 'e'));
  for (let taken = 0; taken < START_LIMIT; taken += 1) assert.ok(lane.take(0));
  assert.equal(lane.startsAt(0), Number.POSITIVE_INFINITY);
  assert.equal(lane.take(0), undefined);
  lane.requestEnded();
  assert.equal(lane.startsAt(0), 0);
  assert.deepEqual(ids(lane.drop()), ['e']);
  assert.deepEqual(ids(await load(lane, ...due('d', 'e'))), ['e']);
});

test('an ordered lane sends one delivery at a time, by sequence, and the next only after it is settled', async () => {
  const lane = newLane({ ordered: true });
  await load(lane, one('second', { sequence: 2 }), one('first', { sequence: 1, dueAt: 50, class: 'retry' }));
  assert.equal(lane.startsAt(0), 50);
  assert.equal(lane.take(49), undefined);
  assert.equal(lane.take(50)?.id, 'first');
  lane.requestEnded();
  assert.equal(lane.take(60), undefined, 'not settled yet');
  lane.release('first');
  assert.equal(lane.take(60)?.id, 'second');
});

test('an ordered lane does not load while a delivery is in flight', async () => {
  const lane = newLane({ ordered: true });
  await load(lane, one('first'));
  lane.take(0);
  assert.deepEqual(ids(await load(lane, one('second', { sequence: 2 }))), []);
  lane.release('first');
  lane.requestEnded();
  assert.deepEqual(ids(await load(lane, one('second', { sequence: 2 }))), ['second']);
});

test('a lane whose endpoint was failing starts with one request at a time', async () => {
  const lane = newLane({}, 1_000);
  await load(lane, ...due('a', 'b'));
  assert.ok(lane.slow);
  assert.ok(lane.take(0));
  assert.equal(lane.take(0), undefined);
});

test('a lane whose webhook was resumed starts over', () => {
  const lane = newLane({}, 1_000, { state: 'open', restsUntil: 99_000 });
  lane.update({ ...lane.due, failingSince: null }, 1);
  assert.deepEqual(
    [lane.health.state, lane.health.restsUntil, lane.health.failingSince],
    ['half_open', 0, null],
  );
});

test('a lane whose webhook has another URL forgets what it has learned', () => {
  const lane = newLane({}, 1_000, { state: 'open', restsUntil: 99_000, failures: 12 });
  lane.update({ ...lane.due, url: 'http://other.example/', failingSince: null }, 1);
  assert.deepEqual(lane.health, startHealth(null));
});

test('a read from before a failure was stored does not count as resumed', () => {
  const lane = newLane({}, null, { state: 'open' });
  lane.failingWritten(5);
  lane.update(lane.due, 4);
  assert.equal(lane.health.state, 'open');
  lane.update(lane.due, 6);
  assert.equal(lane.health.state, 'half_open');
});

test('setting the clock back prolongs no rate limit, rest or ordered wait', async () => {
  const rated = newLane({ ratePerSecond: 1 });
  await load(rated, ...due('a', 'b'));
  assert.equal(rated.take(9_000_000)?.id, 'a');
  rated.requestEnded();
  assert.equal(rated.startsAt(1_000_000), 1_001_000, 'a second, as always');
  assert.equal(rated.take(1_001_000)?.id, 'b');

  const resting = newLane({}, null, { state: 'open', restsUntil: 1_000_000 + MAX_REST_MS });
  await load(resting, ...due('a'));
  assert.equal(resting.startsAt(1_000_000), resting.health.restsUntil, 'a lane may rest for this long');
  assert.equal(resting.startsAt(999_999), 999_999);
  resting.postpone('another', 9_000_000);
  assert.equal(resting.take(1_000_000)?.id, 'a');

  const ordered = newLane({ ordered: true });
  await load(ordered, one('a', { dueAt: LONGEST_WAIT_MS + 1 }));
  assert.equal(ordered.startsAt(1), LONGEST_WAIT_MS + 1);
  assert.equal(ordered.take(0)?.id, 'a');
});

test('a requested delivery is looked for until it is no longer in the table', async () => {
  const lane = newLane();
  const ask = (at: number) => lane.update({ ...lane.due, asked: { at, deliveryId: 'far' } }, at);
  const looked: (string | undefined)[] = [];
  const page = (...found: DueDelivery[]) => {
    lane.mayHaveMore();
    return lane.load(99_999, async (_limits, _held, first) => {
      looked.push(first);
      return found;
    });
  };
  ask(1);
  await page(one('near'), one('far'));
  assert.equal(lane.take(1)?.id, 'far');
  ask(2);
  await page();
  lane.release('far');
  await page();
  await page();
  assert.deepEqual(
    looked,
    ['far', 'far', 'far', undefined],
    'the delivery may become due again while it is in flight',
  );

  ask(3);
  const reading = Promise.withResolvers<DueDelivery[]>();
  lane.mayHaveMore();
  const loaded = lane.load(99_999, () => reading.promise);
  ask(4);
  reading.resolve([]);
  await loaded;
  await page(one('far'));
  assert.equal(looked.at(-1), 'far', 'the page was read before the new request');
});
