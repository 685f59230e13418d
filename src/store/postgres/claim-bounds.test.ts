/** Claims that start at the bounds of a survey miss no waiting or running job. */
import assert from 'node:assert/strict';
import { after, beforeEach, test } from 'node:test';
import { EMPTY_TABLES, makeDatabase } from '../../../test/support/postgres.ts';
import { silentLogger } from '../../observe/log.ts';
import { CLAIM, failAttempt, makeJob, makeRunning, makeWorkflow } from '../conformance/setup.ts';
import { openStore } from '../open.ts';
import { ClaimBounds } from './claim-bounds.ts';
import { openPool } from './connections.ts';
import { Database } from './database.ts';

/** At least one of this many claims takes a survey. */
const CLAIMS = 60;
const MINUTE_MS = 60_000;

const { url, drop } = await makeDatabase();
let nowMs = Date.UTC(2026, 0, 1);
const store = await openStore(url, { clock: () => nowMs, publicUrl: () => '', log: silentLogger });
const pool = openPool({ url, size: 1, log: silentLogger });
after(async () => {
  await Promise.all([store.close(), pool.end()]);
  await drop();
});
beforeEach(() => new Database(pool).exec(EMPTY_TABLES));

/** Advances the clock by a minute and takes a survey; claims no job. */
async function surveyed(): Promise<void> {
  nowMs += MINUTE_MS;
  for (let n = 0; n < CLAIMS; n += 1) {
    assert.deepEqual(await store.jobs.claim({ ...CLAIM, perTeam: 0 }), []);
  }
}

async function claimed(perTeam = 9): Promise<string[]> {
  return (await store.jobs.claim({ ...CLAIM, limit: 9, perTeam })).map(({ job }) => job.id);
}

test('a claim finds a job that has been waiting since before a survey', async () => {
  const job = await makeJob(store, await makeWorkflow(store));
  await surveyed();
  assert.deepEqual(await claimed(), [job.id]);
});

test('a job that has been running since before a survey counts toward the limit', async () => {
  await makeRunning(store, await makeWorkflow(store, { id: 'long' }));
  await surveyed();
  const job = await makeJob(store, await makeWorkflow(store, { id: 'next' }));
  assert.deepEqual(await claimed(1), []);
  assert.deepEqual(await claimed(2), [job.id]);
});

test('a claim finds a job that becomes the first of its workflow after a survey', async () => {
  const at = await makeWorkflow(store, { overlap: 'buffer' });
  const held = await makeRunning(store, at);
  const behind = await makeJob(store, at);
  await surveyed();
  await failAttempt(store, held);
  assert.deepEqual(await claimed(), [behind.id]);
});

test('a claim finds the jobs of a workflow that is resumed after a survey', async () => {
  const at = await makeWorkflow(store);
  const named = { teamId: at.teamId, id: at.workflowId };
  const job = await makeJob(store, at);
  await store.workflows.pause(named);
  await surveyed();
  await store.workflows.resume({ ...named, nextRunAt: null });
  assert.deepEqual(await claimed(), [job.id]);
});

test('a claim finds a job that is queued after the clock was set back', async () => {
  await surveyed();
  nowMs -= 60 * MINUTE_MS;
  const job = await makeJob(store, await makeWorkflow(store));
  assert.deepEqual(await claimed(), [job.id]);
});

test('a claim finds a job that is retried after a survey', async () => {
  const held = await makeRunning(store, await makeWorkflow(store));
  await surveyed();
  await failAttempt(store, held, { follows: { state: 'retrying', runAt: nowMs } });
  assert.deepEqual(await claimed(), [held.jobId]);
});

test('a survey is taken after 60 searches, and after 60 s if searches are rare', () => {
  let elapsedMs = 0;
  const surveys: number[] = [];
  const bounds = new ClaimBounds(() => elapsedMs);
  const search = () => {
    const to = bounds.next(elapsedMs);
    if (to === -1) return;
    surveys.push(elapsedMs);
    bounds.surveyed(to, { firstAt: null, old: ['a'] });
  };
  for (; elapsedMs <= 120_000; elapsedMs += 5_000) search();
  assert.deepEqual(surveys, [60_000, 120_000]);
  assert.deepEqual(bounds.current, { waitingSince: 110_000, runningSince: 110_000, running: ['a'] });
  for (let n = 0; n < 60; n += 1) search();
  assert.deepEqual(surveys, [60_000, 120_000, 125_000]);
});
