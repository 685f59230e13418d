/** A step of retention blocks the one writer, so it must be short. The conformance suite tests what it deletes. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openEmptyDatabase } from '../../../test/support/store/empty-database.ts';
import { allSteps } from '../conformance/setup.ts';
import { prune } from '../operations/outbox-retention.ts';
import type { Statement, Value } from '../sql.ts';
import type { Tx } from '../transaction.ts';
import { SqliteSql } from './sql.ts';

test('searches waiting deliveries only of the events that a step may delete', async (t) => {
  const db = await openEmptyDatabase(t);
  db.exec(`
    insert into team (id, slug, created_at) values ('t', 't', 1);
    insert into event (team_id, sequence, id, type, body, created_at)
    select 't', value, value, 'workflow_finished', '{}', 1 from json_each('[1,2,3,4]');
    insert into delivery (team_id, id, webhook_id, event_sequence, state, created_at)
    select 't', event.id || of.value, of.value, sequence, 'delivered', 1
    from event cross join json_each('[1,2,3]') of`);
  const searched: unknown[] = [];
  class Watched extends SqliteSql {
    override all<Row>(statement: Statement, ...values: Value[]): Promise<Row[]> {
      if (String(statement).includes(`state = 'waiting'`)) searched.push(values[0]);
      return super.all(statement, ...values);
    }
  }
  const tx = { db: new Watched(db), now: 9 } as unknown as Tx;
  await allSteps((input: Parameters<typeof prune>[1]) => prune(tx, input), {
    teamId: 't',
    attemptsMs: 1,
    eventsMs: 1,
    limit: 4,
  });
  assert.deepEqual(searched, [[1, 2], [2, 3], [3]]);
  assert.deepEqual(db.all('select sequence from event'), [{ sequence: 4 }]);
});
