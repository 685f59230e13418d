/** The conformance suite on a real PostgreSQL. */
import { after, describe } from 'node:test';
import { makeDatabase } from '../../../test/support/postgres.ts';
import { storesOn } from '../../../test/support/store/on-postgres.ts';
import { testStore } from '../conformance/suite.ts';

const { url, drop } = await makeDatabase();
const { open, end } = storesOn(url);

describe('PostgreSQL', () => {
  // Each model run takes four times as long as on SQLite.
  testStore(open, { modelRuns: 6 });
});

after(async () => {
  await end();
  await drop();
});
