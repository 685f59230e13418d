/** A step of the retention holds up the one writer. What it deletes is tested by the conformance suite. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { silentLogger } from '../../observe/log.ts';
import { PRUNE_START, prune } from '../operations/outbox-retention.ts';
import type { Sql, Tx } from '../sql.ts';
import { Database } from './database.ts';
import { migrate } from './migrate.ts';
import { SqliteSql } from './sql.ts';

test('looks for waiting deliveries only of the events that a step may delete', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-retention-'));
  const path = join(directory, 'flowhook.db');
  migrate({ path, log: silentLogger, now: 1 });
  const db = new Database(path, { synchronous: 'OFF' });
  t.after(async () => {
    db.close();
    await rm(directory, { recursive: true });
  });
  db.exec(`
    insert into team (id, slug, created_at) values ('t', 't', 1);
    insert into event (team_id, sequence, id, type, body, created_at)
    select 't', value, value, 'workflow_finished', '{}', 1 from json_each('[1,2,3,4]');
    insert into delivery (team_id, id, webhook_id, event_sequence, state, created_at)
    select 't', event.id || of.value, of.value, sequence, 'delivered', 1
    from event cross join json_each('[1,2,3]') of`);
  const sql = new SqliteSql(db);
  const looked: unknown[] = [];
  const all: Sql['all'] = (statement, ...values) => {
    if (String(statement).includes(`state = 'waiting'`)) looked.push(values[1]);
    return sql.all(statement, ...values);
  };
  const counted = Object.assign(Object.create(sql), {
    all,
    get: sql.get.bind(sql),
    run: sql.run.bind(sql),
  });
  const tx = { db: counted, now: 9 } as Tx;
  let after: typeof PRUNE_START | null = PRUNE_START;
  while (after !== null) ({ next: after } = await prune(tx, { attemptsMs: 1, eventsMs: 1, limit: 4, after }));
  assert.deepEqual(looked, [[1, 2], [2, 3], [3]]);
  assert.deepEqual(db.all('select sequence from event'), [{ sequence: 4 }]);
});
