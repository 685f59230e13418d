/** `kill -9` while 500 versions are pruned: every readable version stays whole, and the next pruning finishes the work. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import type { WorkflowRef } from '../../src/model/workflow.ts';
import { silentLogger } from '../../src/observe/log.ts';
import { allSteps, makeWorkflow, publishRun, readVersion } from '../../src/store/conformance/setup.ts';
import { openStore } from '../../src/store/open.ts';
import type { Store } from '../../src/store/store.ts';
import { testDatabase } from '../support/test-database.ts';

const VERSIONS = 500;
const KEPT = 5;
const RECORDS = 12;
const PROGRAM = join(import.meta.dirname, '../support/faults/prune-in-steps.ts');
const HOUR_MS = 3_600_000;

/** A version changes all records but two. */
const namesIn = (version: number) =>
  Object.fromEntries(
    Array.from({ length: RECORDS }, (_, n) => [`r${n}`, n < 2 ? `same ${n}` : `${version} ${n}`]),
  );

test('a process that is killed while it prunes leaves every readable version whole', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-prune-'));
  await mkdir(join(directory, 'data'));
  const database = await testDatabase(directory);
  t.after(async () => {
    await database.drop();
    await rm(directory, { recursive: true, force: true });
  });
  const open = (clock = Date.now) =>
    openStore(database.url, { clock, publicUrl: () => '', log: silentLogger });

  const past = await open(() => Date.now() - 2 * HOUR_MS);
  const at = await makeWorkflow(past, { keep: { versions: VERSIONS, days: 90 } });
  for (let version = 1; version <= VERSIONS; version++) await publishRun(past, at, namesIn(version));
  await makeWorkflow(past, { keep: { versions: KEPT, days: 90 } });
  await past.close();

  // A step deletes at most 50 of 4,940 rows.
  for (const steps of [1, 7, 30, 2, 20]) {
    await killedAfter(steps, [database.url, at.teamId, at.workflowId]);
    const store = await open();
    await checkVersions(store, at);
    await store.close();
  }
  const store = await open();
  const retention = { keepVersions: 10, keepMs: Number.MAX_SAFE_INTEGER, graceMs: 0, limit: 500 };
  await allSteps(store.records.prune, { ...at, ...retention });
  assert.equal(await checkVersions(store, at), VERSIONS - KEPT + 1);
  const { found } = await store.records.prunable({ teamId: at.teamId, ...retention, limit: 10 });
  assert.deepEqual(found, []);
  assert.equal((await store.records.versions({ ...at, limit: 1_000 })).length, KEPT);
  assert.equal(
    (await store.records.recordChanges({ ...at, recordId: 'r5', limit: 1_000 })).rows.length,
    KEPT,
  );
  await store.close();
});

/** Starts the program, and kills it after this many steps. */
async function killedAfter(steps: number, args: readonly string[]): Promise<void> {
  const child = spawn(process.execPath, [PROGRAM, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  const exited = once(child, 'exit');
  let left = steps;
  createInterface({ input: child.stdout }).on('line', () => {
    left -= 1;
    if (left === 0) child.kill('SIGKILL');
  });
  const [, signal] = await exited;
  assert.deepEqual([signal, left <= 0], ['SIGKILL', true]);
}

/** Checks some of the readable versions, and returns the oldest. */
async function checkVersions(store: Store, at: WorkflowRef): Promise<number> {
  const { number, oldest } = (await store.records.version(at)) ?? { number: 0, oldest: 0 };
  assert.equal(number, VERSIONS);
  for (const version of new Set([oldest, oldest + 1, Math.floor((oldest + number) / 2), number])) {
    if (version < 1 || version > number) continue;
    const expected = Object.entries(namesIn(version)).map(([id, name]) => ({ id, name }));
    assert.deepEqual(await readVersion(store, { ...at, version }, 100), expected, `version ${version}`);
  }
  return oldest;
}
