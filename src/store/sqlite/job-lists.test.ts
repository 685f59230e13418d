/** Reads run on the event loop. What they find is tested by the conformance suite. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openEmptyDatabase } from '../../../test/support/store/empty-database.ts';
import { list } from '../operations/job-lists.ts';
import { SqliteSql } from './sql.ts';

test('looks for jobs in rare states among many of a team, and lets others go on in between', async (t) => {
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
