/** Every operation that writes is audited, or exempt for a reason given here. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AUDITED } from './audited.ts';
import { WRITES } from './sqlite/batch.ts';

/** The operations without an audit line, by reason. */
const SILENT: Readonly<Record<string, readonly string[]>> = {
  'the service calls it': [
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
    'deliveries.stepReplay',
    'deliveries.expire',
    'deliveries.prune',
    'deliveries.cancelRemoved',
    'lanes.raise',
    'decisions.step',
    'decisions.raise',
    'inspectors.prune',
    'feeds.prune',
    'freshness.markStale',
    'quarantine.prune',
    'audit.prune',
    'usage.count',
    'usage.prune',
    'agenda.visited',
  ],
  'a run calls it, and the job shows the result': [
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
    'quarantine.stage',
  ],
  'it creates a job, which records its origin': ['jobs.enqueue', 'jobs.begin'],
  'it is one step of an operation that writes one line': [
    'teams.delete',
    'erasure.rewrite',
    'erasure.remove',
    'erasure.suppress',
  ],
  'it ends the session of the caller': ['sessions.end'],
  'it stores a request from outside': ['inspectors.storeRequest'],
  'it writes the audit line': ['audit.add'],
};

test('every operation that writes is audited or listed here with a reason', () => {
  const audited = Object.entries(AUDITED).flatMap(([group, operations]) =>
    Object.keys(operations).map((name) => `${group}.${name}`),
  );
  const silent = Object.values(SILENT).flat();
  assert.deepEqual([...audited, ...silent].sort(), [...WRITES.keys()].sort());
});
