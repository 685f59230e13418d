/** Versions without a byte count, because a node of the previous release has published them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makeDatabase } from '../../../test/support/postgres.ts';
import { silentLogger } from '../../observe/log.ts';
import { makeWorkflow, people, publishRun } from '../conformance/setup.ts';
import { openStore } from '../open.ts';
import { Database, openPool } from './database.ts';

const bytesOf = (names: Record<string, string>) =>
  people(names).reduce((sum, { body }) => sum + Buffer.byteLength(body), 0);

test('bytes that nobody has counted are counted by the next publish, also one that changes nothing', async (t) => {
  const { url, drop } = await makeDatabase();
  const store = await openStore(url, { publicUrl: () => '', log: silentLogger });
  const pool = openPool({ url, size: 1, log: silentLogger });
  t.after(async () => {
    await Promise.all([store.close(), pool.end()]);
    await drop();
  });
  const at = await makeWorkflow(store);
  const held = async () => (await store.teams.holdings(at)).storedBytes;
  await publishRun(store, at, { a: 'Ada', b: 'Bob' });
  await publishRun(store, at, { a: 'Ädä', b: 'Bob', c: 'Cy' });
  const forget = () => new Database(pool).run('update version set bytes = null');
  await forget();
  assert.equal(await held(), 0);
  await publishRun(store, at, { a: 'Ädä', b: 'Bob', c: 'Cy' });
  assert.equal(await held(), bytesOf({ a: 'Ädä', b: 'Bob', c: 'Cy' }));
  await forget();
  await publishRun(store, at, { b: 'Bert', d: 'Dö' });
  assert.equal(await held(), bytesOf({ b: 'Bert', d: 'Dö' }));
});
