/** The migration to stored bytes. */
import assert from 'node:assert/strict';
import { cp, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { silentLogger } from '../../observe/log.ts';
import { MIGRATIONS } from '../migrations.ts';
import { Database } from './database.ts';
import { migrate } from './migrate.ts';

let root: string;
let path: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'flowhook-quotas-'));
  path = join(root, 'flowhook.db');
});
afterEach(() => rm(root, { recursive: true }));

test('the migration counts the bytes of current versions', async () => {
  const before = join(root, 'before');
  await cp(MIGRATIONS, before, { recursive: true });
  for (const name of await readdir(before)) if (name >= '0012') await rm(join(before, name));
  migrate({ path, log: silentLogger, now: 0, directory: before });
  const db = new Database(path);
  db.exec(`
    insert into team (id, slug, created_at) values ('t', 't', 0);
    insert into workflow (team_id, id, number, definition, definition_hash, current_version, created_at, updated_at)
      values ('t', 'a', 1, '{}', '', 2, 0, 0), ('t', 'empty', 2, '{}', '', 0, 0, 0), ('t', 'b', 3, '{}', '', 1, 0, 0);
    insert into version (team_id, workflow_id, number, job_id, total, added, changed, removed, largest, published_at)
      values ('t', 'a', 1, 'j', 2, 2, 0, 0, 9, 0), ('t', 'a', 2, 'j', 2, 0, 1, 0, 9, 0), ('t', 'b', 1, 'j', 1, 1, 0, 0, 9, 0);
    insert into record (workflow, seq, added_in, removed_in, id, body)
      values (1, 1, 1, 2, 'a', 'before'), (1, 1, 2, null, 'a', 'äöü'), (1, 2, 1, 3, 'b', 'four'),
             (1, 3, 3, null, 'c', 'of a run under way'), (3, 1, 1, null, 'a', 'x');
  `);
  db.close();
  migrate({ path, log: silentLogger, now: 0 });
  const migrated = new Database(path);
  const counted = migrated
    .all<{ bytes: number | null }>('select bytes from version order by workflow_id, number')
    .map(({ bytes }) => bytes);
  migrated.close();
  assert.deepEqual(counted, [null, 10, 1]);
});
