/** The conformance suite on a real PostgreSQL. */
import { after, describe } from 'node:test';
import { makeDatabase } from '../../../test/support/postgres.ts';
import { silentLogger } from '../../observe/log.ts';
import { caseClock, PUBLIC_URL } from '../conformance/setup.ts';
import { type Reusable, testStore } from '../conformance/suite.ts';
import { type TableCounts, type TableCountsRow, toTableCounts } from '../conformance/table-counts.ts';
import { openStore } from '../open.ts';
import { TEAM_TABLES } from '../operations/teams.ts';
import { openPool } from './connections.ts';
import { Database } from './database.ts';

const { url, drop } = await makeDatabase();
const pool = openPool({ url, size: 2, log: silentLogger });
const db = new Database(pool);
/** A table that had more rows than this is vacuumed after it is emptied. */
const LARGE_ROWS = 200;

/** The tables that are emptied before every case; none before the first store has created them. */
let tables: string[] = [];

describe('PostgreSQL', () => {
  // Each model run takes four times as long as on SQLite.
  testStore(open, { modelRuns: 6 });
});

after(async () => {
  await pool.end();
  await drop();
});

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
  const deleted = (await pool.query(
    tables.map((name) => `delete from ${name}`).join('; '),
  )) as unknown as readonly { rowCount: number }[];
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

const TABLE_COUNTS = `
  with r as (
    select *, length(convert_to(body, 'UTF8')) as bytes from record where team_id = $1 and workflow_id = $2
  )
  select staged_added as "stagedAdded", staged_changed as "stagedChanged", staged_removed as "stagedRemoved",
    staged_bytes as "stagedBytes", version.bytes as "versionBytes",
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

async function inspect({ teamId, workflowId }: { teamId: string; workflowId: string }): Promise<TableCounts> {
  return toTableCounts((await db.get<TableCountsRow>(TABLE_COUNTS, teamId, workflowId)) as TableCountsRow);
}
