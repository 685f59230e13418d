/** `flowhook doctor` on PostgreSQL: healthy, behind a transaction pooler, with a wrong key, and unreachable. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { readConfig } from '../../src/config/config.ts';
import { CHECKS } from '../../src/doctor/checks.ts';
import { examineInstallation } from '../../src/doctor/doctor.ts';
import { silentLogger } from '../../src/observe/log.ts';
import { openStore } from '../../src/store/open.ts';
import { openSealer } from '../../src/teams/encryption-key.ts';
import { makeDatabase, SERVER_VARIABLE, serverWithSocket } from '../support/postgres.ts';
import { startTransactionPool } from '../support/store/transaction-pool.ts';

const { url: server, socketPath } = await serverWithSocket();
const directory = await mkdtemp(join(tmpdir(), 'flowhook-doctor-'));
process.env[SERVER_VARIABLE] = server;
const { url, drop } = await makeDatabase();
const pool = await startTransactionPool({ socketPath, size: 4 });
after(async () => {
  pool.stop();
  await drop();
  await rm(directory, { recursive: true, force: true });
});

const KEY = '11'.repeat(32);
const OTHER_KEY = '22'.repeat(32);

function configure(database: string, key = KEY) {
  const environment = {
    FLOWHOOK_PORT: '0',
    FLOWHOOK_DATA: join(directory, 'data'),
    FLOWHOOK_DATABASE: database,
    FLOWHOOK_ENCRYPTION_KEY: key,
  };
  return readConfig({}, environment, directory);
}

async function look(names: readonly string[], database = url, key = KEY) {
  const checks = CHECKS.filter(({ name }) => names.length === 0 || names.includes(name));
  const settings = configure(database, key);
  const { findings } = await examineInstallation(
    { settings, doubts: [], online: null, isFull: names.includes('integrity') },
    { checks },
  );
  return findings;
}

test('a database without tables is ok, and doctor creates no tables', async () => {
  const [database, schema] = await look(['database', 'schema']);
  assert.deepEqual([database?.status, schema?.status], ['ok', 'ok'], JSON.stringify(database));
  assert.match((await look(['schema']))[0]?.what ?? '', /There are no tables yet/);
});

test('a database in use has no problems', async () => {
  const settings = configure(url);
  const store = await openStore(url, { publicUrl: () => '', log: silentLogger });
  await store.teams.ensure({ slug: 'default' });
  await openSealer(settings, store);
  await store.close();
  const found = await look([]);
  // Findings of measurements and of the machine do not depend on this test.
  assert.deepEqual(
    found
      .filter(({ group, check }) => group !== 'machine' && check !== 'database')
      .filter(({ status }) => status !== 'ok' && status !== 'skipped'),
    [],
  );
  const [damage, notifications] = await look(['integrity', 'notifications']);
  assert.equal(damage?.what, 'Every table, index and published version is intact');
  assert.match(notifications?.what ?? '', /Nodes notify each other immediately/);
});

test('an encryption key that differs from the key of other nodes is an error', async () => {
  const [key] = await look(['encryption-key'], url, OTHER_KEY);
  assert.equal(key?.status, 'error');
  assert.match(key?.what ?? '', /is not the one that encrypted the secrets/);
});

test('notifications that do not arrive, behind a transaction pooler, are a warning', async () => {
  const pooled = `postgres://flowhook@127.0.0.1:${pool.port}${new URL(url).pathname}`;
  const [notifications] = await look(['notifications'], pooled);
  assert.equal(notifications?.status, 'warning', JSON.stringify(notifications));
  assert.match(notifications?.fix ?? '', /FLOWHOOK_DATABASE_LISTEN=off/);
});

test('an unreachable PostgreSQL is one error, and checks that need it are skipped', async () => {
  const nowhere = 'postgres://flowhook@127.0.0.1:1/flowhook';
  const found = await look(['database', 'schema', 'integrity', 'jobs'], nowhere);
  assert.deepEqual(
    found.map(({ check, status }) => [check, status]),
    [
      ['database', 'error'],
      ['schema', 'skipped'],
      ['integrity', 'skipped'],
      ['jobs', 'skipped'],
    ],
  );
  assert.match(found[0]?.what ?? '', /The PostgreSQL database cannot be used: /);
});
