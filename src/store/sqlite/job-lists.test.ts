/** Reads of SQLite run on the event loop, so long ones must yield. The conformance suite tests their results. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openEmptyDatabase } from '../../../test/support/store/empty-database.ts';
import { list } from '../operations/job-lists.ts';
import { SqliteSql } from './sql.ts';

test('a search for jobs in rare states yields to the event loop', async (t) => {
  const db = await openEmptyDatabase(t);
  db.exec(`
    with recursive n (i) as (select 1 union all select i + 1 from n where i < 5000)
    insert into job (team_id, id, workflow_id, slot, state, origin, run_at, created_at, finished_at, reason, error)
    select 't', printf('job_%026d', i), 'w', 0, iif(i = 1, 'failed', 'finished'), 'api', 1, 1, 1, 'lost', '' from n`);
  let turns = 0;
  const count = () => {
    turns += 1;
    turning = setImmediate(count);
  };
  let turning = setImmediate(count);
  const view = { db: new SqliteSql(db), now: 2 };
  const found = await list(view, { teamId: 't', states: ['running', 'failed'], limit: 9 });
  clearImmediate(turning);
  assert.deepEqual(
    found.map(({ state }) => state),
    ['failed'],
  );
  assert.ok(turns > 0);
});
