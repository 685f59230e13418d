/**
 * Brings erased content out of the tables' files, as far as that is in a client's hands: an ordinary deletion leaves
 * its bytes there until something else takes their place. What PostgreSQL keeps elsewhere (its write-ahead log,
 * replicas, backups) nobody can reach from here.
 */
import type { Logger } from '../../observe/log.ts';
import type { Scrubbed } from '../erasure-operations.ts';
import { Database, inTransaction, isOutside, openPool } from './database.ts';
import { CONTENT_TABLES } from './find-content.ts';

/** Everybody else waits behind a lock that is waited for. */
const LOCK_MS = 2_000;
/** To rewrite a table takes some 1 s for each 100 MB. */
const REWRITE_MS = 3_600_000;

/** Rewrites the tables if they are not larger than `rewriteBytes`; each is locked while that lasts. */
export async function scrub({
  url,
  log,
  rewriteBytes,
}: {
  url: string;
  log: Logger;
  rewriteBytes: number;
}): Promise<Scrubbed> {
  const pool = openPool({ url, size: 1, log, answerMs: REWRITE_MS });
  try {
    const size = await new Database(pool).get<{ bytes: number; ours: boolean }>(
      `select sum(pg_total_relation_size(oid))::bigint as bytes, bool_and(pg_has_role(relowner, 'usage')) as ours
       from pg_class where oid = any($1::regclass[])`,
      CONTENT_TABLES,
    );
    let rewritten = size?.ours === true && size.bytes <= rewriteBytes;
    for (const table of CONTENT_TABLES) {
      // `vacuum full` would do as well, but takes no part in a transaction, which a limit of the waiting needs.
      rewritten &&= await inTransaction(pool, (db) => rewrite(db, table), { statementMs: REWRITE_MS });
    }
    return { logEmptied: null, rewritten, tracesLeft: null };
  } catch (error) {
    if (!isOutside(error)) throw error;
    return { logEmptied: null, rewritten: false, tracesLeft: null };
  } finally {
    await pool.end();
  }
}

async function rewrite(db: Database, table: string): Promise<true> {
  await db.exec(`set local lock_timeout = ${LOCK_MS}; cluster ${table} using ${table}_pkey`);
  return true;
}
