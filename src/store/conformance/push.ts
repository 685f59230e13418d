/** Pushes: jobs that run from the start, held by the process that received the request. */
import assert from 'node:assert/strict';
import { FencedError } from '../../model/error.ts';
import type { Store } from '../store.ts';
import {
  allEvents,
  beginPush,
  CLAIM,
  caseWith,
  failAttempt,
  heldOf,
  makeJob,
  makeWorkflow,
  type Open,
  people,
  publish,
  readVersion,
  stageRecords,
} from './setup.ts';

const DAY_MS = 24 * 3_600_000;
const LEASE_MS = 30_000;
const pushed = { source: { type: 'push' } } as const;

export function testPush(open: Open): void {
  const it = caseWith(open);
  const mine = { nodeId: 'node-a', leaseMs: LEASE_MS, idempotencyKey: null };

  it('starts a push as a running job, with the events for queued and started', async ({ store }) => {
    const at = await makeWorkflow(store, pushed);
    const { job, workflow, state } = begun(await store.jobs.begin({ ...at, ...mine }));
    const { origin, attempt, slot, startedAt } = job;
    assert.deepEqual(
      { origin, state: job.state, attempt, slot, startedAt },
      { origin: 'push', state: 'running', attempt: 1, slot: 0, startedAt: store.now() },
    );
    assert.deepEqual([workflow.id, workflow.definition.source, state], ['people', { type: 'push' }, null]);
    assert.deepEqual(await store.jobs.get({ teamId: at.teamId, id: job.id }), job);
    assert.deepEqual(
      (await allEvents(store, at.teamId)).map(({ type, parsed }) => [type, parsed.data.state]),
      [
        ['workflow_queued', 'queued'],
        ['workflow_started', 'running'],
      ],
    );
  });

  it('refuses to queue a push workflow, and to push to any other workflow', async ({ store }) => {
    const at = await makeWorkflow(store, pushed);
    const api = { origin: 'api', idempotencyKey: null } as const;
    assert.deepEqual(await store.jobs.enqueue({ ...at, ...api }), { outcome: 'receives_push' });
    const other = await makeWorkflow(store, { id: 'other' });
    assert.deepEqual(await store.jobs.begin({ ...other, ...mine }), { outcome: 'not_push' });
    const unknown = { ...at, workflowId: 'unknown' };
    assert.deepEqual(await store.jobs.begin({ ...unknown, ...mine }), { outcome: 'not_found' });
    await store.workflows.pause({ teamId: at.teamId, id: at.workflowId });
    assert.deepEqual(await store.jobs.begin({ ...at, ...mine }), { outcome: 'paused' });
    await store.workflows.archive({ teamId: at.teamId, ids: [at.workflowId] });
    assert.deepEqual(await store.jobs.begin({ ...at, ...mine }), { outcome: 'not_found' });
    assert.deepEqual(await allEvents(store, at.teamId), []);
  });

  it('runs one push of a workflow at a time, and none while another job is unfinished', async ({ store }) => {
    const at = await makeWorkflow(store, pushed);
    const results = await Promise.all([1, 2, 3].map(() => store.jobs.begin({ ...at, ...mine })));
    const [first] = results.filter((result) => result.outcome === 'begun');
    const others = results.filter((result) => result.outcome === 'occupied');
    assert.equal(others.length, 2);
    const { job } = begun(first);
    for (const other of others) assert.equal(other.job.id, job.id);
    await failAttempt(store, heldOf(job), { reason: 'lost' });
    begun(await store.jobs.begin({ ...at, ...mine }));

    const changed = await makeWorkflow(store, { id: 'changed' });
    const queued = await makeJob(store, changed);
    await makeWorkflow(store, { id: 'changed', ...pushed });
    const result = await store.jobs.begin({ ...changed, ...mine });
    assert.equal(result.outcome === 'occupied' && result.job.id, queued.id);
  });

  it('publishes the staged records of a push', async ({ store }) => {
    const at = await makeWorkflow(store, pushed);
    const held = await beginPush(store, at);
    await stageRecords(store, held, 'replace', people({ 1: 'Ada' }));
    await publish(store, held);
    assert.deepEqual(await readVersion(store, { ...at, version: 1 }), [{ id: '1', name: 'Ada' }]);
    begun(await store.jobs.begin({ ...at, ...mine }));
  });

  it('never retries a push: a reclaimed one fails as lost', async ({ store }) => {
    const at = await makeWorkflow(store, pushed);
    const { job } = begun(await store.jobs.begin({ ...at, ...mine }));
    const [lost] = await store.jobs.abandoned({ nodeId: 'node-a' });
    assert.deepEqual(lost?.held, heldOf(job));
    const ended = await store.jobs.reclaim({ held: heldOf(job), nodeId: 'node-a', error: 'gone' });
    assert.deepEqual([ended?.state, ended?.reason, ended?.crashes], ['failed', 'lost', 1]);
    const last = (await allEvents(store, at.teamId)).at(-1);
    assert.deepEqual([last?.type, last?.parsed.data.reason], ['workflow_failed', 'lost']);
    assert.deepEqual(await store.jobs.claim(CLAIM), []);
  });

  it('ends a push with an expired lease when the next one starts, but not with a renewed lease', async ({
    store,
    advance,
  }) => {
    const at = await makeWorkflow(store, pushed);
    const { job } = begun(await store.jobs.begin({ ...at, ...mine }));
    advance(LEASE_MS);
    const renewed = await store.jobs.beat({ nodeId: 'node-a', held: [heldOf(job)], leaseMs: LEASE_MS });
    assert.deepEqual(renewed.lost, []);
    advance(LEASE_MS);
    assert.equal((await store.jobs.begin({ ...at, ...mine, nodeId: 'other' })).outcome, 'occupied');
    advance(1);
    begun(await store.jobs.begin({ ...at, ...mine, nodeId: 'other' }));
    assert.equal((await store.jobs.get({ teamId: at.teamId, id: job.id }))?.reason, 'lost');
  });

  it('replays an idempotency key for 24 h if its push was published, and never if it failed', async ({
    store,
    advance,
  }) => {
    const at = await makeWorkflow(store, pushed);
    const keyed = { ...at, ...mine, idempotencyKey: 'k' };
    const failed = begun(await store.jobs.begin(keyed));
    assert.equal((await store.jobs.begin(keyed)).outcome, 'occupied');
    await failAttempt(store, heldOf(failed.job), { reason: 'guard' });
    const { job } = begun(await store.jobs.begin(keyed));
    await publish(store, heldOf(job));
    const finished = await store.jobs.get({ teamId: at.teamId, id: job.id });
    assert.deepEqual(await store.jobs.begin(keyed), { outcome: 'replayed', job: finished, sent: null });
    begun(await store.jobs.begin({ ...keyed, idempotencyKey: 'other' }));
    advance(DAY_MS);
    begun(await store.jobs.begin(keyed));
  });

  it('returns the hash of the request stored for a key, unless that push failed', async ({ store }) => {
    const at = await makeWorkflow(store, pushed);
    const keyed = { ...at, ...mine, idempotencyKey: 'k' };
    const failed = begun(await store.jobs.begin(keyed));
    await store.jobs.noteSent({ held: heldOf(failed.job), sent: 'first' });
    await failAttempt(store, heldOf(failed.job), { reason: 'guard' });
    await assert.rejects(store.jobs.noteSent({ held: heldOf(failed.job), sent: 'late' }), FencedError);

    const { job } = begun(await store.jobs.begin(keyed));
    await publish(store, heldOf(job));
    const unnoted = await store.jobs.begin(keyed);
    assert.deepEqual([unnoted.outcome, (unnoted as { sent?: unknown }).sent], ['replayed', null]);

    const other = begun(await store.jobs.begin({ ...keyed, idempotencyKey: 'other' }));
    await store.jobs.noteSent({ held: heldOf(other.job), sent: 'second' });
    await publish(store, heldOf(other.job));
    const noted = await store.jobs.begin({ ...keyed, idempotencyKey: 'other' });
    assert.deepEqual([noted.outcome, (noted as { sent?: unknown }).sent], ['replayed', 'second']);
  });
}

function begun(result: Awaited<ReturnType<Store['jobs']['begin']>> | undefined) {
  assert.equal(result?.outcome, 'begun');
  return (result as Extract<typeof result, { outcome: 'begun' }>).claimed;
}
