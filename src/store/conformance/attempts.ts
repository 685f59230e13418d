/** Attempts: claiming, heartbeats, reclaiming, releasing, and fencing of stale ones. */
import assert from 'node:assert/strict';
import { FencedError } from '../../model/error.ts';
import { type AttemptLease, type Job, MAX_CRASHES } from '../../model/job.ts';
import { insertsOf } from '../../model/planned-writes.ts';
import type { Store } from '../store.ts';
import {
  allEvents,
  CLAIM,
  caseWith,
  claimOne,
  definition,
  failAttempt,
  heldOf,
  makeJob,
  makeRunning,
  makeWorkflow,
  type Open,
  people,
  publish,
  stageRecords,
} from './setup.ts';

export function testAttempts(open: Open): void {
  const it = caseWith(open);

  it('claims due jobs, those due longest first, each once', async ({ store, advance }) => {
    const ids: string[] = [];
    for (const id of ['b', 'a', 'c']) {
      ids.push((await makeJob(store, await makeWorkflow(store, { id }))).id);
      advance(1);
    }
    const two = await store.jobs.claim({ ...CLAIM, limit: 2 });
    const rest = await store.jobs.claim({ ...CLAIM, nodeId: 'node-b' });
    assert.deepEqual(
      two.map(({ job }) => job.id),
      ids.slice(0, 2),
    );
    assert.deepEqual(
      rest.map(({ job }) => job.id),
      ids.slice(2),
    );
    assert.deepEqual(two[0]?.workflow.definition, definition());
    assert.equal(two[0]?.state, null);
    assert.deepEqual(await store.jobs.claim(CLAIM), []);
  });

  it('gives each job to one of several simultaneous claims', async ({ store }) => {
    const ids: string[] = [];
    for (const id of ['a', 'b', 'c']) ids.push((await makeJob(store, await makeWorkflow(store, { id }))).id);
    const claimed = await Promise.all(
      ['node-a', 'node-b', 'node-c'].map((nodeId) => store.jobs.claim({ ...CLAIM, nodeId, limit: 2 })),
    );
    // A claim skips jobs that another claim has locked, so two simultaneous claims may each skip the other's jobs.
    claimed.push(await store.jobs.claim(CLAIM));
    assert.deepEqual(claimed.flatMap((jobs) => jobs.map(({ job }) => job.id)).sort(), ids);
  });

  it('returns whether an earlier attempt has left anything that must be swept', async ({ store }) => {
    const at = await makeWorkflow(store);
    const claim = async () => {
      await makeJob(store, at);
      const [claimed] = await store.jobs.claim({ ...CLAIM, limit: 1 });
      return { held: heldOf(claimed?.job as Job), hasLeftovers: claimed?.hasLeftovers };
    };
    const lost = await claim();
    assert.equal(lost.hasLeftovers, false);
    await stageRecords(store, lost.held, 'replace', people({ a: 'Ada' }));
    await failAttempt(store, lost.held);
    const { held, hasLeftovers } = await claim();
    assert.equal(hasLeftovers, true);
    while (!(await store.records.sweep({ held, limit: 10 })).done);
    await stageRecords(store, held, 'replace', people({ b: 'Bob' }));
    await publish(store, held);
    assert.equal((await claim()).hasLeftovers, false);
  });

  it('reports the start of a job once, not for each attempt', async ({ store, advance }) => {
    const at = await makeWorkflow(store);
    const { id } = await makeJob(store, at);
    advance(5);
    const startedAt = store.now();
    const first = await claimOne(store);
    await store.jobs.release({ held: [first] });
    advance(5);
    const second = await claimOne(store);
    assert.equal(second.attempt, 2);
    const job = await store.jobs.get({ teamId: at.teamId, id });
    assert.equal(job?.startedAt, startedAt);
    assert.deepEqual([job?.failures, job?.crashes], [0, 0]);
    const events = await allEvents(store, at.teamId);
    assert.deepEqual(
      events.map((event) => event.type),
      ['workflow_queued', 'workflow_started'],
    );
    assert.equal(events[1]?.parsed.data.startedAt, new Date(startedAt).toISOString());
  });

  it('does not claim a retry before it is due', async ({ store, advance }) => {
    const held = await makeRunning(store, await makeWorkflow(store));
    const runAt = store.now() + 1_000;
    await failAttempt(store, held, { follows: { state: 'retrying', runAt } });
    advance(999);
    assert.deepEqual(await store.jobs.claim(CLAIM), []);
    advance(1);
    assert.equal((await claimOne(store)).attempt, 2);
  });

  it('ends a failed job with its event', async ({ store, advance }) => {
    const at = await makeWorkflow(store);
    const held = await makeRunning(store, at);
    advance(7);
    await failAttempt(store, held, { error: 'x'.repeat(30_000), failures: 3 });
    const job = (await store.jobs.get({ teamId: at.teamId, id: held.jobId })) as Job;
    assert.deepEqual(
      [job.state, job.reason, job.failures, job.finishedAt, job.error?.length],
      ['failed', 'error', 3, store.now(), 30_000],
    );
    const event = (await allEvents(store, at.teamId)).at(-1);
    assert.equal(event?.type, 'workflow_failed');
    assert.equal(event?.parsed.data.reason, 'error');
    assert.equal(event?.parsed.data.attempt, 1);
    assert.equal(event?.parsed.finishedAt, new Date(store.now()).toISOString());
    assert.match(String(event?.parsed.data.error), /^x+$/);
    assert.ok(Buffer.byteLength(event?.body ?? '') < 20_000);
  });

  it('renews leases and lists the lost attempts', async ({ store, advance }) => {
    const held: AttemptLease[] = [];
    for (const id of ['a', 'b']) held.push(await makeRunning(store, await makeWorkflow(store, { id })));
    advance(20_000);
    const stale = { ...(held[1] as AttemptLease), attempt: 9 };
    const { lost } = await store.jobs.beat({
      nodeId: 'node-a',
      held: [held[0] as AttemptLease, stale],
      leaseMs: 30_000,
    });
    assert.deepEqual(lost, [stale]);
    advance(15_000);
    const abandoned = await store.jobs.abandoned({ nodeId: null });
    assert.deepEqual(
      abandoned.map((job) => job.held),
      [held[1]],
    );
    const stolen = await store.jobs.beat({ nodeId: 'node-b', held, leaseMs: 30_000 });
    assert.deepEqual(stolen.lost, held);
  });

  it('lists the running jobs of a node, with their processes', async ({ store }) => {
    const at = await makeWorkflow(store);
    const held = await makeRunning(store, at);
    const process = { pid: 4_711, startedAt: '12345' };
    await store.jobs.setProcess({ held, process });
    assert.deepEqual(await store.jobs.abandoned({ nodeId: null }), []);
    assert.deepEqual(await store.jobs.abandoned({ nodeId: 'node-b' }), []);
    assert.deepEqual(await store.jobs.abandoned({ nodeId: 'node-a' }), [
      { held, workflowId: 'people', nodeId: 'node-a', origin: 'api', process },
    ]);
    await store.jobs.setProcess({ held, process: null });
    assert.equal((await store.jobs.abandoned({ nodeId: 'node-a' }))[0]?.process, null);
  });

  it('does not reclaim an attempt whose lease was renewed after it was found', async ({ store, advance }) => {
    const held = await makeRunning(store, await makeWorkflow(store));
    advance(CLAIM.leaseMs + 1);
    const [found] = await store.jobs.abandoned({ nodeId: null });
    assert.deepEqual(found?.held, held);
    const reclaim = () => store.jobs.reclaim({ held, nodeId: null, error: 'The process is gone' });
    await store.jobs.beat({ nodeId: 'node-a', held: [held], leaseMs: CLAIM.leaseMs });
    assert.equal(await reclaim(), undefined);
    assert.deepEqual(await store.jobs.beat({ nodeId: 'node-a', held: [held], leaseMs: 10 }), {
      lost: [],
      canceled: [],
    });
    advance(11);
    assert.equal((await reclaim())?.state, 'retrying');
  });

  it('reclaims abandoned attempts of a job up to the limit of crashes', async ({ store }) => {
    const at = await makeWorkflow(store, { overlap: 'buffer' });
    const { id } = await makeJob(store, at);
    const behind = await makeJob(store, at);
    for (let crash = 1; crash <= MAX_CRASHES; crash++) {
      const job = await store.jobs.reclaim({
        held: await claimOne(store),
        nodeId: 'node-a',
        error: 'The process is gone',
      });
      assert.deepEqual([job?.id, job?.state, job?.crashes], [id, 'retrying', crash]);
    }
    const held = await claimOne(store);
    const job = await store.jobs.reclaim({ held, nodeId: 'node-a', error: 'The process is gone' });
    assert.deepEqual([job?.state, job?.reason, job?.failures], ['failed', 'lost', 0]);
    assert.equal(await store.jobs.reclaim({ held, nodeId: 'node-a', error: 'late' }), undefined);
    const event = (await allEvents(store, at.teamId)).at(-1);
    assert.deepEqual([event?.type, event?.parsed.data.reason], ['workflow_failed', 'lost']);
    assert.equal((await store.jobs.get({ teamId: at.teamId, id: behind.id }))?.slot, 0);
  });

  it('releases only attempts that are still held', async ({ store }) => {
    const at = await makeWorkflow(store);
    const first = await makeRunning(store, at);
    await store.jobs.release({ held: [first] });
    const second = await claimOne(store);
    await store.jobs.release({ held: [first] });
    assert.equal((await store.jobs.get({ teamId: at.teamId, id: second.jobId }))?.state, 'running');
    assert.deepEqual(await store.jobs.claim(CLAIM), []);
  });

  it('fences every operation of a run: an earlier attempt and an ended job cannot change anything', async ({
    store,
  }) => {
    const at = await makeWorkflow(store, { id: 'fenced' });
    const first = await makeRunning(store, at);
    await stageRecords(store, first, 'replace', people({ a: 'Ada' }));
    await store.jobs.release({ held: [first] });
    const second = await claimOne(store);
    const others = [first, { ...second, attempt: second.attempt + 1 }, { ...second, teamId: 'team_other' }];
    const before = await snapshot(store, second);
    for (const [name, operation] of Object.entries(heldOperations)) {
      for (const held of others) await assert.rejects(operation(store, held), FencedError, name);
      assert.deepEqual(await snapshot(store, second), before, name);
    }
    await failAttempt(store, second);
    const ended = await snapshot(store, second);
    for (const [name, operation] of Object.entries(heldOperations)) {
      await assert.rejects(operation(store, second), FencedError, name);
      assert.deepEqual(await snapshot(store, second), ended, name);
    }
  });

  it('rolls back only the fenced operations among many simultaneous ones', async ({ store }) => {
    const running: AttemptLease[] = [];
    for (let n = 0; n < 10; n++)
      running.push(await makeRunning(store, await makeWorkflow(store, { id: `w${n}` })));
    const results = await Promise.allSettled(
      running.map((held, n) =>
        store.records.stage({
          held: n % 3 === 0 ? { ...held, attempt: 7 } : held,
          writes: { inserts: insertsOf([{ id: 'a', body: '{"id":"a"}' }]), changes: [] },
        }),
      ),
    );
    for (const [n, held] of running.entries()) {
      assert.equal(results[n]?.status, n % 3 === 0 ? 'rejected' : 'fulfilled');
      const { seqs } = await store.records.currentSeqs({ held, afterSeq: 0, rows: 10 });
      assert.deepEqual(seqs, n % 3 === 0 ? [] : [1]);
    }
  });
}

/** Every operation that takes an `AttemptLease` and must reject a stale one. */
const heldOperations: Record<string, (store: Store, held: AttemptLease) => Promise<unknown>> = {
  'jobs.setProcess': (store, held) => store.jobs.setProcess({ held, process: { pid: 1, startedAt: '1' } }),
  'jobs.fail': (store, held) => failAttempt(store, held),
  'jobs.endCanceled': (store, held) => store.jobs.endCanceled({ held }),
  'jobs.report': (store, held) =>
    store.jobs.report({
      held,
      progress: { records: 1, bytes: 1, pages: null, message: 'late' },
      lines: [{ seq: 1, at: 1, level: 'info', text: 'late' }],
      restart: true,
    }),
  'records.sweep': (store, held) => store.records.sweep({ held, limit: 10 }),
  'records.stage': (store, held) =>
    store.records.stage({
      held,
      writes: { inserts: insertsOf([{ id: 'b', body: '{"id":"b"}' }]), changes: [] },
    }),
  'records.compare': (store, held) => store.records.compare({ held, ids: ['a'] }),
  'records.currentSeqs': (store, held) => store.records.currentSeqs({ held, afterSeq: 0, rows: 10 }),
  'records.currentTotal': (store, held) => store.records.currentTotal({ held }),
  'records.remove': (store, held) => store.records.remove({ held, seqs: [1] }),
  'records.publish': (store, held) => publish(store, held, { state: '{"late":true}' }),
};

/** Everything that a fenced operation might have changed. */
async function snapshot(store: Store, { teamId, jobId }: AttemptLease): Promise<unknown> {
  const job = (await store.jobs.get({ teamId, id: jobId })) as Job;
  const running = job.state === 'running';
  return {
    job,
    process: (await store.jobs.abandoned({ nodeId: 'node-a' })).map((abandoned) => abandoned.process),
    version: await store.records.version({ teamId, workflowId: job.workflowId }),
    log: await store.jobs.log({ teamId, jobId, attempt: job.attempt, afterSeq: 0, limit: 10 }),
    seqs: running ? await store.records.currentSeqs({ held: heldOf(job), afterSeq: 0, rows: 100 }) : [],
    events: (await allEvents(store, teamId)).map((event) => event.type),
  };
}
