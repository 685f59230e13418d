/** What following a job prints where there is no terminal. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Job } from '../model/job.ts';
import type { Store } from '../store/store.ts';
import { followJob } from './follow-job.ts';
import { changeWords, liveWords, resultWords } from './job-words.ts';

const WHY =
  'The command tap was not found in any of the 2 folders of PATH on this machine. Install it, or give its path';

const QUEUED: Job = {
  teamId: 'team_1',
  id: 'job_1',
  workflowId: 'people',
  slot: 0,
  state: 'queued',
  origin: 'cli',
  attempt: 0,
  failures: 0,
  crashes: 0,
  priority: 0,
  runAt: 0,
  cancelRequestedAt: null,
  reason: null,
  error: null,
  progress: null,
  version: null,
  records: null,
  createdAt: 0,
  startedAt: null,
  finishedAt: null,
  trace: null,
};
const RETRYING: Job = { ...QUEUED, state: 'retrying', attempt: 1, runAt: 3_000, reason: 'error', error: WHY };

test('each state of an attempt is one line, however often the job is read, with the first sentence of its error', async () => {
  const reads: Job[] = [RETRYING, RETRYING, { ...RETRYING, state: 'failed', attempt: 2, finishedAt: 9 }];
  let now = 0;
  const store = { now: () => (now += 100), jobs: { get: async () => reads.shift() } } as unknown as Store;
  let printed = '';
  const screen = { write: (text: string) => (printed += text) };
  const ended = await followJob(QUEUED, { store, screen, signal: new AbortController().signal });
  assert.equal(ended.error, WHY);
  assert.match(
    printed,
    /^job_1 queued\njob_1 retrying, next attempt in 2\.\d s: The command tap was not found in any of the 2 folders of PATH on this machine\.\n$/,
  );
});

test('on a terminal the time until the next attempt counts down in the live line', () => {
  assert.equal(liveWords({ ...RETRYING, attempt: 2 }, undefined, 1_000), 'retrying (2)  next attempt in 2 s');
});

test('a job that a stopping server gave back is said to be retried, and not after an error', () => {
  const released = { ...RETRYING, reason: null, error: null };
  assert.equal(changeWords(released, 3_000), 'retrying, next attempt now');
  assert.equal(resultWords(released, 3_000), 'next attempt now');
  assert.equal(resultWords(RETRYING, 3_000), `next attempt now after error: ${WHY}`);
});
