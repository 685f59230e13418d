/** Transactions with concurrent statements, their limits, and the classes of their errors. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { makeDatabase, serverWithSocket } from '../../../test/support/postgres.ts';
import { startTransactionPool } from '../../../test/support/store/transaction-pool.ts';
import { silentLogger } from '../../observe/log.ts';
import { openPool } from './connections.ts';
import { Database, inTransaction } from './database.ts';
import { isBusy, isOutside, isTransient } from './failures.ts';

const { url, drop } = await makeDatabase();
const pool = openPool({ url, size: 1, log: silentLogger });
const db = new Database(pool);

before(() => db.exec('create table line (number integer primary key)'));
after(async () => {
  await pool.end();
  await drop();
});

const lines = async () => (await db.all('select number from line')).length;

test('a transaction that failed runs no more statements', async () => {
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
  await assert.rejects(slow as Promise<unknown>, /after its transaction had ended/);
  assert.equal(await lines(), 0);
});

test('a statement that comes after the commit does not run', async () => {
  const committed = Promise.withResolvers<void>();
  let late: Promise<unknown> | undefined;
  await inTransaction(pool, async (tx) => {
    late = committed.promise.then(() => tx.run('insert into line values (2)'));
    late.catch(() => undefined);
    await tx.run('insert into line values (1)');
  });
  committed.resolve();
  await assert.rejects(late as Promise<unknown>, /after its transaction had ended/);
  assert.equal(await lines(), 1);
});

test('a transaction throws the first error of its concurrent statements', async () => {
  const failing = inTransaction(pool, async (tx) => {
    const wrong = tx.get('select 1 / 0');
    wrong.catch(() => undefined);
    await tx.get('select 1');
  });
  await assert.rejects(failing, /division by zero/);
});

test('a transaction whose statement failed is not committed, even if the error was caught', async () => {
  const before = await lines();
  const failing = inTransaction(pool, async (tx) => {
    await tx.run('insert into line values (10)');
    await tx.get('select 1 / 0').catch(() => undefined);
  });
  await assert.rejects(failing, /division by zero/);
  assert.equal(await lines(), before);
});

test('a statement that waits for a lock longer than lockMs fails because the database is busy', async () => {
  const others = openPool({ url, size: 1, log: silentLogger });
  await db.run('insert into line values (20)');
  const update = 'update line set number = number where number = 20';
  await inTransaction(others, async (tx) => {
    await tx.run(update);
    const waiting = inTransaction(pool, (other) => other.run(update), { lockMs: 1 });
    await assert.rejects(waiting, (error) => isBusy(error) && isOutside(error));
  });
  assert.equal(await db.run(update), 1);
  await others.end();
});

test('a read-only database has limits, and leaves the settings of its connection unchanged', async () => {
  const reads = new Database(pool, { reads: true });
  assert.deepEqual(await reads.get(`select current_setting('statement_timeout') as most`), { most: '30s' });
  await assert.rejects(reads.run('insert into line values (30)'), /read-only/);
  await assert.rejects(reads.get('select 1 / $1::integer', 0), /division by zero/);
  assert.deepEqual(await reads.all('select $1::integer as number', 4), [{ number: 4 }]);
  assert.deepEqual(await db.get(`select current_setting('statement_timeout') as most`), { most: '0' });
});

test('an error whose text mentions a connection is not taken for a lost connection', () => {
  assert.equal(isOutside(new Error('The row customer-1 of the client has no connection')), false);
  assert.equal(isOutside(new Error('Connection terminated unexpectedly')), true);
  assert.equal(isOutside(Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })), true);
});

test('statements are prepared once per direct connection, and again after a table has changed', async () => {
  const prepares = { prepares: true };
  await inTransaction(pool, (tx) => tx.exec('create table prepared (a integer)'));
  const read = () => inTransaction(pool, (tx) => tx.all('select * from prepared where a > $1', 0), prepares);
  const count = () =>
    inTransaction(pool, (tx) =>
      tx.get<{ count: number }>(
        `select count(*) as count from pg_prepared_statements where name like 'flowhook%'`,
      ),
    );
  await Promise.all([read(), read(), read()]);
  assert.equal((await count())?.count, 1);
  await inTransaction(pool, (tx) => tx.exec('alter table prepared add column b integer'));
  await assert.rejects(read(), isTransient, 'the caller runs the transaction again');
  assert.deepEqual(await read(), []);
});

test('nothing is prepared on a connection through a pooler', async (t) => {
  const pooler = await startTransactionPool({ socketPath: (await serverWithSocket()).socketPath, size: 2 });
  const through = new URL(url);
  through.host = `127.0.0.1:${pooler.port}`;
  through.search = '';
  const pooled = openPool({ url: through.href, size: 1, log: silentLogger });
  t.after(async () => {
    await pooled.end();
    pooler.stop();
  });
  const count = await inTransaction(
    pooled,
    async (tx) => {
      await tx.all('select 1 where 1 = $1', 1);
      return tx.get<{ count: number }>(
        'select count(*) as count from pg_prepared_statements where name <> $1',
        '',
      );
    },
    { prepares: true },
  );
  assert.equal(count?.count, 0);
});
