/** Canceling jobs, and making waiting jobs due. */
import assert from 'node:assert/strict';
import { FencedError } from '../../model/error.ts';
import type { AttemptLease } from '../../model/job.ts';
import type { Store } from '../store.ts';
import { load } from './sending.ts';
import {
  allEvents,
  beginPush,
  CLAIM,
  caseWith,
  claimOne,
  expecting,
  failAttempt,
  jobOf,
  makeJob,
  makeRunning,
  makeWorkflow,
  type Open,
  people,
  publish,
  publishRun,
  readVersion,
  stageRecords,
} from './setup.ts';

const by = 'Canceled over the API';

export function testCanceling(open: Open): void {
  const it = caseWith(open);

  it('cancels a waiting job immediately, with its event and deliveries', async ({ store, advance }) => {
    const at = await makeWorkflow(store);
    const hook = { url: 'https://a.test/', events: ['workflow_canceled'], secret: 's', limit: 9 };
    const subscribed = await store.webhooks.subscribe({ ...at, ...hook });
    const { id } = await makeJob(store, at);
    advance(5);
    const result = await store.jobs.cancel({ teamId: at.teamId, id, by });
    const job = await jobOf(store, { ...at, jobId: id });
    assert.deepEqual(result, { outcome: 'canceled', job });
    assert.deepEqual(
      [job.state, job.reason, job.error, job.finishedAt, job.startedAt],
      ['canceled', null, by, store.now(), null],
    );
    const event = (await allEvents(store, at.teamId)).at(-1);
    assert.equal(event?.type, 'workflow_canceled');
    const { state, error, attempt } = event?.parsed.data ?? {};
    assert.deepEqual([state, error, attempt], ['canceled', by, 0]);
    const { webhook } = subscribed as { webhook: { id: string } };
    const due = await load(store, at.teamId, webhook.id);
    assert.deepEqual(
      due.map((delivery) => delivery.eventType),
      ['workflow_canceled'],
    );
    assert.deepEqual(await store.jobs.claim(CLAIM), []);
    await makeJob(store, at);
  });

  it('does not change ended jobs or jobs of other teams', async ({ store }) => {
    const at = await makeWorkflow(store);
    const held = await makeRunning(store, at);
    await failAttempt(store, held);
    const job = await jobOf(store, held);
    assert.deepEqual(await store.jobs.cancel({ teamId: at.teamId, id: held.jobId, by }), {
      outcome: 'ended',
      job,
    });
    const { id: other } = await store.teams.ensure({ slug: 'other' });
    assert.equal(await store.jobs.cancel({ teamId: other, id: held.jobId, by }), undefined);
    assert.equal(await store.jobs.runNow({ teamId: other, id: held.jobId }), undefined);
    assert.equal((await allEvents(store, at.teamId)).length, 3);
  });

  it('clears the reason of a failed attempt when its retry is canceled', async ({ store }) => {
    const at = await makeWorkflow(store);
    const held = await makeRunning(store, at);
    await failAttempt(store, held, { follows: { state: 'retrying', runAt: store.now() + 1 } });
    await store.jobs.cancel({ teamId: at.teamId, id: held.jobId, by });
    const { state, reason, error, failures } = await jobOf(store, held);
    assert.deepEqual([state, reason, error, failures], ['canceled', null, by, 1]);
  });

  it('moves the waiting job into the first slot only when the job in that slot is canceled', async ({
    store,
  }) => {
    const at = await makeWorkflow(store, { overlap: 'buffer' });
    const first = await makeJob(store, at);
    const second = await makeJob(store, at);
    await store.jobs.cancel({ teamId: at.teamId, id: second.id, by });
    assert.deepEqual((await jobOf(store, { ...at, jobId: first.id })).slot, 0);
    const third = await makeJob(store, at);
    assert.equal(third.slot, 1);
    await store.jobs.cancel({ teamId: at.teamId, id: first.id, by });
    assert.equal((await claimOne(store)).jobId, third.id);
    const last = await makeJob(store, at);
    assert.equal(last.slot, 1);
  });

  it('stores the first request to cancel a running job, and notifies its node', async ({ store }) => {
    const held = await makeRunning(store, await makeWorkflow(store));
    const at = { teamId: held.teamId, id: held.jobId };
    assert.equal((await store.jobs.cancel({ ...at, by }))?.outcome, 'canceling');
    const askedAt = store.now();
    const again = await store.jobs.cancel({ ...at, by: 'Canceled by somebody else' });
    assert.equal(again?.outcome, 'canceling');
    const { state, error, cancelRequestedAt } = await jobOf(store, held);
    assert.deepEqual([state, error, cancelRequestedAt], ['running', by, askedAt]);
    const beat = await store.jobs.beat({ nodeId: 'node-a', held: [held], leaseMs: 30_000 });
    assert.deepEqual(beat, { lost: [], canceled: [held] });
    assert.equal((await allEvents(store, held.teamId)).length, 2);
  });

  it('ends a run as canceled only for its node, and only after a request', async ({ store }) => {
    const held = await makeRunning(store, await makeWorkflow(store, { overlap: 'buffer' }));
    await assert.rejects(store.jobs.endCanceled({ held }), /has no cancellation request/);
    await store.jobs.cancel({ teamId: held.teamId, id: held.jobId, by });
    await assert.rejects(store.jobs.endCanceled({ held: { ...held, attempt: 2 } }), FencedError);
    await store.jobs.endCanceled({ held });
    await assertCanceled(store, held);
    await assert.rejects(store.jobs.endCanceled({ held }), FencedError);
  });

  for (const [name, end] of Object.entries(ENDS)) {
    it(`ends a job as canceled after a request when its attempt ${name}`, async ({ store }) => {
      const at = await makeWorkflow(store, { overlap: 'buffer' });
      const held = await makeRunning(store, at);
      const behind = await makeJob(store, at);
      await stageRecords(store, held, 'replace', people({ a: 'Ada' }));
      await store.jobs.cancel({ teamId: at.teamId, id: held.jobId, by });
      await end(store, held);
      await assertCanceled(store, held);
      assert.equal((await store.records.version(at))?.number, 0);
      const next = await claimOne(store);
      assert.equal(next.jobId, behind.id);
      while (!(await store.records.sweep({ held: next, limit: 100 })).done);
      await publish(store, next);
      await publishRun(store, at, { b: 'Bob' });
      assert.deepEqual(await readVersion(store, { ...at, version: 1 }), [{ id: 'b', name: 'Bob' }]);
    });
  }

  it('cancels a push through its node, and ends it as canceled when it is released or its node is gone', async ({
    store,
  }) => {
    const at = await makeWorkflow(store, { source: { type: 'push' } });
    for (const end of Object.values(ENDS)) {
      const held = await beginPush(store, at);
      assert.equal(
        (await store.jobs.cancel({ teamId: at.teamId, id: held.jobId, by }))?.outcome,
        'canceling',
      );
      await end(store, held);
      await assertCanceled(store, held);
    }
  });

  it('fails a push that is released, because no other node could run it', async ({ store }) => {
    const at = await makeWorkflow(store, { source: { type: 'push' } });
    const held = await beginPush(store, at);
    await store.jobs.release({ held: [held] });
    const { state, reason } = await jobOf(store, held);
    assert.deepEqual([state, reason], ['failed', 'lost']);
  });

  it('makes a waiting job due, and no other', async ({ store, advance }) => {
    const held = await makeRunning(store, await makeWorkflow(store));
    const at = { teamId: held.teamId, id: held.jobId };
    assert.equal((await store.jobs.runNow(at))?.outcome, 'not_waiting');
    await failAttempt(store, held, { follows: { state: 'retrying', runAt: store.now() + 60_000 } });
    advance(5);
    assert.deepEqual(await store.jobs.claim(CLAIM), []);
    const due = await store.jobs.runNow(at);
    assert.deepEqual([due?.outcome, due?.job.runAt], ['due', store.now()]);
    advance(5);
    assert.equal((await store.jobs.runNow(at))?.job.runAt, store.now() - 5, 'it keeps its place');
    const again = await claimOne(store);
    assert.deepEqual([again.jobId, again.attempt], [held.jobId, 2]);
    await failAttempt(store, again);
    assert.equal((await store.jobs.runNow(at))?.outcome, 'not_waiting');
  });
}

/** Every way in which an attempt can end after a request to cancel its job. */
const ENDS: Record<string, (store: Store, held: AttemptLease) => Promise<unknown>> = {
  'is ended by its node': (store, held) => store.jobs.endCanceled({ held }),
  'fails without retries': (store, held) => failAttempt(store, held),
  'fails and would be retried': (store, held) =>
    failAttempt(store, held, { follows: { state: 'retrying', runAt: store.now() } }),
  'is released': (store, held) => store.jobs.release({ held: [held] }),
  'is lost': async (store, held) => {
    const job = await store.jobs.reclaim({ held, nodeId: 'node-a', error: 'The process is gone' });
    assert.equal(job?.state, 'canceled');
  },
  'tries to publish': async (store, held) => {
    const expected = { expect: expecting({ min: 99 }) };
    assert.deepEqual(await publish(store, held, { expected, state: '{"late":true}' }), {
      outcome: 'canceled',
    });
  },
};

async function assertCanceled(store: Store, held: AttemptLease): Promise<void> {
  const { state, reason, error, finishedAt, version } = await jobOf(store, held);
  assert.deepEqual([state, reason, error, finishedAt, version], ['canceled', null, by, store.now(), null]);
  const events = (await allEvents(store, held.teamId)).filter((event) => event.jobId === held.jobId);
  assert.deepEqual(
    events.map((event) => event.type),
    ['workflow_queued', 'workflow_started', 'workflow_canceled'],
  );
}
