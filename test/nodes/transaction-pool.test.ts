/** The service behind a pooler that uses another connection for each transaction: the service keeps no session state. */
import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { silentLogger } from '../../src/observe/log.ts';
import { testAttempts } from '../../src/store/conformance/attempts.ts';
import { testSchedules } from '../../src/store/conformance/schedules.ts';
import { caseClock, PUBLIC_URL } from '../../src/store/conformance/setup.ts';
import { type Reusable, sharing } from '../../src/store/conformance/suite.ts';
import { testTeams } from '../../src/store/conformance/teams.ts';
import { openStore } from '../../src/store/open.ts';
import {
  administer,
  EMPTY_TABLES,
  makeDatabase,
  SERVER_VARIABLE,
  serverWithSocket,
} from '../support/postgres.ts';
import { startTransactionPool } from '../support/store/transaction-pool.ts';

const { socketPath } = await serverWithSocket();
const pool = await startTransactionPool({ socketPath, size: 6 });
process.env[SERVER_VARIABLE] = `postgres://flowhook@127.0.0.1:${pool.port}/postgres`;
process.env.FLOWHOOK_TEST_STORE = 'postgres';
process.env.FLOWHOOK_DATABASE_LISTEN = 'off';
const { url, drop } = await makeDatabase();
const shared = sharing(open);
after(drop);

describe('behind a transaction pooler', () => {
  for (const noun of [testTeams, testAttempts, testSchedules]) noun(shared);
  it('changed the connection many times', () => assert.ok(pool.changes > 300));
});
await import('../api/life-of-a-job.test.ts');

async function open(): Promise<Reusable> {
  const options = {
    clock: caseClock.now,
    publicUrl: () => PUBLIC_URL,
    log: silentLogger,
    own: true,
    listen: false,
  };
  let store = await openStore(url, options);
  return {
    store,
    current: () => store,
    reopen: async () => {
      await store.close();
      store = await openStore(url, options);
      return store;
    },
    inspect: () => assert.fail('none of these cases reads the tables'),
    statement: () => assert.fail('none of these cases changes the tables'),
    rows: () => assert.fail('none of these cases counts rows'),
    advance: caseClock.advance,
    another: () => openStore(url, options),
    empty: () => {
      caseClock.toNextMidnight();
      return administer(url, EMPTY_TABLES);
    },
    close: () => store.close(),
  };
}
