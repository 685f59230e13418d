/** Transactions of which several statements are under way at once. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { makeDatabase } from '../../../test/support/postgres.ts';
import { silentLogger } from '../../observe/log.ts';
import { Database, inTransaction, openPool } from './database.ts';

const { url, drop } = await makeDatabase();
const pool = openPool({ url, size: 1, log: silentLogger });
const db = new Database(pool);

before(() => db.exec('create table line (number integer primary key)'));
after(async () => {
  await pool.end();
  await drop();
});

const lines = async () => (await db.all('select number from line')).length;

test('what one part of a transaction would ask after another part has failed is refused, not run', async () => {
  const rolledBack = Promise.withResolvers<void>();
  let slow: Promise<unknown> | undefined;
  const failing = inTransaction(pool, async (tx) => {
    slow = (async () => {
      await tx.run('insert into line values (1)');
      await rolledBack.promise;
      await tx.run('insert into line values (2)');
    })();
    await Promise.all([slow, tx.get('select 1').then(() => Promise.reject(new Error('Not held')))]);
  });
  await assert.rejects(failing, /Not held/);
  rolledBack.resolve();
  await assert.rejects(slow as Promise<unknown>, /over/);
  assert.equal(await lines(), 0);
});

test('what nobody waited for does not run after the commit', async () => {
  const committed = Promise.withResolvers<void>();
  let late: Promise<unknown> | undefined;
  await inTransaction(pool, async (tx) => {
    late = committed.promise.then(() => tx.run('insert into line values (2)'));
    late.catch(() => undefined);
    await tx.run('insert into line values (1)');
  });
  committed.resolve();
  await assert.rejects(late as Promise<unknown>, /over/);
  assert.equal(await lines(), 1);
});
