/** The cost of deleting some rows of a team does not depend on the number of remaining rows. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openEmptyDatabase } from '../../../test/support/store/empty-database.ts';
import { remove } from '../operations/teams.ts';
import type { Statement, Value } from '../sql.ts';
import type { Tx } from '../transaction.ts';
import { SqliteSql } from './sql.ts';

test('deletes the rows of a team by ranges of their keys', async (t) => {
  const db = await openEmptyDatabase(t);
  db.exec(`
    insert into team (id, slug, created_at) values ('t', 'deleted:t:t', 1);
    insert into workflow (team_id, id, number, definition, definition_hash, created_at, updated_at)
    values ('t', 'one', 1, '{}', '', 1, 1), ('t', 'other', 2, '{}', '', 1, 1);
    insert into record (workflow, seq, added_in, id, body)
    select number, value, 1, value, '{}' from workflow cross join json_each('[1,2,3,4,5]');
    insert into delivery (team_id, id, webhook_id, event_sequence, state, created_at)
    select 't', value, 'w', value, 'delivered', 1 from json_each('[1,2,3,4,5]');
    insert into attempt (team_id, delivery_id, number, started_at, duration_ms, outcome)
    select 't', value, 1, 1, 1, 'delivered' from json_each('[1,2,3,4,5]')`);
  const deletions: string[] = [];
  class Noting extends SqliteSql {
    override run(statement: Statement, ...values: Value[]): Promise<number> {
      if (String(statement).startsWith('delete')) deletions.push(String(statement));
      return super.run(statement, ...values);
    }
  }
  const tx = { db: new Noting(db) } as unknown as Tx;
  assert.deepEqual(await remove(tx, { teamId: 't', limit: 100 }), { done: true });
  for (const table of ['record', 'delivery', 'attempt']) {
    const statement = deletions.find((one) => one.startsWith(`delete from ${table} `)) ?? '';
    const [step] = db.all<{ detail: string }>(`explain query plan ${statement}`);
    assert.match(step?.detail ?? '', /^SEARCH .* AND .*</);
  }
  assert.equal(db.get<{ rows: number }>('select count(*) as rows from record')?.rows, 0);
});
