/** Two nodes that change one job at the same time, which cannot happen on SQLite with its one writer. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { EMPTY_TABLES, makeDatabase } from '../../../test/support/postgres.ts';
import { FencedError } from '../../model/error.ts';
import { type AttemptLease, hasEnded, type Job, LEASE_MS } from '../../model/job.ts';
import { silentLogger } from '../../observe/log.ts';
import {
  allEvents,
  CLAIM,
  failAttempt,
  heldOf,
  jobOf,
  makeJob,
  makeRunning,
  makeWorkflow,
} from '../conformance/setup.ts';
import { openStore } from '../open.ts';
import type { Store } from '../store.ts';
import { openPool } from './connections.ts';
import { Database, inTransaction } from './database.ts';

const { url, drop } = await makeDatabase();
const pool = openPool({ url, size: 4, log: silentLogger });
const db = new Database(pool);
let nowMs = 0;
let nodes: [Store, Store];

before(async () => {
  const open = () => openStore(url, { clock: () => nowMs, publicUrl: () => '', log: silentLogger });
  nodes = [await open(), await open()];
});
beforeEach(async () => {
  nowMs = Date.UTC(2026, 0, 1);
  await empty();
});
after(async () => {
  await Promise.all(nodes.map((store) => store.close()));
  const { deadlocks } = (await db.get<{ deadlocks: number }>(
    'select deadlocks from pg_stat_database where datname = current_database()',
  )) as { deadlocks: number };
  await pool.end();
  await drop();
  assert.equal(deadlocks, 0, 'locks are taken in one order');
});

const empty = () => db.exec(EMPTY_TABLES);

const API = { origin: 'api', idempotencyKey: null } as const;

/** Makes concurrent calls, alternately on both nodes. */
function onBoth<Result>(
  count: number,
  call: (store: Store, n: number) => Promise<Result>,
): Promise<Result[]> {
  return Promise.all(Array.from({ length: count }, (_, n) => call(nodes[n % 2] as Store, n)));
}

test('of 20 concurrent calls on two nodes one queues a job, and the others return that job', async () => {
  const at = await makeWorkflow(nodes[0]);
  const results = await onBoth(20, (store) => store.jobs.enqueue({ ...at, ...API }));
  const winners = results.filter(({ outcome }) => outcome === 'queued');
  assert.equal(winners.length, 1);
  assert.equal(results.filter(({ outcome }) => outcome === 'occupied').length, 19);
  assert.equal(new Set(results.map((result) => (result as { job: Job }).job.id)).size, 1);
  assert.equal((await allEvents(nodes[0], at.teamId)).length, 1);
});

test('of 20 calls with one idempotency key one queues a job, and the others return it', async () => {
  const at = await makeWorkflow(nodes[0], { overlap: 'buffer' });
  const results = await onBoth(20, (store) =>
    store.jobs.enqueue({ ...at, origin: 'api', idempotencyKey: 'k' }),
  );
  assert.deepEqual(results.map(({ outcome }) => outcome).sort(), [
    'queued',
    ...Array.from({ length: 19 }, () => 'replayed'),
  ]);
  assert.equal(new Set(results.map((result) => (result as { job: Job }).job.id)).size, 1);
});

test('two nodes claim each of 200 jobs once, and no team exceeds its limit', async () => {
  const teams: string[] = [];
  for (let n = 0; n < 10; n++) {
    const { teamId } = await makeWorkflow(nodes[0], { team: `t${n}` });
    teams.push(teamId);
    await Promise.all(
      Array.from({ length: 20 }, async (_, w) =>
        makeJob(nodes[0], await makeWorkflow(nodes[0], { team: `t${n}`, id: `w${w}` })),
      ),
    );
  }
  const claimed: Job[] = [];
  for (const perTeam of [7, 20]) {
    const results = await onBoth(40, (store, n) =>
      store.jobs.claim({ ...CLAIM, nodeId: `node-${n % 2}`, limit: 1 + (n % 9), perTeam }),
    );
    for (const [n, result] of results.entries()) assert.ok(result.length <= 1 + (n % 9));
    claimed.push(...results.flat().map(({ job }) => job));
    for (const teamId of teams) {
      const running = claimed.filter((job) => job.teamId === teamId).length;
      assert.ok(running <= perTeam, `${running} jobs of one team run, the limit is ${perTeam}`);
    }
  }
  for (let more = true; more; ) {
    const result = await nodes[0].jobs.claim({ ...CLAIM, limit: 50, perTeam: 20 });
    claimed.push(...result.map(({ job }) => job));
    more = result.length > 0;
  }
  assert.equal(claimed.length, 200);
  assert.equal(new Set(claimed.map(({ id }) => id)).size, 200);
  for (const teamId of teams) {
    const started = (await allEvents(nodes[0], teamId)).filter(({ type }) => type === 'workflow_started');
    assert.equal(started.length, 20);
  }
});

test('a claim skips locked jobs without waiting', async () => {
  const locked = await makeJob(nodes[0], await makeWorkflow(nodes[0], { id: 'a' }));
  const free = await makeJob(nodes[0], await makeWorkflow(nodes[0], { id: 'b' }));
  await whileLocked(locked, async () => {
    const claimed = await nodes[1].jobs.claim(CLAIM);
    assert.deepEqual(
      claimed.map(({ job }) => job.id),
      [free.id],
    );
  });
  assert.equal((await nodes[1].jobs.claim(CLAIM))[0]?.job.id, locked.id);
});

test('a claim finds a due job behind many teams that have none', async () => {
  for (let n = 0; n < 30; n++) {
    await makeJob(nodes[0], await makeWorkflow(nodes[0], { team: `t${n}` }));
  }
  const claimed = await nodes[0].jobs.claim({ ...CLAIM, limit: 100 });
  assert.equal(claimed.length, 30);
  const follows = { state: 'retrying', runAt: nowMs + 60_000 } as const;
  for (const { job } of claimed) await failAttempt(nodes[0], heldOf(job), { follows });
  nowMs += 1;
  const last = await makeRunning(nodes[0], await makeWorkflow(nodes[0], { team: 'late' }));
  await nodes[0].jobs.release({ held: [last] });
  assert.equal((await nodes[0].jobs.claim({ ...CLAIM, limit: 1 }))[0]?.job.id, last.jobId);
});

test('a due schedule is fired by one of two nodes', async () => {
  const schedule = { cron: '* * * * *', timezone: 'UTC', missed: 'run-once' } as never;
  const dueAt = nowMs;
  const at = await makeWorkflow(nodes[0], { schedule, nextRunAt: dueAt, overlap: 'buffer' });
  const results = await onBoth(10, (store) =>
    store.schedules.fire({ ...at, dueAt, nextAt: dueAt + 60_000, run: true }),
  );
  assert.deepEqual(results.map(({ outcome }) => outcome).sort(), [
    'queued',
    ...Array.from({ length: 9 }, () => 'taken'),
  ]);
  assert.equal((await nodes[0].jobs.list({ ...at, limit: 10 })).length, 1);
});

test('a job that is reclaimed while its holder ends the attempt has one outcome and one event', async () => {
  for (let round = 0; round < 30; round++) {
    await empty();
    const at = await makeWorkflow(nodes[0], { overlap: 'buffer' });
    const held = await makeRunning(nodes[0], at);
    const behind = await makeJob(nodes[0], at);
    nowMs += LEASE_MS + 1;
    const publish = nodes[0].records.publish({
      held,
      state: undefined,
      fields: [],
    });
    const reclaim = nodes[1].jobs.reclaim({ held, nodeId: null, error: 'The process is gone' });
    const fail = round % 3 === 0 ? failAttempt(nodes[1], held) : Promise.reject(new FencedError('not tried'));
    const outcomes = await Promise.allSettled(
      round % 2 === 0 ? [publish, reclaim, fail] : [reclaim, publish, fail],
    );
    for (const outcome of outcomes) {
      assert.ok(outcome.status === 'fulfilled' || outcome.reason instanceof FencedError);
    }
    const [published, reclaimed, failed] = [await settled(publish), await reclaim, await settled(fail)];
    const counted = [published !== undefined, reclaimed !== undefined, failed !== undefined];
    assert.equal(counted.filter(Boolean).length, 1, 'exactly one call ended the attempt');
    const job = await jobOf(nodes[0], held);
    assert.equal(job.state, published ? 'finished' : reclaimed ? 'retrying' : 'failed');
    const ends = (await allEvents(nodes[0], at.teamId)).filter(
      ({ jobId, type }) => jobId === job.id && /finished|failed|canceled/.test(type),
    );
    assert.equal(ends.length, hasEnded(job.state) ? 1 : 0);
    const waiting = await nodes[1].jobs.get({ teamId: at.teamId, id: behind.id });
    assert.equal(waiting?.slot, hasEnded(job.state) ? 0 : 1);
  }
});

test('a job that is queued while the job before it ends moves to the first slot', async () => {
  for (let round = 0; round < 40; round++) {
    await empty();
    const at = await makeWorkflow(nodes[0], { overlap: 'buffer' });
    const held = await makeRunning(nodes[0], at);
    const enqueue = () => nodes[1].jobs.enqueue({ ...at, ...API });
    const end = () => failAttempt(nodes[0], held);
    const both = round % 2 === 0 ? [enqueue(), end()] : [end(), enqueue()];
    await Promise.all(both);
    const slots = (await nodes[0].jobs.list({ ...at, states: ['queued'], limit: 9 })).map(({ slot }) => slot);
    assert.deepEqual(slots, [0]);
  }
});

test('a job that is queued while its workflow is being paused is not claimed', async () => {
  for (let round = 0; round < 40; round++) {
    const at = await makeWorkflow(nodes[0], { id: `w${round}` });
    const enqueue = () => nodes[1].jobs.enqueue({ ...at, ...API });
    const pause = () => nodes[0].workflows.pause({ teamId: at.teamId, id: at.workflowId });
    await Promise.all(round % 2 === 0 ? [enqueue(), pause()] : [pause(), enqueue()]);
  }
  assert.deepEqual(await nodes[0].jobs.claim({ ...CLAIM, limit: 100 }), []);
});

test('a beat renews all jobs except a locked one, which the next beat renews', async () => {
  const held: AttemptLease[] = [];
  for (const id of ['a', 'b', 'c']) {
    held.push(await makeRunning(nodes[0], await makeWorkflow(nodes[0], { id })));
  }
  const [first, second, third] = held as [AttemptLease, AttemptLease, AttemptLease];
  // A short lease also means a short wait for locks.
  const beat = { nodeId: 'node-a', held, leaseMs: 3_000 };
  await nodes[0].jobs.cancel({ teamId: third.teamId, id: third.jobId, by: 'Canceled by a test' });
  nowMs += LEASE_MS - 1_000;
  const renewed = await whileLocked({ teamId: second.teamId, id: second.jobId }, () =>
    nodes[0].jobs.beat(beat),
  );
  assert.deepEqual(renewed, { lost: [], canceled: [third], late: [second] });
  nowMs += 2_000;
  const overdue = await nodes[1].jobs.abandoned({ nodeId: null });
  assert.deepEqual(
    overdue.map((one) => one.held),
    [second],
  );
  assert.deepEqual(await nodes[0].jobs.beat(beat), { lost: [], canceled: [third] });
  assert.deepEqual(await nodes[1].jobs.abandoned({ nodeId: null }), []);
  await failAttempt(nodes[0], first);
  assert.deepEqual((await nodes[0].jobs.beat(beat)).lost, [first]);
});

test('concurrent calls that create and archive the same workflows count each workflow once', async () => {
  const { id: teamId } = await nodes[0].teams.ensure({ slug: 'default' });
  const ids = Array.from({ length: 20 }, (_, n) => `w${n}`);
  const applied = await onBoth(40, async (store, n) => {
    await makeWorkflow(store, { id: ids[n % 20] as string });
    return store.workflows.get({ teamId, id: ids[n % 20] as string });
  });
  assert.ok(applied.every((workflow) => workflow !== undefined));
  const counts = await onBoth(4, (store, n) =>
    store.workflows.archive({ teamId, ids: n % 2 === 0 ? ids : ids.toReversed() }),
  );
  assert.equal(
    counts.reduce((sum, count) => sum + count),
    20,
  );
});

/** Calls `run` while another transaction locks the row of a job, as the transaction of a stopped process would. */
function whileLocked<Result>(
  { teamId, id }: { teamId: string; id: string },
  run: () => Promise<Result>,
): Promise<Result> {
  return inTransaction(pool, async (held) => {
    await held.run('select 1 from job where team_id = $1 and id = $2 for update', teamId, id);
    return run();
  });
}

function settled<Result>(promise: Promise<Result>): Promise<Result | 'done' | undefined> {
  return promise.then(
    (result) => result ?? 'done',
    () => undefined,
  );
}
