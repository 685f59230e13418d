/** Queueing jobs: slots, overlap, idempotency keys and events. */
import assert from 'node:assert/strict';
import type { Enqueued } from '../operations/jobs.ts';
import {
  allEvents,
  CLAIM,
  caseWith,
  claimOne,
  failAttempt,
  makeJob,
  makeWorkflow,
  type Open,
  PUBLIC_URL,
  publish,
} from './setup.ts';

const DAY_MS = 24 * 3_600_000;

export function testJobs(open: Open): void {
  const it = caseWith(open);
  const api = { origin: 'api', idempotencyKey: null } as const;

  it('queues a job with its event', async ({ store }) => {
    const at = await makeWorkflow(store);
    const job = await makeJob(store, at);
    assert.equal(job.state, 'queued');
    assert.equal(job.attempt, 0);
    assert.equal(job.runAt, store.now());
    assert.deepEqual(await store.jobs.get({ teamId: at.teamId, id: job.id }), job);
    const [event, ...more] = await allEvents(store, at.teamId);
    assert.equal(more.length, 0);
    assert.equal(event?.sequence, 1);
    const iso = new Date(store.now()).toISOString();
    assert.deepEqual(event?.parsed, {
      id: event?.id,
      teamId: at.teamId,
      type: 'workflow_queued',
      eventType: 'workflow_queued',
      timestamp: iso,
      sequence: 1,
      workflowId: 'people',
      jobId: job.id,
      data: { workflowId: 'people', jobId: job.id, state: 'queued', queuedAt: iso },
    });
    assert.ok(!event?.body.includes(PUBLIC_URL));
  });

  it('returns not_found for an unknown workflow and another team’s, even while a job is queued', async ({
    store,
  }) => {
    const at = await makeWorkflow(store, { team: 'a' });
    await makeJob(store, at);
    const other = await store.teams.ensure({ slug: 'b' });
    for (const target of [
      { ...at, workflowId: 'unknown' },
      { ...at, teamId: other.id },
    ]) {
      assert.deepEqual(await store.jobs.enqueue({ ...target, ...api }), { outcome: 'not_found' });
    }
    assert.equal(await store.jobs.get({ teamId: other.id, id: 'job_x' }), undefined);
  });

  it('queues exactly one job in twenty simultaneous calls', async ({ store }) => {
    const at = await makeWorkflow(store);
    const results = await Promise.all(
      Array.from({ length: 20 }, () => store.jobs.enqueue({ ...at, ...api })),
    );
    const winner = results.filter((result) => result.outcome === 'queued');
    assert.equal(winner.length, 1);
    const losers = results.filter((result) => result.outcome === 'occupied');
    assert.equal(losers.length, 19);
    for (const loser of losers) assert.deepEqual(loser.job.id, winner[0]?.job.id);
    assert.equal((await allEvents(store, at.teamId)).length, 1);
  });

  it('queues exactly one job in simultaneous calls through two stores', async ({ store, another }) => {
    const at = await makeWorkflow(store);
    const other = await another();
    try {
      const results = await Promise.all(
        Array.from({ length: 20 }, (_, n) => (n % 2 === 0 ? store : other).jobs.enqueue({ ...at, ...api })),
      );
      assert.equal(results.filter((result) => result.outcome === 'queued').length, 1);
    } finally {
      await other.close();
    }
  });

  it('refuses a job while another runs or waits for a retry, and accepts one when it has ended', async ({
    store,
  }) => {
    const at = await makeWorkflow(store);
    await makeJob(store, at);
    let held = await claimOne(store);
    assert.equal((await store.jobs.enqueue({ ...at, ...api })).outcome, 'occupied');
    await failAttempt(store, held, { follows: { state: 'retrying', runAt: store.now() } });
    assert.equal((await store.jobs.enqueue({ ...at, ...api })).outcome, 'occupied');
    held = await claimOne(store);
    await failAttempt(store, held);
    assert.equal((await store.jobs.enqueue({ ...at, ...api })).outcome, 'queued');
  });

  it('accepts one waiting job with overlap: buffer, in any state of the first job', async ({ store }) => {
    for (const claimed of [false, true]) {
      const at = await makeWorkflow(store, { id: `claimed-${claimed}`, overlap: 'buffer' });
      const first = await makeJob(store, at);
      if (claimed) await store.jobs.claim(CLAIM);
      const second = await makeJob(store, at);
      assert.deepEqual([first.slot, second.slot], [0, 1]);
      const third = await store.jobs.enqueue({ ...at, ...api });
      assert.equal(third.outcome === 'occupied' && third.job.id, second.id);
    }
  });

  it('does not claim the waiting job before the first one ends, which moves it up', async ({ store }) => {
    const at = await makeWorkflow(store, { overlap: 'buffer' });
    const first = await makeJob(store, at);
    const second = await makeJob(store, at);
    const held = await claimOne(store);
    assert.equal(held.jobId, first.id);
    assert.deepEqual(await store.jobs.claim(CLAIM), []);
    await failAttempt(store, held);
    assert.equal((await store.jobs.get({ teamId: at.teamId, id: second.id }))?.slot, 0);
    const third = await makeJob(store, at);
    assert.equal(third.slot, 1);
    const next = await claimOne(store);
    assert.equal(next.jobId, second.id);
    await publish(store, next);
    assert.equal((await store.jobs.get({ teamId: at.teamId, id: third.id }))?.slot, 0);
  });

  it('queues exactly two jobs in twenty simultaneous calls with overlap: buffer', async ({ store }) => {
    const at = await makeWorkflow(store, { overlap: 'buffer' });
    const results = await Promise.all(
      Array.from({ length: 20 }, () => store.jobs.enqueue({ ...at, ...api })),
    );
    assert.equal(results.filter((result) => result.outcome === 'queued').length, 2);
  });

  it('replays an idempotency key for 24 h, even when the job has ended', async ({ store, advance }) => {
    const at = await makeWorkflow(store);
    const keyed = { ...at, origin: 'api', idempotencyKey: 'k' } as const;
    const first = await store.jobs.enqueue(keyed);
    assert.equal(first.outcome, 'queued');
    const held = await claimOne(store);
    assert.equal(await outcomeAndJob(store.jobs.enqueue(keyed)), `replayed ${held.jobId}`);
    await failAttempt(store, held);
    advance(DAY_MS - 1);
    assert.equal(await outcomeAndJob(store.jobs.enqueue(keyed)), `replayed ${held.jobId}`);
    advance(1);
    const again = await outcomeAndJob(store.jobs.enqueue(keyed));
    assert.match(again, /^queued /);
    assert.notEqual(again, `queued ${held.jobId}`);
    assert.equal(await outcomeAndJob(store.jobs.enqueue(keyed)), again.replace('queued', 'replayed'));
  });

  it('returns one job to simultaneous calls with one key, and forgets a key after `occupied`', async ({
    store,
  }) => {
    const at = await makeWorkflow(store);
    const keyed = { ...at, origin: 'api', idempotencyKey: 'k' } as const;
    const twins = await Promise.all([
      outcomeAndJob(store.jobs.enqueue(keyed)),
      outcomeAndJob(store.jobs.enqueue(keyed)),
    ]);
    const [queued, replayed] = twins.sort();
    assert.equal(replayed, queued?.replace('queued', 'replayed'));
    const other = { ...keyed, idempotencyKey: 'other' };
    assert.equal((await store.jobs.enqueue(other)).outcome, 'occupied');
    const held = await claimOne(store);
    await failAttempt(store, held);
    assert.equal((await store.jobs.enqueue(other)).outcome, 'queued');
  });

  it('separates idempotency keys of different workflows and teams', async ({ store }) => {
    const targets = [
      await makeWorkflow(store, { team: 'a', id: 'x' }),
      await makeWorkflow(store, { team: 'a', id: 'y' }),
      await makeWorkflow(store, { team: 'b', id: 'x' }),
    ];
    for (const at of targets) {
      const result = await store.jobs.enqueue({ ...at, origin: 'api', idempotencyKey: 'k' });
      assert.equal(result.outcome, 'queued');
    }
  });

  it('numbers the events of each team without gaps', async ({ store }) => {
    for (const team of ['a', 'b']) {
      const targets = await Promise.all(
        Array.from({ length: 10 }, (_, n) => makeWorkflow(store, { team, id: `w${n}` })),
      );
      await Promise.all(targets.map((at) => makeJob(store, at)));
      const events = await allEvents(store, targets[0]?.teamId ?? '');
      assert.deepEqual(
        events.map((event) => event.sequence),
        Array.from({ length: 10 }, (_, n) => n + 1),
      );
      const later = await store.events.list({
        teamId: targets[0]?.teamId ?? '',
        afterSequence: 4,
        limit: 2,
      });
      assert.deepEqual(
        later.map((event) => event.sequence),
        [5, 6],
      );
    }
  });
}

async function outcomeAndJob(call: Promise<Enqueued>): Promise<string> {
  const result = await call;
  return 'job' in result ? `${result.outcome} ${result.job.id}` : result.outcome;
}
