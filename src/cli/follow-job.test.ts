/** The output of following a job without a terminal. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Flowhook, Job } from '../../client/src/flowhook-client.ts';
import { followJob } from './follow-job.ts';
import { changeWords, liveWords, resultWords } from './job-words.ts';

const WHY =
  'The command tap was not found in any of the 2 folders of PATH on this machine. Install it, or specify its full path';

const QUEUED: Job = {
  id: 'job_1',
  workflowId: 'people',
  state: 'queued',
  origin: 'cli',
  attempt: 0,
  priority: 0,
  nextAttemptAt: null,
  cancelRequestedAt: null,
  reason: null,
  error: null,
  progress: null,
  version: null,
  records: null,
  quarantined: null,
  findings: null,
  queuedAt: new Date(0).toISOString(),
  startedAt: null,
  finishedAt: null,
};
const RETRYING: Job = {
  ...QUEUED,
  state: 'retrying',
  attempt: 1,
  nextAttemptAt: new Date(3_000).toISOString(),
  reason: 'error',
  error: WHY,
};

test('each state of an attempt is printed once, with the first sentence of its error', async (t) => {
  const soon = { ...RETRYING, nextAttemptAt: new Date(Date.now() + 3_000).toISOString() };
  const failed: Job = { ...RETRYING, state: 'failed', attempt: 2, finishedAt: new Date(9).toISOString() };
  const reads: Job[] = [QUEUED, soon, soon, failed];
  const client = { jobs: { get: async () => reads.shift() } } as unknown as Flowhook;
  let printed = '';
  const write = t.mock.method(process.stderr, 'write', (text: string) => {
    printed += text;
    return true;
  });
  const { signal } = new AbortController();
  const ended = await followJob('job_1', { client, lookMs: 1, signal });
  write.mock.restore();
  assert.equal(ended.error, WHY);
  assert.match(
    printed,
    /^job_1 queued\njob_1 retrying, next attempt in [23](\.\d)? s: The command tap was not found in any of the 2 folders of PATH on this machine\.\n$/,
  );
});

test('on a terminal the live line counts down to the next attempt', () => {
  const words = liveWords({ ...RETRYING, attempt: 2 }, undefined, 1_000);
  assert.equal(words, 'retrying (attempt 2)  next attempt in 2 s');
});

test('a job that a stopping server released is retried without an error', () => {
  const released = { ...RETRYING, reason: null, error: null };
  assert.equal(changeWords(released, 3_000), 'retrying, next attempt now');
  assert.equal(resultWords(released, 3_000), 'next attempt now');
  assert.equal(resultWords(RETRYING, 3_000), `next attempt now after error: ${WHY}`);
});
