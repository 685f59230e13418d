/** The service behind a proxy that hands each transaction to another connection: nothing of it lives in a session. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { silentLogger } from '../src/observe/log.ts';
import { testAttempts } from '../src/store/conformance/attempts.ts';
import { testSchedules } from '../src/store/conformance/schedules.ts';
import { type Opened, PUBLIC_URL } from '../src/store/conformance/setup.ts';
import { testTeams } from '../src/store/conformance/teams.ts';
import { openStore } from '../src/store/open.ts';
import { administer, makeDatabase, SERVER_VARIABLE, startCluster } from './support/postgres.ts';
import { startTransactionPool } from './support/transaction-pool.ts';

const cluster = await startCluster();
const pool = await startTransactionPool({ socketPath: join(cluster.place, '.s.PGSQL.5432'), size: 6 });
process.env[SERVER_VARIABLE] = `postgres://flowhook@127.0.0.1:${pool.port}/postgres`;
process.env.FLOWHOOK_TEST_STORE = 'postgres';
process.env.FLOWHOOK_DATABASE_LISTEN = 'off';
const { url } = await makeDatabase();

describe('behind a pool of transactions', () => {
  for (const noun of [testTeams, testAttempts, testSchedules]) noun(open);
  it('has gone on with another connection all the time', () => assert.ok(pool.changes > 300));
});
await import('./life-of-a-job.test.ts');

async function open(): Promise<Opened> {
  let nowMs = Date.UTC(2026, 0, 1);
  const options = {
    clock: () => nowMs,
    publicUrl: () => PUBLIC_URL,
    log: silentLogger,
    own: true,
    listen: false,
  };
  let store = await openStore(url, options);
  await administer(url, 'truncate team, workflow, job, event, webhook, lane, delivery, attempt cascade');
  return {
    store,
    reopen: async () => {
      await store.close();
      store = await openStore(url, options);
      return store;
    },
    inspect: () => assert.fail('none of these cases looks into the tables'),
    advance: (ms) => {
      nowMs += ms;
    },
    another: () => openStore(url, options),
    close: () => store.close(),
  };
}
