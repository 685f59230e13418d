/** Every write operation is either audited or exempt for a reason given here. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AUDITED } from './audited.ts';
import { WRITES } from './sqlite/batch.ts';

/** Why operations leave no line, by the words that say so. */
const SILENT: Readonly<Record<string, readonly string[]>> = {
  'the service does it by itself': [
    'instance.claim',
    'instance.lease',
    'teams.ensureSigningKey',
    'keys.used',
    'sessions.prune',
    'sessions.renew',
    'jobs.prune',
    'schedules.fire',
    'records.prune',
    'webhooks.prune',
    'deliveries.settle',
    'deliveries.stepReplays',
    'deliveries.expire',
    'deliveries.prune',
    'deliveries.cancelRemoved',
    'inspectors.prune',
    'audit.prune',
    'usage.count',
    'usage.prune',
  ],
  'a run does it, and its job says what came of it': [
    'jobs.claim',
    'jobs.setProcess',
    'jobs.noteSent',
    'jobs.beat',
    'jobs.fail',
    'jobs.release',
    'jobs.reclaim',
    'jobs.endCanceled',
    'jobs.report',
    'records.sweep',
    'records.stage',
    'records.remove',
    'records.publish',
  ],
  'it makes a job, which is a record of its own with its origin': ['jobs.enqueue', 'jobs.begin'],
  'a step of something that writes one line for all of them': [
    'teams.delete',
    'erasure.rewrite',
    'erasure.remove',
    'erasure.suppress',
  ],
  'it ends only what the one who asks has begun': ['sessions.end'],
  'others send it to us': ['inspectors.storeRequest'],
  'it writes the line': ['audit.add'],
};

test('every operation that writes leaves a line in the audit, or says here why it does not', () => {
  const told = Object.entries(AUDITED).flatMap(([group, operations]) =>
    Object.keys(operations).map((name) => `${group}.${name}`),
  );
  const silent = Object.values(SILENT).flat();
  assert.deepEqual([...told, ...silent].sort(), [...WRITES.keys()].sort());
});
