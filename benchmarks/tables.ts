/** Direct access to the tables of the measured service, to prepare and verify a benchmark. */
import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import { types } from '../src/store/postgres/connections.ts';
import { numbered } from '../test/support/store/multiply.ts';

export interface Tables {
  /**
   * Copies a workflow, because creating as many by files or calls would take longer than the measurement.
   *
   * @param input.ids the prefix of the new ids, which are numbered starting with `from`
   * @param input.nextRunAt when their schedule is due, in epoch milliseconds
   */
  copyWorkflow(input: {
    like: string;
    ids: string;
    from: number;
    count: number;
    nextRunAt?: number;
  }): Promise<void>;
  /** When the jobs of workflows with this prefix were queued, in epoch milliseconds, earliest first. */
  queuedAt(ids: string): Promise<number[]>;
  /** The number of jobs. */
  jobs(): Promise<number>;
  /** Runs a statement with `?` for its values, and returns its rows. */
  rows(sql: string, values: (string | number)[]): Promise<Record<string, unknown>[]>;
  /** Finishes the work caused by writes, so that it does not run during the measurement. */
  settle(): Promise<void>;
  close(): Promise<void>;
}

export async function openTables(databaseUrl: string): Promise<Tables> {
  const { all, numbersWorkflows, settle, close } = databaseUrl.startsWith('sqlite:')
    ? onSqlite(databaseUrl.slice('sqlite:'.length))
    : await onPostgres(databaseUrl);
  return {
    async copyWorkflow({ like, ids, from, count, nextRunAt }) {
      const [column, value] = numbersWorkflows
        ? ['number,', '(select max(number) from workflow) + 1 + n,']
        : ['', ''];
      await all(
        `insert into workflow (team_id, id, ${column} definition, definition_hash, next_run_at, created_at, updated_at)
         with recursive numbers (n) as (select 0 union all select n + 1 from numbers where n + 1 < ${count})
         select team_id, '${ids}' || (${from} + n), ${value} definition, definition_hash, ${nextRunAt ?? 'next_run_at'}, created_at, updated_at
         from workflow, numbers where id = '${like}'`,
      );
      await settle();
    },
    async queuedAt(ids) {
      const rows = await all(
        `select created_at as at from job where workflow_id like '${ids}%' order by created_at`,
      );
      return rows.map(({ at }) => Number(at));
    },
    async jobs() {
      const [row] = await all('select count(*) as jobs from job');
      return Number(row?.jobs);
    },
    rows: all,
    settle,
    close,
  };
}

interface Driver {
  all(sql: string, values?: (string | number)[]): Promise<Record<string, unknown>[]>;
  /** Whether workflows have a number in addition to their id. */
  numbersWorkflows: boolean;
  settle(): Promise<void>;
  close(): Promise<void>;
}

function onSqlite(path: string): Driver {
  const db = new DatabaseSync(path, { timeout: 10_000 });
  return {
    all: async (sql, values = []) => db.prepare(sql).all(...values),
    numbersWorkflows: true,
    settle: async () => db.exec('pragma wal_checkpoint(passive)'),
    close: async () => db.close(),
  };
}

async function onPostgres(connectionString: string): Promise<Driver> {
  const client = new pg.Client({ connectionString, types });
  await client.connect();
  return {
    all: async (sql, values = []) => (await client.query(numbered(sql), values)).rows,
    numbersWorkflows: false,
    settle: async () => void (await client.query('analyze')),
    close: () => client.end(),
  };
}
