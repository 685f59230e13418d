/** Which workflows and webhooks need attention. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Job, WebhookDetail, Workflow } from '../../../../client/src/flowhook-client.ts';
import { suspects, troubles } from './attention.ts';

const job = (changes: Partial<Job>): Job =>
  ({
    id: 'job_1',
    workflowId: 'people',
    state: 'failed',
    error: null,
    finishedAt: '2026-01-01T00:00:01Z',
    ...changes,
  }) as Job;
const workflow = (id: string, lastJob: Job | null, changes: Partial<Workflow> = {}) =>
  ({ id, lastJob, paused: false, staleSince: null, freshUntil: null, ...changes }) as Workflow;
const webhook = (changes: Partial<WebhookDetail>) =>
  ({
    id: 'wh_1',
    url: 'https://a.test',
    state: 'active',
    failingSince: null,
    pausedAt: null,
    lastSuccessAt: null,
    breaker: { state: 'closed', since: null, nextAttemptAt: null, reason: null },
    ...changes,
  }) as WebhookDetail;

test('includes a workflow only if its last run failed', () => {
  const failed = job({ error: 'The command failed:\nno such host\n' });
  assert.deepEqual(
    troubles(
      [workflow('people', failed), workflow('well', job({ state: 'finished' })), workflow('new', null)],
      [],
    ),
    [
      {
        kind: 'workflow',
        id: 'people',
        state: 'failed',
        jobId: 'job_1',
        sinceMs: Date.parse('2026-01-01T00:00:01Z'),
        why: 'no such host',
      },
    ],
  );
});

test('includes a stale workflow, unless it is paused', () => {
  const stale = { staleSince: '2026-01-02T06:00:30Z', freshUntil: '2026-01-02T06:00:00Z' };
  const resting = { ...stale, freshUntil: null, paused: true };
  const found = troubles(
    [
      workflow('people', null, stale),
      workflow('resting', null, resting),
      workflow('failing', job({}), stale),
    ],
    [],
  );
  assert.deepEqual(
    found.map(({ id, state }) => [id, state]),
    [
      ['people', 'stale'],
      ['failing', 'failed'],
    ],
  );
});

test('includes failing and paused webhooks, newest problem first', () => {
  const found = troubles(
    [workflow('people', job({}))],
    [
      webhook({ id: 'wh_well' }),
      webhook({ id: 'wh_new', failingSince: '2026-01-05T00:00:00Z' }),
      webhook({
        id: 'wh_held',
        failingSince: '2026-01-04T00:00:00Z',
        breaker: {
          state: 'open',
          since: null,
          nextAttemptAt: null,
          reason: 'The endpoint has failed 12 times',
        },
      }),
      webhook({
        id: 'wh_failing',
        failingSince: '2026-01-03T00:00:00Z',
        lastSuccessAt: '2026-01-02T00:00:00Z',
      }),
      webhook({
        id: 'wh_paused',
        state: 'paused',
        pausedAt: '2026-01-02T00:00:00Z',
        pausedReason: 'five days',
      }),
    ],
  );
  assert.deepEqual(
    found.map(({ id, why }) => [id, why]),
    [
      ['wh_new', 'No attempt has succeeded yet'],
      ['wh_held', 'The endpoint has failed 12 times'],
      ['wh_failing', 'Every attempt has failed'],
      ['wh_paused', 'five days'],
      ['people', 'The run failed'],
    ],
  );
});

test('lists a workflow with several failed runs once', () => {
  assert.deepEqual(suspects([job({}), job({ workflowId: 'b' }), job({})]), ['people', 'b']);
});
