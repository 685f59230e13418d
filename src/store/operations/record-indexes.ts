/**
 * The rows of a workflow in `record`, and the index by which they are found.
 *
 * On PostgreSQL a row names its team and its workflow. Each statement says there which index it uses: left to itself,
 * the planner takes any index that it believes to hold few rows, which is what it believes of every new workflow
 * (measured: 1,600 instead of 23,000 records/s, and worse with every batch). So each index except the primary key starts
 * with one expression of its name, team and workflow, and each partial index has its condition in a form of its own.
 * Statements that use the primary key write `removed_in + 0` and `coalesce(removed_in, 0) = 0`, which match none of them.
 *
 * On SQLite a row has the number of its workflow, which keeps its indexes small, and a statement names the index after
 * the table: the planner, which has no statistics, would scan the workflow in the order of `seq`.
 */
import type { Pick, Sql } from '../sql.ts';

/** The rows that a partial index holds. */
const ONLY = {
  current: { sqlite: ['', ' is null'], postgres: ['', ' is null'] },
  closed: { sqlite: ['', ' is not null'], postgres: ['-', ' < 0'] },
  removed: { sqlite: ['', ' is not null'], postgres: ['', ' > 0'] },
};

/**
 * The conditions that select the rows of a workflow of the team `$1` by the primary key.
 *
 * @param id of the workflow, as SQL
 */
export function inWorkflow(pick: Pick, alias = 'record', id = '$2'): string {
  return pick({
    // Evaluated once for each statement.
    sqlite: `${alias}.workflow = (select number from workflow where team_id = $1 and id = ${id})`,
    postgres: `${alias}.team_id = $1 and ${alias}.workflow_id = ${id}`,
  });
}

/** The conditions that select them by this index. */
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

/** The condition that a row has an id, as the indexes `current` and `closed` have it; `value` is an SQL expression. */
export function hasId(pick: Pick, value: string, alias = 'record'): string {
  const same = `${alias}.id = ${value}`;
  return pick({ sqlite: same, postgres: `${idKey(`${alias}.id`)} = ${idKey(value)} and ${same}` });
}

/**
 * An id as PostgreSQL's indexes hold it: a long one is shortened to its beginning and a digest, because an index row
 * holds some 2,700 bytes at most, and an id may have 1,024 characters. No long id has the key of a short one.
 */
function idKey(id: string): string {
  return `case when octet_length(${id}) <= 256 then ${id} else left(${id}, 256) || md5(${id}) end`;
}

/**
 * Call it in a transaction that reads the first rows of an index: where PostgreSQL's planner expects few rows, it would
 * fetch and sort all of them (measured: 3.4 s instead of 0.6 s to prune 45,000 rows, 500 at a time).
 */
export async function inOrder(db: Sql): Promise<void> {
  const statement = db.pick({ sqlite: undefined, postgres: 'set local enable_bitmapscan = off' });
  if (statement !== undefined) await db.run(statement);
}
