/** What is left of jobs that ended long ago, on a real store. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLogger } from '../observe/log.ts';
import { openEmptyStore } from '../store/conformance/empty-store.ts';
import { failAttempt, makeRunning, makeWorkflow } from '../store/conformance/setup.ts';
import { jobRetention } from './retention.ts';

const DAY_MS = 24 * 3_600_000;

test('keeps the newest jobs of each workflow for a while, and the last one for good', async (t) => {
  let ahead = 0;
  const { store } = await openEmptyStore(t, { clock: () => Date.now() + ahead });
  const many = await makeWorkflow(store, { id: 'many' });
  const few = await makeWorkflow(store, { id: 'few' });
  for (let n = 0; n < 30; n++) {
    const held = await makeRunning(store, many);
    await store.jobs.report({ held, lines: [{ seq: 1, at: 0, level: 'info', text: `run ${n}` }] });
    await failAttempt(store, held);
  }
  await failAttempt(store, await makeRunning(store, few));
  const count = async (at: typeof many) => (await store.jobs.list({ ...at, limit: 100 })).length;
  const retention = jobRetention({
    store,
    log: silentLogger,
    random: () => 0,
    nodeId: 'local',
    keepJobs: 5,
    keepMs: 30 * DAY_MS,
  });
  await retention.tick();
  assert.deepEqual([await count(many), await count(few)], [5, 1]);
  ahead = 31 * DAY_MS;
  await makeRunning(store, few);
  await retention.tick();
  assert.deepEqual([await count(many), await count(few)], [1, 2]);
});
