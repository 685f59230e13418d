/** Searches of a team's lanes that start at the last sequence number seen, and searches of known lanes only. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makeDatabase } from '../../../test/support/postgres.ts';
import { silentLogger } from '../../observe/log.ts';
import { FAILED, OK, settlement, subscribe } from '../conformance/sending.ts';
import { makeWorkflow } from '../conformance/setup.ts';
import { openStore } from '../open.ts';
import { openPool } from './connections.ts';
import { Database } from './database.ts';
import { lanes, load } from './lanes.ts';
import { LaneBounds } from './outbox.ts';

const LANE = { teamId: 't', webhookId: 'w' };
const LARGE = async () => true;

test('a slow full search is not repeated for 20 times its duration, unless the index is small', async () => {
  let elapsedMs = 0;
  const bounds = new LaneBounds(() => elapsedMs);
  const all = { afresh: false, known: undefined };
  bounds.note(LANE, 7);
  assert.deepEqual(bounds.next('t', 1), { ...all, afresh: true });
  await bounds.rest('t', 100, async () => false);
  assert.deepEqual(bounds.next('t', 1), all);
  await bounds.rest('t', 1, LARGE);
  assert.deepEqual(bounds.next('t', 1), all);
  bounds.note(LANE, 8);
  await bounds.rest('t', 100, LARGE);
  elapsedMs += 1_999;
  assert.deepEqual(bounds.next('t', 1), { afresh: false, known: new Map([['w', 8]]) });
  elapsedMs += 1;
  assert.deepEqual(bounds.next('t', 1), all);
});

test('every 30 s, and after the clock was set back, a search uses no bounds', async () => {
  let elapsedMs = 0;
  const bounds = new LaneBounds(() => elapsedMs);
  const afresh: number[] = [];
  for (; elapsedMs <= 60_000; elapsedMs += 500) {
    if (bounds.next('t', elapsedMs).afresh) {
      assert.equal(bounds.seen(LANE), 0);
      afresh.push(elapsedMs);
    }
    bounds.note(LANE, 1 + elapsedMs);
  }
  assert.deepEqual(afresh, [0, 30_000, 60_000]);
  await bounds.rest('t', 100, LARGE);
  assert.deepEqual(bounds.next('t', 1), { afresh: true, known: undefined });
  assert.equal(bounds.seen(LANE), 0);
});

test('a search of known lanes covers the 1,000 most recently used', async () => {
  const bounds = new LaneBounds(() => 0);
  bounds.next('t', 1);
  for (let n = 0; n < 3_000; n += 1) bounds.note({ teamId: 't', webhookId: `w${n}` });
  bounds.note({ teamId: 't', webhookId: 'w7' }, 3);
  await bounds.rest('t', 100, LARGE);
  const known = [...(bounds.next('t', 1).known ?? [])];
  assert.equal(known.length, 1_000);
  assert.deepEqual(known.at(-1), ['w7', 3]);
});

test('remembers the 10,000 teams and lanes that were used last', () => {
  const bounds = new LaneBounds(() => 0);
  for (let n = 0; n < 6_000; n += 1) bounds.note({ teamId: `t${n}`, webhookId: 'w' }, 7);
  const remembered = Array.from({ length: 6_000 }, (_, n) =>
    bounds.seen({ teamId: `t${n}`, webhookId: 'w' }),
  );
  assert.deepEqual(
    remembered,
    remembered.map((_, n) => (n < 1_000 ? 0 : 7)),
  );
  for (let n = 0; n < 12_000; n += 1) bounds.note({ teamId: 'large', webhookId: `w${n}` }, 3);
  assert.equal(bounds.seen({ teamId: 'large', webhookId: 'w2000' }), 0);
  assert.equal(bounds.seen({ teamId: 'large', webhookId: 'w2001' }), 3);
});

test('the sequence number seen never decreases', () => {
  const bounds = new LaneBounds();
  bounds.note(LANE, 5);
  bounds.note(LANE, 3);
  bounds.note(LANE);
  assert.equal(bounds.seen(LANE), 5);
});

test('a search after the sequence number seen finds everything that a full search finds', async (t) => {
  const { url, drop } = await makeDatabase();
  const nowMs = Date.UTC(2026, 0, 1);
  const store = await openStore(url, { clock: () => nowMs, publicUrl: () => '', log: silentLogger });
  const pool = openPool({ url, size: 1, log: silentLogger });
  t.after(async () => {
    await Promise.all([store.close(), pool.end()]);
    await drop();
  });
  const view = { db: new Database(pool), now: nowMs };
  const at = await makeWorkflow(store);
  const { teamId } = at;
  for (const ordered of [false, true]) {
    const webhookId = await subscribe(store, at, [`${ordered}`], { ordered } as never);
    const name = { teamId, webhookId };
    const limits = { live: 9, retry: 9, replay: 9 };
    const loaded = (seen: number) => load(view, { ...name, limits, ordered, seen });
    const isFound = async (seen: number | undefined) => {
      const known = seen === undefined ? undefined : new Map([[webhookId, seen]]);
      const found = await lanes(view, { teamId, nodeId: 'a', afresh: false, known });
      return found.some((one) => one.webhookId === webhookId);
    };
    const send = () => store.webhooks.test({ teamId, id: webhookId });

    for (let n = 0; n < 3; n += 1) await send();
    const first = await loaded(0);
    const sequences = first.due.map(({ sequence }) => sequence);
    assert.equal(first.seen, (sequences[0] as number) - 1);
    // The first delivery fails and waits again. Its number is below `seen`, but it is found.
    const again = { state: 'waiting', nextAt: nowMs } as const;
    await store.deliveries.settle({ settlements: [settlement(first.due[0] as never, 1, again, FAILED)] });
    const { seen } = await loaded(first.seen);
    assert.equal(seen, (sequences[1] as number) - 1);
    assert.deepEqual(await loaded(seen), { ...(await loaded(0)), seen });
    for (const place of [seen, undefined]) assert.equal(await isFound(place), true);
    // All deliveries without an attempt succeed; the one that failed remains.
    const second = (await loaded(seen)).due.filter(({ sequence }) => sequence > seen);
    await store.deliveries.settle({
      settlements: second.map((one) => settlement(one, 1, { state: 'delivered' }, OK)),
    });
    const end = await loaded(seen);
    assert.deepEqual([end.due.length, end.seen], [1, await store.events.newestSequence({ teamId })]);
    assert.equal(await isFound(end.seen), true);
    await store.deliveries.settle({
      settlements: end.due.map((one) => settlement(one, 2, { state: 'delivered' }, OK)),
    });
    for (const place of [end.seen, undefined]) assert.equal(await isFound(place), false);
    // The delivery of the next event has a higher number.
    await send();
    for (const place of [end.seen, undefined]) assert.equal(await isFound(place), true);
    assert.equal((await loaded(end.seen)).due.length, 1);
    await store.webhooks.pause({ teamId, id: webhookId, reason: 'For a test' });
    assert.deepEqual(await loaded(end.seen), { due: [], seen: end.seen });
  }
});
