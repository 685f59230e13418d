/** A SQLite database with all tables and no rows, for tests of single statements. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { silentLogger } from '../../../src/observe/log.ts';
import { Database } from '../../../src/store/sqlite/database.ts';
import { migrate } from '../../../src/store/sqlite/migrate.ts';

/** Makes the file of an empty database, which is deleted after the test, and returns its path. */
export async function emptyDatabaseFile(t: TestContext): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-empty-'));
  t.after(() => rm(directory, { recursive: true }));
  const path = join(directory, 'flowhook.db');
  migrate({ path, log: silentLogger, now: 1 });
  return path;
}

/** Opens an empty database, which is closed and deleted after the test. */
export async function openEmptyDatabase(t: TestContext): Promise<Database> {
  const db = new Database(await emptyDatabaseFile(t), { synchronous: 'OFF' });
  t.after(() => db.close());
  return db;
}
