/** The cost of deleting rows of a team does not grow with those that it still has. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { silentLogger } from '../../observe/log.ts';
import { remove } from '../operations/remove-team.ts';
import type { Tx } from '../sql.ts';
import { Database } from './database.ts';
import { migrate } from './migrate.ts';
import { SqliteSql } from './sql.ts';

test('finds the rows of a team that it deletes by their keys', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-remove-team-'));
  const path = join(directory, 'flowhook.db');
  migrate({ path, log: silentLogger, now: 1 });
  const db = new Database(path, { synchronous: 'OFF' });
  t.after(async () => {
    db.close();
    await rm(directory, { recursive: true });
  });
  db.exec(`
    insert into team (id, slug, created_at) values ('t', 'deleted:t:t', 1);
    insert into workflow (team_id, id, number, definition, definition_hash, created_at, updated_at)
    values ('t', 'one', 1, '', '', 1, 1), ('t', 'other', 2, '', '', 1, 1);
    insert into record (workflow, seq, added_in, id, body)
    select number, value, 1, value, '{}' from workflow cross join json_each('[1,2,3,4,5]');
    insert into delivery (team_id, id, webhook_id, event_sequence, state, created_at)
    select 't', value, 'w', value, 'delivered', 1 from json_each('[1,2,3,4,5]');
    insert into attempt (team_id, delivery_id, number, started_at, duration_ms, outcome)
    select 't', value, 1, 1, 1, 'delivered' from json_each('[1,2,3,4,5]')`);
  const sql = new SqliteSql(db);
  const deletions: string[] = [];
  const run: SqliteSql['run'] = (statement, ...values) => {
    if (String(statement).startsWith('delete')) deletions.push(String(statement));
    return sql.run(statement, ...values);
  };
  const counted = Object.assign(Object.create(sql), {
    run,
    get: sql.get.bind(sql),
    all: sql.all.bind(sql),
  });
  assert.deepEqual(await remove({ db: counted } as Tx, { teamId: 't', limit: 100 }), { done: true });
  for (const table of ['record', 'delivery', 'attempt']) {
    const statement = deletions.find((one) => one.startsWith(`delete from ${table} `)) ?? '';
    const [step] = db.all<{ detail: string }>(`explain query plan ${statement}`);
    assert.match(step?.detail ?? '', /^SEARCH .* AND .*</);
  }
  assert.equal(db.get<{ rows: number }>('select count(*) as rows from record')?.rows, 0);
});
