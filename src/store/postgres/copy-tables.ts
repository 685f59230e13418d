/** Opens a PostgreSQL database for `store/copy/`. */
import type { Logger } from '../../observe/log.ts';
import { TABLES, type Tables } from '../copy/tables.ts';
import { Database, inTransaction, openPool } from './database.ts';
import { migrate } from './migrate.ts';
import { unusable } from './unusable.ts';

/** In ms. Counting the rows of a large table takes longer than a statement of the service may. */
const STATEMENT_MS = 3_600_000;

/** @param options.make whether to create the tables when there are none */
export async function openPostgresTables(options: {
  url: string;
  log: Logger;
  make: boolean;
}): Promise<Tables> {
  const { url, log, make } = options;
  const pool = openPool({ url, size: 2, log, answerMs: STATEMENT_MS });
  try {
    if (make) await migrate({ url, pool, log });
    await new Database(pool).get('select 1 from instance limit 1');
  } catch (error) {
    await pool.end();
    throw unusable(error);
  }
  return {
    inUse: () => inTransaction(pool, inUse),
    read: (read) =>
      inTransaction(
        pool,
        async (db) => {
          // It may wait for the other database for long. Tables are read by their primary keys, whatever the planner
          // believes of tables that were filled a moment ago.
          await db.exec(
            'set local idle_in_transaction_session_timeout = 0; set local enable_seqscan = off; ' +
              'set local enable_bitmapscan = off; set local enable_sort = off',
          );
          return read(db);
        },
        { isolation: 'repeatable read read only', statementMs: STATEMENT_MS },
      ),
    write: (write) => inTransaction(pool, write, { statementMs: STATEMENT_MS }),
    analyze: () => new Database(pool).exec(`analyze ${TABLES.map(({ name }) => name).join(', ')}`),
    close: () => pool.end(),
  };
}

/**
 * Nodes are known by their leases, and idle ones by their connections, unless a pooler is in between. Connections of
 * this process are younger than 2 s.
 */
async function inUse(db: Database): Promise<string | undefined> {
  const found = await db.get<{ leases: number; connections: number }>(
    `with present as (select (extract(epoch from clock_timestamp()) * 1000)::bigint as at)
     select
       (select count(*) from job, present where state = 'running' and lease_until > at)
         + (select count(*) from lane, present where node_id is not null and lease_until > at)
         + (select count(*) from chore, present where lease_until > at) as leases,
       (select count(*) from pg_stat_activity
        where datname = current_database() and application_name = 'flowhook' and backend_start <
          (select backend_start - interval '2 seconds' from pg_stat_activity where pid = pg_backend_pid()))
         as connections`,
  );
  if (found === undefined || found.leases + found.connections === 0) return undefined;
  return (
    `Nodes use the database that is to be copied (${found.leases} leases, ${found.connections} connections). Stop ` +
    'them, wait half a minute until their leases are over, and copy again; --force copies what is there now, and what ' +
    'nodes write from now on is not in the copy'
  );
}
