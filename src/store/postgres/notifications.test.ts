/** Notifications to other processes after a commit. */

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { makeDatabase } from '../../../test/support/postgres.ts';
import { silentLogger } from '../../observe/log.ts';
import { openStore } from '../open.ts';
import { ANYTHING, type Touched, untouched } from '../transaction.ts';
import { openPool } from './connections.ts';
import { Database } from './database.ts';
import { Notifications } from './notifications.ts';

const { url, drop } = await makeDatabase();
await (await openStore(url, { publicUrl: () => '', log: silentLogger })).close();
const pool = openPool({ url, size: 4, log: silentLogger });
const db = new Database(pool);
after(async () => {
  await pool.end();
  await drop();
});

/** One process, and the notifications that it has received. */
async function hearing() {
  const heard: Touched[] = [];
  let noted = () => {};
  const notifications = new Notifications({
    url,
    pool,
    log: silentLogger,
    onForeign: (touched) => {
      heard.push(touched);
      noted();
    },
  });
  await notifications.listen();
  const until = async (enough: () => boolean): Promise<void> => {
    while (!enough()) {
      await new Promise<void>((resolve) => {
        noted = resolve;
      });
    }
  };
  return { notifications, heard, until };
}

const lane = (n: number, length = 1) => ({ teamId: 'team_a', webhookId: `wh_${n}`.padEnd(length, '_') });

test('a burst of notifications arrives complete in one or two messages, and not at the sender', async () => {
  const [one, other] = [await hearing(), await hearing()];
  for (let n = 0; n < 50; n++)
    one.notifications.notify({ ...untouched(), deliveries: true, lanes: [lane(n)] });
  one.notifications.notify({ ...untouched(), cancels: true });
  const lanes = () => other.heard.flatMap((touched) => touched.lanes ?? []);
  await other.until(() => lanes().length === 50 && other.heard.some(({ cancels }) => cancels));
  assert.deepEqual(
    lanes(),
    Array.from({ length: 50 }, (_, n) => lane(n)),
  );
  assert.ok(other.heard.length <= 2, `${other.heard.length} messages`);
  assert.ok(other.heard.every(({ jobs, keys }) => !jobs && !keys));
  await one.notifications.stop();
  await other.notifications.stop();
  assert.deepEqual(one.heard, []);
});

test('lanes that do not fit into a message become null, which means any lane', async () => {
  const [one, other] = [await hearing(), await hearing()];
  for (const lanes of [
    Array.from({ length: 65 }, (_, n) => lane(n)),
    Array.from({ length: 64 }, (_, n) => lane(n, 100)),
  ]) {
    one.notifications.notify({ ...untouched(), deliveries: true, lanes });
    await other.until(() => other.heard.length > 0);
    assert.deepEqual(other.heard.splice(0), [{ ...untouched(), deliveries: true, lanes: null }]);
  }
  await one.notifications.stop();
  await other.notifications.stop();
});

test('stopping sends the last notification first', async () => {
  const [one, other] = [await hearing(), await hearing()];
  one.notifications.notify({ ...untouched(), jobs: true });
  await one.notifications.stop();
  await other.until(() => other.heard.length > 0);
  assert.equal(other.heard[0]?.jobs, true);
  await other.notifications.stop();
});

test('after a lost connection it listens again and reports that anything may have changed', async () => {
  const one = await hearing();
  await db.run(
    `select pg_terminate_backend(pid) from pg_stat_activity
     where application_name = 'flowhook-news' and datname = current_database()`,
  );
  await one.until(() => one.heard.length > 0);
  assert.deepEqual(one.heard.splice(0), [ANYTHING]);
  await db.run(`select pg_notify('flowhook', 'no JSON')`);
  await one.until(() => one.heard.length > 0);
  assert.deepEqual(one.heard, [ANYTHING]);
  await one.notifications.stop();
});

test('without listening there is no such connection, but changed keys are noticed', async () => {
  const options = { publicUrl: () => '', log: silentLogger, own: true, listen: false };
  const store = await openStore(url, options);
  const other = await openStore(url, { ...options, own: false });
  const listening = await db.get<{ count: number }>(
    `select count(*) as count from pg_stat_activity
     where application_name = 'flowhook-news' and datname = current_database()`,
  );
  assert.equal(listening?.count, 0);
  const { id: teamId } = await other.teams.ensure({ slug: 'acme' });
  const noticed = Promise.withResolvers<Touched>();
  store.watch(noticed.resolve);
  await other.keys.create({ teamId, name: 'x', hash: 'x', prefix: 'x', scopes: [], expiresAt: null });
  assert.deepEqual(await noticed.promise, { ...untouched(), keys: true });
  await other.close();
  await store.close();
});

test('one of several nodes holds the lease of a chore until it expires', async () => {
  let nowMs = 1_000_000;
  const options = { publicUrl: () => '', log: silentLogger, clock: () => nowMs };
  const stores = await Promise.all([1, 2, 3].map(() => openStore(url, options)));
  const holders = async (forMs = 1_000) => {
    const results = await Promise.all(
      stores.map(({ instance }, n) => instance.lease({ name: 'sweep', nodeId: `node-${n}`, forMs })),
    );
    return results.flatMap((has, n) => (has ? [n] : []));
  };
  const [first, ...more] = await holders();
  assert.deepEqual(more, []);
  nowMs += 999;
  assert.deepEqual(await holders(), [first], 'the holder renews its lease');
  nowMs += 1_000;
  assert.equal((await holders(1_000_000_000)).length, 1);
  nowMs -= 500_000;
  assert.equal((await holders()).length, 1, 'a clock that was set back does not block the chore');
  await Promise.all(stores.map((store) => store.close()));
});
