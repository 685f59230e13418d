/** Tasks on a whole database: copies, checks of restored databases, and scrubbing after an erasure. */
import { type Logger, silentLogger } from '../../observe/log.ts';
import type { Inspection } from '../backup-files.ts';
import { TABLES, type Tables } from '../copy/tables.ts';
import { CONTENTS, type Contents, inspectionOf, unreadable, VERSIONS } from '../inspection.ts';
import { CONTENT_TABLES } from '../operations/erasure/find-content.ts';
import type { Scrubbed } from '../store.ts';
import { openPool } from './connections.ts';
import { Database, inTransaction } from './database.ts';
import { isOutside, unusable } from './failures.ts';
import { lookAtSchema, migrate } from './migrate.ts';

/**
 * Maximum time for a statement, in milliseconds. Counting or rewriting a large table takes longer than the service's
 * limit for its own statements.
 */
const STATEMENT_MS = 3_600_000;

/** @param options.make whether this database is the target. If so, its tables are created if necessary */
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
    inUse: () => inTransaction(pool, nodesUsing),
    read: (read) =>
      inTransaction(
        pool,
        async (db) => {
          // A transaction here may be idle for long, because it waits for the database at the other end of the copy.
          // Tables are read by their primary keys, because the planner has no statistics about recently filled tables.
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
 * Finds nodes that use the database; returns how many, and what to do first. Running nodes have leases. Idle nodes have connections, which a pooler would hide.
 * Only connections opened at least 2 s before this one count, so that this process does not find itself.
 */
export async function nodesUsing(db: Database): Promise<string | undefined> {
  const held = await db.get<{ leases: number }>(
    `with present as (select (extract(epoch from clock_timestamp()) * 1000)::bigint as at)
     select
       (select count(*) from job, present where state = 'running' and lease_until > at)
         + (select count(*) from lane, present where node_id is not null and lease_until > at)
         + (select count(*) from chore, present where lease_until > at) as leases`,
  );
  // A statement of its own: with distributed tables in it, Citus would demand a superuser for pg_stat_activity.
  const open = await db.get<{ connections: number }>(
    `select count(*) as connections from pg_stat_activity
     where datname = current_database() and application_name = 'flowhook' and backend_start <
       (select backend_start - interval '2 seconds' from pg_stat_activity where pid = pg_backend_pid())`,
  );
  const { leases, connections } = { leases: held?.leases ?? 0, connections: open?.connections ?? 0 };
  if (leases + connections === 0) return undefined;
  return (
    `Nodes are using the database (${leases} leases, ${connections} connections). ` +
    'Stop the nodes, wait half a minute until their leases expire'
  );
}

/** Checks a restored database. Reads all of it in one snapshot, and reports its content. */
export async function verifyDatabase(url: string): Promise<Inspection> {
  const { found: schema } = await lookAtSchema(url);
  if (schema === 0) return unreadable(0, 'This is not a flowhook database: it has no tables');
  const pool = openPool({ url, size: 1, log: silentLogger, answerMs: STATEMENT_MS });
  try {
    return await inTransaction(
      pool,
      async (db) => inspectionOf(schema, (await db.get(CONTENTS)) as Contents, await db.all(VERSIONS)),
      { isolation: 'repeatable read read only', statementMs: STATEMENT_MS },
    );
  } catch (error) {
    throw unusable(error);
  } finally {
    await pool.end();
  }
}

/**
 * Removes erased content from the files of the tables, as far as a client can. After an ordinary deletion, the bytes
 * stay in the files until they are overwritten. Copies in the write-ahead log, in replicas and in backups are out of
 * reach.
 *
 * Rewrites the tables, unless they are larger than `rewriteBytes`. Rewriting takes about 1 s per 100 MB, and locks one
 * table at a time. A table that cannot be locked within 2 s is skipped, because other calls would wait behind the
 * request for the lock.
 */
export async function scrub({
  url,
  log,
  rewriteBytes,
}: {
  url: string;
  log: Logger;
  rewriteBytes: number;
}): Promise<Scrubbed> {
  const pool = openPool({ url, size: 1, log, answerMs: STATEMENT_MS });
  try {
    const size = await new Database(pool).get<{ bytes: number; ours: boolean }>(
      `select sum(pg_total_relation_size(oid))::bigint as bytes, bool_and(pg_has_role(relowner, 'usage')) as ours
       from pg_class where oid = any($1::regclass[])`,
      CONTENT_TABLES,
    );
    const isAllowed = size?.ours === true && size.bytes <= rewriteBytes;
    for (const table of isAllowed ? CONTENT_TABLES : []) {
      // The statement is not `vacuum full`, which cannot run in a transaction. Only a transaction can limit the wait
      // for a lock.
      const rewrite = `cluster ${table} using ${table}_pkey`;
      await inTransaction(pool, (db) => db.exec(rewrite), { statementMs: STATEMENT_MS });
    }
    return { logEmptied: null, rewritten: isAllowed, tracesLeft: null };
  } catch (error) {
    if (!isOutside(error)) throw error;
    return { logEmptied: null, rewritten: false, tracesLeft: null };
  } finally {
    await pool.end();
  }
}
