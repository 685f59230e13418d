/**
 * Removes erased content from the tables' files, as far as a client can: an ordinary deletion leaves the bytes there
 * until they are overwritten. The copies in the write-ahead log, replicas and backups cannot be reached from here.
 */
import type { Logger } from '../../observe/log.ts';
import type { Scrubbed } from '../erasure-operations.ts';
import { CONTENT_TABLES } from '../operations/find-content.ts';
import { Database, inTransaction, openPool } from './database.ts';
import { isOutside } from './failures.ts';

/** Rewriting a table takes about 1 s for each 100 MB. */
const REWRITE_MS = 3_600_000;

/**
 * Rewrites the tables unless they are larger than `rewriteBytes`. Each is locked meanwhile; when one cannot be locked
 * within 2 s it is left, because everybody else would wait behind this one.
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
  const pool = openPool({ url, size: 1, log, answerMs: REWRITE_MS });
  try {
    const size = await new Database(pool).get<{ bytes: number; ours: boolean }>(
      `select sum(pg_total_relation_size(oid))::bigint as bytes, bool_and(pg_has_role(relowner, 'usage')) as ours
       from pg_class where oid = any($1::regclass[])`,
      CONTENT_TABLES,
    );
    const isAllowed = size?.ours === true && size.bytes <= rewriteBytes;
    for (const table of isAllowed ? CONTENT_TABLES : []) {
      // Not `vacuum full`, which cannot run in a transaction and so cannot limit how long it waits for the lock.
      const rewrite = `cluster ${table} using ${table}_pkey`;
      await inTransaction(pool, (db) => db.exec(rewrite), { statementMs: REWRITE_MS });
    }
    return { logEmptied: null, rewritten: isAllowed, tracesLeft: null };
  } catch (error) {
    if (!isOutside(error)) throw error;
    return { logEmptied: null, rewritten: false, tracesLeft: null };
  } finally {
    await pool.end();
  }
}
