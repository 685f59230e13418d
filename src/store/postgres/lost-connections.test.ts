/** Connections that the server ends while statements are under way on them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { administer, makeDatabase } from '../../../test/support/postgres.ts';
import { Problem } from '../../model/error.ts';
import { silentLogger } from '../../observe/log.ts';
import { openStore } from '../open.ts';

const ROUNDS = 20;

test('calls whose connection the server ends find the database unavailable, and later calls succeed', async () => {
  const { url, server, name, drop } = await makeDatabase();
  const store = await openStore(url, { publicUrl: () => '', log: silentLogger, own: true });
  const others: unknown[] = [];
  let refused = 0;
  let isOver = false;
  async function use(n: number): Promise<void> {
    while (!isOver) {
      const done = n % 2 === 0 ? store.teams.list() : store.teams.ensure({ slug: `team-${n}` });
      await done.catch((error: unknown) => {
        refused += 1;
        if (!(error instanceof Problem && error.code === 'database_unavailable')) others.push(error);
      });
    }
  }
  const users = Array.from({ length: 12 }, (_, n) => use(n));
  for (let round = 0; round < ROUNDS; round++) {
    await administer(
      server,
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`,
    );
  }
  isOver = true;
  await Promise.all(users);
  assert.deepEqual(others, []);
  assert.ok(refused > 0, 'connections were lost while they were used');
  assert.ok((await store.teams.list()).length > 0);
  await store.close();
  await drop();
});
