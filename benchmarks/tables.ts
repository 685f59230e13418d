/** The tables of a Flowhook that is measured, written and read past it: what a benchmark needs before and after. */
import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';

export interface Tables {
  /**
   * Makes workflows that are as one that there is: so many files, or calls, would take longer than what is measured.
   * @param input.ids their ids begin so; `from`, and what follows, comes behind it
   * @param input.nextRunAt when their schedule is due, in epoch milliseconds
   */
  copyWorkflow(input: {
    like: string;
    ids: string;
    from: number;
    count: number;
    nextRunAt?: number;
  }): Promise<void>;
  /** When each job was queued of the workflows whose ids begin so, in epoch milliseconds, earliest first. */
  queuedAt(ids: string): Promise<number[]>;
  /** How many jobs there are. */
  jobs(): Promise<number>;
  close(): Promise<void>;
}

export async function openTables(databaseUrl: string): Promise<Tables> {
  const { all, numbered, settle, close } = databaseUrl.startsWith('sqlite:')
    ? onSqlite(databaseUrl.slice('sqlite:'.length))
    : await onPostgres(databaseUrl);
  return {
    async copyWorkflow({ like, ids, from, count, nextRunAt }) {
      const [column, value] = numbered
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
    close,
  };
}

interface Driver {
  all(sql: string): Promise<Record<string, unknown>[]>;
  /** Whether a workflow has a number there, besides its id. */
  numbered: boolean;
  /** Ends what writing so much would leave to be done while something is measured. */
  settle(): Promise<void>;
  close(): Promise<void>;
}

function onSqlite(path: string): Driver {
  const db = new DatabaseSync(path, { timeout: 10_000 });
  return {
    all: async (sql) => db.prepare(sql).all(),
    numbered: true,
    settle: async () => db.exec('pragma wal_checkpoint(passive)'),
    close: async () => db.close(),
  };
}

async function onPostgres(connectionString: string): Promise<Driver> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  return {
    all: async (sql) => (await client.query(sql)).rows,
    numbered: false,
    settle: async () => void (await client.query('analyze workflow')),
    close: () => client.end(),
  };
}
