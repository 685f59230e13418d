/** Opens stores on a PostgreSQL database for the conformance suite, and empties its tables between the cases. */
import { silentLogger } from '../../../src/observe/log.ts';
import { caseClock, PUBLIC_URL } from '../../../src/store/conformance/setup.ts';
import type { Reusable } from '../../../src/store/conformance/suite.ts';
import {
  type TableCounts,
  type TableCountsRow,
  toTableCounts,
} from '../../../src/store/conformance/table-counts.ts';
import { openStore } from '../../../src/store/open.ts';
import { TEAM_TABLES } from '../../../src/store/operations/teams.ts';
import { openPool } from '../../../src/store/postgres/connections.ts';
import { Database } from '../../../src/store/postgres/database.ts';

/** A table that had more rows than this is vacuumed after it is emptied. */
const LARGE_ROWS = 200;

/** Citus deletes from one shard after the other, so that one transaction can empty all kinds of tables. */
const IN_SEQUENCE = `set local citus.multi_shard_modify_mode = 'sequential'`;

/** @returns `open`, for `testStore`, and `end`, which closes the connections of this file */
export function storesOn(url: string): { open: () => Promise<Reusable>; end: () => Promise<void> } {
  const pool = openPool({ url, size: 2, log: silentLogger });
  const db = new Database(pool);
  /** The tables that are emptied before every case; none before the first store has created them. */
  let tables: string[] = [];
  return { open, end: () => pool.end() };

  async function open(): Promise<Reusable> {
    const options = { clock: caseClock.now, publicUrl: () => PUBLIC_URL, log: silentLogger, own: true };
    // The tables are emptied before the store is opened, because an open store caches rows.
    await empty();
    let store = await openStore(url, options);
    return {
      store,
      current: () => store,
      reopen: async () => {
        await store.close();
        store = await openStore(url, options);
        return store;
      },
      inspect,
      statement: (text) => db.all(text),
      rows,
      advance: caseClock.advance,
      another: () => openStore(url, options),
      empty,
      close: () => store.close(),
    };
  }

  async function empty(): Promise<void> {
    caseClock.toNextMidnight();
    if (tables.length === 0) tables = await tableNames();
    // Not `truncate`, which creates a new file for every table and index: 60 ms per case instead of 5.
    const statements = ['begin', IN_SEQUENCE, ...tables.map((name) => `delete from ${name}`), 'commit'];
    const [, , ...deleted] = (await pool.query(statements.join('; '))) as unknown as { rowCount: number }[];
    // Many dead rows would slow down every following case.
    const large = tables.filter((_, n) => (deleted[n]?.rowCount ?? 0) > LARGE_ROWS);
    if (large.length > 0) await db.exec(`vacuum ${large.join(', ')}`);
  }

  async function tableNames(): Promise<string[]> {
    const found = await db.all<{ name: string }>(
      `select tablename as name from pg_tables where schemaname = 'public' and tablename <> 'schema_version'
       order by tablename = 'team'`, // Other tables reference it.
    );
    return found.map(({ name }) => name);
  }

  async function rows(): Promise<Record<string, number>> {
    const names = ['team', 'lane', ...TEAM_TABLES.map((table) => table.name)];
    const counts = names.map((name) => `select '${name}' as name, count(*) as count from ${name}`);
    const found = await db.all<{ name: string; count: number }>(counts.join(' union all '));
    return Object.fromEntries(found.map(({ name, count }) => [name, count]));
  }

  async function inspect({
    teamId,
    workflowId,
  }: {
    teamId: string;
    workflowId: string;
  }): Promise<TableCounts> {
    return toTableCounts((await db.get<TableCountsRow>(TABLE_COUNTS, teamId, workflowId)) as TableCountsRow);
  }
}

const TABLE_COUNTS = `
  with r as (
    select *, length(convert_to(body, 'UTF8')) as bytes from record where team_id = $1 and workflow_id = $2
  )
  select staged_added as "stagedAdded", staged_changed as "stagedChanged", staged_removed as "stagedRemoved",
    staged_bytes as "stagedBytes", staged_replaced as "stagedReplaced", version.bytes as "versionBytes",
    (select count(*) from r where added_in = current_version + 1) as written,
    (select count(*) from r where removed_in = current_version + 1) as closed,
    (select count(*) from r old join r new using (seq)
     where old.removed_in = current_version + 1 and new.added_in = old.removed_in) as replaced,
    (select sum(bytes) from r where added_in = current_version + 1) as "writtenBytes",
    (select sum(bytes) from r where removed_in = current_version + 1) as "closedBytes",
    (select sum(bytes) from r where added_in <= current_version
       and (removed_in is null or removed_in > current_version)) as "currentBytes",
    (select count(*) from r where added_in <= current_version) as rows,
    (select count(*) from version where team_id = $1 and workflow_id = $2) as versions
  from workflow
  left join version on version.team_id = $1 and version.workflow_id = $2 and version.number = current_version
  where workflow.team_id = $1 and workflow.id = $2`;
