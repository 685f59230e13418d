/**
 * Reads of all teams in a distributed database. Such a statement fails if one server is not available. It is then asked
 * of each shard apart, so that the teams of the other servers are found nevertheless.
 */
import pg from 'pg';
import { type Part, type Sql, type Statement, textOf, type Value, valuesOf } from '../sql.ts';
import type { View } from '../transaction.ts';

/** The only table of a statement, which it may name several times. */
const TABLE = /\bfrom ([a-z_]+)\b/;

/**
 * Returns a view whose statements skip the shards of servers that are not available. Only plain selects from one table
 * work. Their limit applies to each shard, and their order to the rows of each shard.
 */
export function availableShards({ db, ...view }: View): View {
  const all = async <Row>(statement: Statement, ...given: (Value | Part)[]): Promise<Row[]> => {
    const sql = withValues(textOf(statement, given, 'postgres'), valuesOf(given));
    const [, table = ''] = TABLE.exec(sql) ?? [];
    // Citus puts the name of a shard in the place of `%1$s`.
    const ofShard = sql
      .replaceAll('%', '%%')
      .replaceAll(new RegExp(TABLE, 'g'), () => `from %1$s as ${table}`);
    const shards = await db.all<{ success: boolean; result: string | null }>(
      'select success, result from run_command_on_shards($1::text::regclass, $2)',
      table,
      `select json_agg(found) from (${ofShard}) as found`,
    );
    return shards.flatMap(({ success, result }) => (success ? (JSON.parse(result || 'null') ?? []) : []));
  };
  return { ...view, db: { all } as unknown as Sql };
}

/** The statement with its values as literals, because Citus sends it to the shards as text. */
function withValues(sql: string, values: readonly Value[]): string {
  return sql.replace(/\$(\d+)/g, (_, place) => {
    const value = values[Number(place) - 1] ?? null;
    if (value === null) return 'null';
    return typeof value === 'number' ? String(value) : pg.escapeLiteral(String(value));
  });
}
