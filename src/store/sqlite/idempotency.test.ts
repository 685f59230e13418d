/** Expired idempotency keys are deleted in small steps. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { silentLogger } from '../../observe/log.ts';
import { definition } from '../conformance/setup.ts';
import { type CallResult, runBatch } from './batch.ts';
import { Database } from './database.ts';
import { migrate } from './migrate.ts';

const DAY_MS = 24 * 3_600_000;

let root: string;
let db: Database;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'flowhook-jobs-'));
  const path = join(root, 'flowhook.db');
  migrate({ path, log: silentLogger, now: 0 });
  db = new Database(path, { synchronous: 'OFF' });
  db.run("insert into team (id, slug, created_at) values ('t', 't', 0)");
});
afterEach(async () => {
  db.close();
  await rm(root, { recursive: true });
});

/** Queues a job for each of `count` workflows at time `now`, each with its own idempotency key. */
async function queueWithKeys(prefix: string, count: number, now: number): Promise<CallResult[]> {
  const calls = Array.from({ length: count }, (_, n) => [
    {
      name: 'workflows.apply' as const,
      input: { teamId: 't', id: `${prefix}${n}`, definition: definition(), hash: '', nextRunAt: null },
    },
    {
      name: 'jobs.enqueue' as const,
      input: { teamId: 't', workflowId: `${prefix}${n}`, origin: 'api', idempotencyKey: 'k' },
    },
  ]).flat();
  return (await runBatch(db, { now, publicUrl: '', calls })).results;
}

const keys = () => db.get<{ count: number }>('select count(*) as count from idempotency')?.count;

test('each new idempotency key deletes a few keys that are older than 24 h', async () => {
  assert.ok((await queueWithKeys('old', 30, 0)).every((result) => result.ok));
  await queueWithKeys('young', 5, 1);
  assert.equal(keys(), 35);
  await queueWithKeys('new', 1, DAY_MS);
  const left = keys() ?? 0;
  assert.ok(left < 36 && left > 6, `${left} keys remain after the first new one`);
  await queueWithKeys('newer', 10, DAY_MS);
  assert.equal(keys(), 16);
});
