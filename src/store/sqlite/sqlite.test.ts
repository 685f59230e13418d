/**
 * The conformance suite on SQLite on disk: everything without waiting for the disk, and whole runs also with
 * `synchronous=FULL`, as in production.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe } from 'node:test';
import { silentLogger } from '../../observe/log.ts';
import { testPublishing } from '../conformance/publish.ts';
import { caseClock, PUBLIC_URL } from '../conformance/setup.ts';
import { type Reusable, sharing, testStore } from '../conformance/suite.ts';
import { type TableCounts, type TableCountsRow, toTableCounts } from '../conformance/table-counts.ts';
import { openStore } from '../open.ts';
import { TEAM_TABLES } from '../operations/teams.ts';
import { Database } from './database.ts';

describe('SQLite, synchronous=OFF', () => {
  testStore(() => open('OFF'), { modelRuns: 16 });
});

describe('SQLite, synchronous=FULL', () => {
  testPublishing(sharing(() => open('FULL')));
});

async function open(synchronous: 'FULL' | 'OFF'): Promise<Reusable> {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-store-'));
  const path = join(directory, 'flowhook.db');
  const options = { clock: caseClock.now, publicUrl: () => PUBLIC_URL, log: silentLogger, synchronous };
  caseClock.toNextMidnight();
  let store = await openStore(`sqlite:${path}`, { ...options, own: true });
  // A second connection. It reads only committed rows, and its deletions look like those of another process.
  const db = new Database(path);
  return {
    store,
    current: () => store,
    reopen: async () => {
      await store.close();
      store = await openStore(`sqlite:${path}`, { ...options, own: true });
      return store;
    },
    inspect: async (at) => inspect(db, at),
    statement: async (text) => db.all(text),
    rows: async () => rows(db),
    advance: caseClock.advance,
    another: () => openStore(`sqlite:${path}`, options),
    empty: async () => {
      // Reads of one turn see one snapshot.
      await new Promise<void>((resolve) => setImmediate(resolve));
      caseClock.toNextMidnight();
      empty(db);
    },
    close: async () => {
      db.close();
      await store.close();
      await rm(directory, { recursive: true });
    },
  };
}

function empty(db: Database): void {
  const tables = db.all<{ name: string }>(
    `select name from sqlite_schema where type = 'table' and (name = 'sqlite_sequence' or name not like 'sqlite%')
     order by name = 'team'`, // Others refer to it.
  );
  db.exec(`begin immediate; ${tables.map(({ name }) => `delete from ${name};`).join(' ')} commit`);
}

function rows(db: Database): Record<string, number> {
  const names = ['team', ...TEAM_TABLES.map(({ name }) => name)];
  const counts = names.map((name) => `select '${name}' as name, count(*) as count from ${name}`);
  const found = db.all<{ name: string; count: number }>(counts.join(' union all '));
  return Object.fromEntries(found.map(({ name, count }) => [name, count]));
}

const TABLE_COUNTS = `
  select staged_added as stagedAdded, staged_changed as stagedChanged, staged_removed as stagedRemoved,
    staged_bytes as stagedBytes, staged_replaced as stagedReplaced, version.bytes as versionBytes,
    (select count(*) from record where workflow = w.number and added_in = current_version + 1) as written,
    (select count(*) from record where workflow = w.number and removed_in = current_version + 1) as closed,
    (select count(*) from record old join record new using (workflow, seq)
     where workflow = w.number and old.removed_in = current_version + 1 and new.added_in = old.removed_in) as replaced,
    (select sum(length(cast(body as blob))) from record
     where workflow = w.number and added_in = current_version + 1) as writtenBytes,
    (select sum(length(cast(body as blob))) from record
     where workflow = w.number and removed_in = current_version + 1) as closedBytes,
    (select sum(length(cast(body as blob))) from record
     where workflow = w.number and added_in <= current_version
       and (removed_in is null or removed_in > current_version)) as currentBytes,
    (select count(*) from record where workflow = w.number and added_in <= current_version) as rows,
    (select count(*) from version where team_id = w.team_id and workflow_id = w.id) as versions
  from workflow w
  left join version on version.team_id = w.team_id and version.workflow_id = w.id and version.number = current_version
  where w.team_id = ? and w.id = ?`;

function inspect(db: Database, { teamId, workflowId }: { teamId: string; workflowId: string }): TableCounts {
  return toTableCounts(db.get<TableCountsRow>(TABLE_COUNTS, teamId, workflowId) as TableCountsRow);
}
