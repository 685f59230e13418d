/** Checks a restored PostgreSQL database: reads all of it in one snapshot, and reports what it holds. */
import { silentLogger } from '../../observe/log.ts';
import type { Inspection } from '../backup.ts';
import { CONTENTS, type Contents, inspectionOf, unreadable, VERSIONS } from '../inspection.ts';
import { inTransaction, openPool } from './database.ts';
import { lookAtSchema } from './migrate.ts';
import { unusable } from './unusable.ts';

/** Counting the rows of a large table takes longer than any statement of the service may. */
const STATEMENT_MS = 3_600_000;

export async function verifyDatabase(url: string): Promise<Inspection> {
  const { found: schema } = await lookAtSchema(url);
  if (schema === 0) return unreadable(0, 'This is no database of flowhook: it has no tables');
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
