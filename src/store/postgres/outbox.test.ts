/** Webhooks and deliveries on several nodes at the same time, and values that PostgreSQL cannot store. */
import assert from 'node:assert/strict';
import { after, beforeEach, test } from 'node:test';
import { EMPTY_TABLES, makeDatabase } from '../../../test/support/postgres.ts';
import { silentLogger } from '../../observe/log.ts';
import { FAILED, load, OK, settlement, subscribe } from '../conformance/sending.ts';
import { allEvents, allSteps, makeWorkflow, PUBLIC_URL } from '../conformance/setup.ts';
import { openStore } from '../open.ts';
import type { Store } from '../store.ts';
import { openPool } from './connections.ts';
import { Database, inTransaction } from './database.ts';

const DAY = 86_400_000;
const { url, drop } = await makeDatabase();
let nowMs = Date.UTC(2026, 0, 1);
const open = () => openStore(url, { clock: () => nowMs, publicUrl: () => PUBLIC_URL, log: silentLogger });
const stores: [Store, Store] = [await open(), await open()];
const [store, other] = stores;
const pool = openPool({ url, size: 2, log: silentLogger });
const db = new Database(pool);
after(async () => {
  await Promise.all([...stores.map((one) => one.close()), pool.end()]);
  await drop();
});
beforeEach(() => db.exec(EMPTY_TABLES));

/** Makes concurrent calls, alternately on both nodes. */
function everywhere<Result>(times: number, perform: (on: Store, n: number) => Promise<Result>) {
  return Promise.all(Array.from({ length: times }, (_, n) => perform(stores[n % 2] as Store, n)));
}

/** Makes a webhook with waiting deliveries. */
async function waiting(count: number) {
  const at = await makeWorkflow(store);
  const { teamId } = at;
  const webhookId = await subscribe(store, at, ['x']);
  for (let n = 0; n < count; n++) await store.webhooks.test({ teamId, id: webhookId });
  return { teamId, webhookId, due: await load(store, teamId, webhookId) };
}

test('concurrent subscriptions to one URL create one webhook, and never exceed the limit', async () => {
  const at = await makeWorkflow(store);
  for (const workflowId of [at.workflowId, null]) {
    const target = { teamId: at.teamId, workflowId, secret: 'sealed', limit: 3 };
    const same = await everywhere(10, (on) =>
      on.webhooks.subscribe({ ...target, url: 'https://a.test/', events: ['*'] }),
    );
    assert.equal(same.filter(({ outcome }) => outcome === 'created').length, 1);
    assert.equal(same.filter(({ outcome }) => outcome === 'existing').length, 9);
    const different = await everywhere(10, (on, n) =>
      on.webhooks.subscribe({ ...target, url: `https://a.test/${n}`, events: ['*'] }),
    );
    assert.equal(different.filter(({ outcome }) => outcome === 'created').length, 2);
    assert.equal(different.filter(({ outcome }) => outcome === 'limit_reached').length, 8);
  }
});

test('each delivery is settled once when two nodes settle it', async () => {
  const { teamId, webhookId, due } = await waiting(20);
  await everywhere(8, (on, n) => {
    const inSomeOrder = n % 3 === 0 ? due : due.toReversed();
    const next = { state: 'waiting', nextAt: nowMs + n } as const;
    return on.deliveries.settle({
      settlements: inSomeOrder.map((one) => settlement(one, 1, n === 7 ? { state: 'delivered' } : next, OK)),
    });
  });
  const found = await store.deliveries.list({ teamId, webhookId, limit: 99 });
  assert.ok(found.every(({ state, attempt }) => state === 'delivered' && attempt === 1));
  for (const { id } of found) {
    assert.equal((await store.deliveries.get({ teamId, id }))?.attempts.length, 1);
  }
});

test('two settlements of one delivery in a batch apply in order', async () => {
  const { teamId, due } = await waiting(1);
  const one = due[0];
  assert.ok(one);
  const again = { state: 'waiting', nextAt: nowMs } as const;
  await store.deliveries.settle({
    settlements: [settlement(one, 1, again, FAILED), settlement(one, 2, again, FAILED)],
  });
  const found = await store.deliveries.get({ teamId, id: one.id });
  assert.deepEqual([found?.attempt, found?.attempts.length], [2, 2]);
});

test('a replay creates each delivery once when two nodes step it', async () => {
  const { teamId, webhookId, due } = await waiting(40);
  await store.deliveries.settle({ settlements: due.map((one) => settlement(one, 1, { state: 'dead' })) });
  const replay = await store.deliveries.startReplay({ teamId, webhookId, states: ['dead'] });
  for (let round = 0; round < 20; round++) {
    await everywhere(4, (on) => on.deliveries.stepReplays({ limit: 3, waiting: 100 }));
  }
  const ended = await store.deliveries.getReplay({ teamId, id: replay?.id ?? '' });
  assert.deepEqual([ended?.state, ended?.made], ['done', 40]);
  // The deliveries are due a millisecond apart.
  nowMs += 1_000;
  const made = await load(store, teamId, webhookId);
  assert.equal(new Set(made.map(({ eventId }) => eventId)).size, 40);
});

test('an event that is being replayed is not pruned, and a pruned event is not replayed', async () => {
  const { teamId, webhookId, due } = await waiting(2);
  const [old] = due;
  assert.ok(old);
  await store.deliveries.settle({ settlements: due.map((one) => settlement(one, 1, { state: 'dead' })) });
  nowMs += 2 * DAY;
  const prune = async () => {
    await allSteps(other.deliveries.prune, { teamId, attemptsMs: DAY, eventsMs: DAY, limit: 9 });
    return (await allEvents(store, teamId)).map(({ sequence }) => sequence - (old.sequence - 1));
  };
  // `replay` holds this lock until its commit.
  await inTransaction(pool, async (tx) => {
    await tx.all(
      'select 1 from event where team_id = $1 and sequence = $2 for key share',
      teamId,
      old.sequence,
    );
    assert.deepEqual(await prune(), [1, 2]);
  });
  const [again] = (await store.deliveries.replay({ teamId, ids: [old.id] })) ?? [];
  assert.deepEqual(await prune(), [1, 2], 'a delivery of the first event is waiting');
  assert.deepEqual(
    (await load(store, teamId, webhookId)).map(({ id }) => id),
    [again?.id],
  );

  const settled = settlement({ teamId, id: again?.id ?? '', webhookId }, 1, { state: 'dead' });
  await store.deliveries.settle({ settlements: [settled] });
  const replayed = await inTransaction(pool, async (tx) => {
    await tx.run('delete from event where team_id = $1 and sequence = $2', teamId, old.sequence);
    return { waits: store.deliveries.replay({ teamId, ids: [old.id] }) };
  });
  assert.equal(await replayed.waits, undefined, 'the event is gone');
});

test('cancels a delivery that was added while its webhook was being deleted', async () => {
  const { teamId, webhookId, due } = await waiting(1);
  await store.webhooks.unsubscribe({ teamId, ids: [webhookId] });
  await db.run(`update delivery set state = 'waiting', next_at = $1`, nowMs);
  const get = async () => (await store.deliveries.get({ teamId, id: due[0]?.id ?? '' }))?.state;
  assert.equal(await get(), 'waiting');
  await allSteps(store.deliveries.cancelRemoved, { teamId });
  assert.equal(await get(), 'canceled');
});

test('replaces NUL characters in stored responses, errors and reasons', async () => {
  const { teamId, webhookId, due } = await waiting(1);
  const [one] = due;
  assert.ok(one);
  const log = { ...OK, response: 'a\0b', error: '\0' };
  await store.deliveries.settle({ settlements: [settlement(one, 1, { state: 'dead' }, log)] });
  const found = await store.deliveries.get({ teamId, id: one.id });
  assert.deepEqual(found?.attempts, [{ ...log, response: 'a\ufffdb', error: '\ufffd' }]);
  assert.equal(await store.webhooks.get({ teamId, id: 'wh_\0' }), undefined);
  assert.deepEqual(await store.webhooks.list({ teamId, url: 'https://a.test/\0', limit: 100 }), []);
  const paused = await store.webhooks.pause({ teamId, id: webhookId, reason: 'For\0a test' });
  assert.equal(paused?.pausedReason, 'For\ufffda test');
});

test('accepts a URL and a set of events that are too long for an index row', async () => {
  const at = await makeWorkflow(store);
  const long = {
    ...at,
    url: `https://a.test/${'é'.repeat(2_000)}`,
    events: Array.from({ length: 100 }, (_, n) => `${n}`.padEnd(256, Math.random().toString(36))),
    secret: 'sealed',
    limit: 9,
  };
  assert.equal((await store.webhooks.subscribe(long)).outcome, 'created');
  assert.equal((await store.webhooks.subscribe(long)).outcome, 'existing');
  assert.equal((await store.webhooks.list({ teamId: at.teamId, url: long.url, limit: 100 })).length, 1);
});
