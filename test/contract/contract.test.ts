/** The edge matrix of the contract over HTTP, against the real service. A test's name is its row and its case. */
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, test } from 'node:test';
import { onPostgres } from '../support/test-database.ts';
import { dataRows } from './data.ts';
import { httpRows } from './http.ts';
import { keyRows } from './keys.ts';
import { listRows } from './list.ts';
import { queueRows } from './queue.ts';
import { subscribeRows } from './subscribe.ts';
import { unsubscribeRows } from './unsubscribe.ts';
import { data, is, OPERATIONS, openWorld, QUEUED, queue, type Rows, UNSUBSCRIBE } from './world.ts';

const world = await openWorld();
const { ask, get, post, subscribe, newUrl, service } = world;
after(() => world.close());

const rows: Rows = {
  ...keyRows(world),
  ...listRows(world),
  ...dataRows(world),
  ...queueRows(world),
  ...subscribeRows(world),
  ...unsubscribeRows(world),
  ...httpRows(world),

  // Last, because nothing works afterwards.
  'The database is down → 503 {error}, no stack, and it recovers by itself': {
    ...(onPostgres()
      ? { 'nobody is let in': nobodyLetIn }
      : { 'another process holds the write lock for too long': lockedForTooLong }),
    // An installed service is a process of its own, whose database nobody can close.
    ...(service.closeDatabase === undefined ? {} : { 'it is closed under the five operations': closed }),
  },
};

for (const [row, cases] of Object.entries(rows)) {
  for (const [name, run] of Object.entries(cases)) {
    test(`${row} · ${JSON.stringify(name)}`, { timeout: 120_000 }, async () => {
      await run();
    });
  }
}

async function closed() {
  await service.closeDatabase?.();
  for (const sent of Object.values(OPERATIONS)) {
    const path = sent.method === 'DELETE' ? `${UNSUBSCRIBE}/wh_01kadz8v3s7v0s8e1c3q5m2n4p` : sent.path;
    is(await ask({ ...sent, path }), 503);
    is(await ask({ ...sent, path }, 'a key that is not cached'), 503);
  }
  is(await get('/readyz'), 503);
  is(await get('/livez'), 200, { status: 'ok' });
}

/** On SQLite: another process keeps the database locked. */
async function lockedForTooLong() {
  const lock = new DatabaseSync(join(service.directory, 'data', 'flowhook.db'));
  lock.exec('begin immediate');
  try {
    const webhookUrl = newUrl();
    for (const refused of await Promise.all([post(queue('down')), subscribe({ webhookUrl })]))
      is(refused, 503);
    is(await get(data('quiet')), 200);
  } finally {
    lock.exec('rollback');
    lock.close();
  }
  is(await post(queue('down')), 200, QUEUED);
  is(await subscribe({ webhookUrl: newUrl() }), 200);
}

/** On PostgreSQL. */
async function nobodyLetIn() {
  await service.database.letIn(false);
  const webhookUrl = newUrl();
  for (const refused of await Promise.all([post(queue('down')), subscribe({ webhookUrl })])) is(refused, 503);
  is(await get('/readyz'), 503);
  is(await get('/livez'), 200);
  await service.database.letIn(true);
  is(await post(queue('down')), 200, QUEUED);
  is(await subscribe({ webhookUrl: newUrl() }), 200);
}
