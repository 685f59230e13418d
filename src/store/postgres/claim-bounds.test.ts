/** Claims that start behind the bounds of a survey miss no job that waits or runs. */
import assert from 'node:assert/strict';
import { after, beforeEach, test } from 'node:test';
import { EMPTY_TABLES, makeDatabase } from '../../../test/support/postgres.ts';
import { silentLogger } from '../../observe/log.ts';
import { CLAIM, failAttempt, makeJob, makeRunning, makeWorkflow } from '../conformance/setup.ts';
import { openStore } from '../open.ts';
import { Database, openPool } from './database.ts';

/** At least one of so many claims takes a survey. */
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

/** A minute later, after a survey. Claims nothing. */
async function surveyed(): Promise<void> {
  nowMs += MINUTE_MS;
  for (let n = 0; n < CLAIMS; n += 1) {
    assert.deepEqual(await store.jobs.claim({ ...CLAIM, perTeam: 0 }), []);
  }
}

async function claimed(perTeam = 9): Promise<string[]> {
  return (await store.jobs.claim({ ...CLAIM, limit: 9, perTeam })).map(({ job }) => job.id);
}

test('what waits for long is found', async () => {
  const job = await makeJob(store, await makeWorkflow(store));
  await surveyed();
  assert.deepEqual(await claimed(), [job.id]);
});

test('what runs for long counts', async () => {
  await makeRunning(store, await makeWorkflow(store, { id: 'long' }));
  await surveyed();
  const job = await makeJob(store, await makeWorkflow(store, { id: 'next' }));
  assert.deepEqual(await claimed(1), []);
  assert.deepEqual(await claimed(2), [job.id]);
});

test('what moves up after long is found', async () => {
  const at = await makeWorkflow(store, { overlap: 'buffer' });
  const held = await makeRunning(store, at);
  const behind = await makeJob(store, at);
  await surveyed();
  await failAttempt(store, held);
  assert.deepEqual(await claimed(), [behind.id]);
});

test('what a paused workflow had waiting is found when it goes on', async () => {
  const at = await makeWorkflow(store);
  const named = { teamId: at.teamId, id: at.workflowId };
  const job = await makeJob(store, at);
  await store.workflows.pause(named);
  await surveyed();
  await store.workflows.resume({ ...named, nextRunAt: null });
  assert.deepEqual(await claimed(), [job.id]);
});

test('what is queued after the clock was set back is found', async () => {
  await surveyed();
  nowMs -= 60 * MINUTE_MS;
  const job = await makeJob(store, await makeWorkflow(store));
  assert.deepEqual(await claimed(), [job.id]);
});

test('what comes back for another attempt is found', async () => {
  const held = await makeRunning(store, await makeWorkflow(store));
  await surveyed();
  await failAttempt(store, held, { follows: { state: 'retrying', runAt: nowMs } });
  assert.deepEqual(await claimed(), [held.jobId]);
});
