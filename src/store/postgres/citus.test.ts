/**
 * The conformance suite on a distributed database, on a coordinator and two workers of Citus:
 * `FLOWHOOK_TEST_STORE=citus node --test src/store/postgres/citus.test.ts`.
 */
import { after, describe } from 'node:test';
import { distributedDatabase, NO_CITUS } from '../../../test/support/citus.ts';
import { storesOn } from '../../../test/support/store/on-postgres.ts';
import { testStore } from '../conformance/suite.ts';

describe('Citus', { skip: NO_CITUS }, async () => {
  if (NO_CITUS !== false) return;
  const { url, drop } = await distributedDatabase();
  const { open, end } = storesOn(url);
  after(async () => {
    await end();
    await drop();
  });
  testStore(open, { modelRuns: 2 });
});
