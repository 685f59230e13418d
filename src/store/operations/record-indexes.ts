/**
 * The rows of a workflow in `record`, and the indexes that find them.
 *
 * On PostgreSQL a row contains its team and its workflow, and every statement is written so that only one index
 * matches. Otherwise the planner chooses any index in which it expects few rows, and it expects few rows of every new
 * workflow (measured: 1,600 instead of 23,000 records/s, and slower with every batch). So each index except the primary
 * key starts with an expression of the index's name, the team and the workflow, and the conditions of partial indexes
 * are all worded differently. Statements that use the primary key write `coalesce(removed_in, 0) = 0` and `removed_in +
 * 0`, which match no index.
 *
 * On SQLite a row contains the number of its workflow instead, which keeps the indexes small. Statements name the index
 * that they use: without statistics, the planner would scan the workflow in the order of `seq`.
 */

import { hash } from 'node:crypto';
import type { Pick, Sql } from '../sql.ts';

/** The rows in each partial index. */
const ONLY = {
  current: { sqlite: ['', ' is null'], postgres: ['', ' is null'] },
  closed: { sqlite: ['', ' is not null'], postgres: ['-', ' < 0'] },
  removed: { sqlite: ['', ' is not null'], postgres: ['', ' > 0'] },
};

/**
 * SQL conditions that select the rows of a workflow of the team `$1` by the primary key.
 *
 * @param id the workflow's id, as an SQL expression
 */
export function inWorkflow(pick: Pick, alias = 'record', id = '$2'): string {
  return pick({
    // Evaluated once for each statement.
    sqlite: `${alias}.workflow = (select number from workflow where team_id = $1 and id = ${id})`,
    postgres: `${alias}.team_id = $1 and ${alias}.workflow_id = ${id}`,
  });
}

/** SQL conditions that select the rows of a workflow by an index. */
export function ofWorkflow(
  pick: Pick,
  index: 'added' | keyof typeof ONLY,
  alias = 'record',
  id = '$2',
): string {
  const key = (team: string, workflow: string) => `'${index} ' || ${team} || ' ' || ${workflow}`;
  const workflow = pick({
    sqlite: inWorkflow(pick, alias, id),
    postgres:
      `${alias}.team_id = $1 and ` +
      `${key(`${alias}.team_id`, `${alias}.workflow_id`)} = ${key('$1', `${id}::text`)}`,
  });
  if (index === 'added') return workflow;
  const [before, after] = pick(ONLY[index]);
  return `${workflow} and ${before}${alias}.removed_in${after}`;
}

/**
 * SQL condition that a row has an id, written in such a way that it matches the indexes `current` and `closed`. `value`
 * is an SQL expression.
 */
export function hasId(pick: Pick, value: string, alias = 'record'): string {
  const same = `${alias}.id = ${value}`;
  return pick({ sqlite: same, postgres: `${idKey(`${alias}.id`)} = ${idKey(value)} and ${same}` });
}

/**
 * SQL for an id in the form in which PostgreSQL's indexes contain it. An index row holds at most about 2,700 bytes, and
 * an id may have 1,024 characters, so a long id is shortened to its beginning and a digest. No shortened id equals a
 * short id.
 */
function idKey(id: string): string {
  return `case when octet_length(${id}) <= 256 then ${id} else left(${id}, 256) || md5(${id}) end`;
}

const MAX_KEY_BYTES = 256;

/** The key of a record's id in other tables. An id may be longer than what PostgreSQL's indexes accept. */
export function recordKey(id: string): string {
  return Buffer.byteLength(id) <= MAX_KEY_BYTES ? `=${id}` : `#${hash('sha256', id)}`;
}

/**
 * Call this in a transaction that reads the first rows of an index. Without it, PostgreSQL's planner may expect few
 * rows, and then fetches and sorts all of them (measured: 3.4 s instead of 0.6 s to prune 45,000 rows, 500 at a time).
 */
export async function inOrder(db: Sql): Promise<void> {
  const statement = db.pick({ sqlite: undefined, postgres: 'set local enable_bitmapscan = off' });
  if (statement !== undefined) await db.run(statement);
}
