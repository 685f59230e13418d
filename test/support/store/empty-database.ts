/** A SQLite database with all tables and no rows, for tests of single statements. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { silentLogger } from '../../../src/observe/log.ts';
import { Database } from '../../../src/store/sqlite/database.ts';
import { migrate } from '../../../src/store/sqlite/migrate.ts';

/** Opens an empty database, which is closed and deleted after the test. */
export async function openEmptyDatabase(t: TestContext): Promise<Database> {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-empty-'));
  const path = join(directory, 'flowhook.db');
  migrate({ path, log: silentLogger, now: 1 });
  const db = new Database(path, { synchronous: 'OFF' });
  t.after(async () => {
    db.close();
    await rm(directory, { recursive: true });
  });
  return db;
}
