/** The engine on a real store, with real child processes. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { type Held, type Job, LEASE_MS, type ProcessMark } from '../model/job.ts';
import type { Definition } from '../model/workflow.ts';
import { silentLogger } from '../observe/log.ts';
import { Ingester } from '../records/ingester.ts';
import { openStore } from '../store/open.ts';
import type { Abandoned, Store } from '../store/store.ts';
import { groupGone, isSameProcess, markOf } from '../workflows/sources/process-mark.ts';
import { Engine } from './engine.ts';
import { submitJob } from './submit.ts';

const QUICK = ['printf', '{"id":1}\\n'];
/** Says that it runs by a record, and then never ends by itself. */
const ENDLESS = ['sh', '-c', 'echo "{\\"id\\":1}"; exec sleep 600'];

interface Bench {
  store: Store;
  engine: Engine;
  advance(ms: number): void;
  /** Makes a workflow of this command and queues it. */
  queue(id: string, command: string[], changes?: Partial<Definition>): Promise<Job>;
  job(id: string): Promise<Job>;
}

/** Runs a case with a store and an engine of its own, neither of them started. */
function engineTest(name: string, run: (bench: Bench) => Promise<void>, capacity = 4): void {
  test(name, async () => {
    const directory = await mkdtemp(join(tmpdir(), 'flowhook-engine-'));
    let ahead = 0;
    const databaseUrl = `sqlite:${join(directory, 'flowhook.db')}`;
    const store = await openStore(databaseUrl, {
      clock: () => Date.now() + ahead,
      publicUrl: () => 'http://flowhook.test',
      log: silentLogger,
      synchronous: 'OFF',
    });
    const ingester = new Ingester({ databaseUrl, log: silentLogger });
    const engine = new Engine({
      store,
      ingester,
      log: silentLogger,
      workflowsDirectory: directory,
      environment: new Map([['PATH', process.env.PATH ?? '']]),
      secrets: async () => new Map(),
      random: () => 0,
      nodeId: 'local',
      capacity,
    });
    const team = await store.teams.ensure({ slug: 'default' });
    try {
      await run({
        store,
        engine,
        advance: (ms) => {
          ahead += ms;
        },
        async queue(id, command, changes = {}) {
          const definition: Definition = {
            name: id,
            source: { type: 'command', command, protocol: 'ndjson', env: {}, directory: '.' },
            key: [],
            mode: 'replace',
            onInvalid: 'fail',
            overlap: 'reject',
            guards: { minRecords: 1, maxDropPercent: null },
            limits: { timeoutMs: 60_000, records: 1_000 },
            retries: { max: 2, backoffMs: 5_000 },
            ...changes,
          };
          await store.workflows.apply({ teamId: team.id, id, definition, hash: JSON.stringify(definition) });
          const at = { teamId: team.id, workflowId: id, origin: 'api', idempotencyKey: null } as const;
          return (await submitJob(store, at)).job;
        },
        async job(id) {
          const job = await store.jobs.get({ teamId: team.id, id });
          assert.ok(job);
          return job;
        },
      });
    } finally {
      await engine.stop();
      await ingester.close();
      await store.close();
      await rm(directory, { recursive: true, force: true });
    }
  });
}

/** Looks, turn by turn of the event loop, until an attempt of the job has a child process. */
async function running(store: Store, id: string): Promise<void> {
  const deadline = performance.now() + 10_000;
  for (;;) {
    const attempts = await store.jobs.abandoned({ nodeId: 'local' });
    if (attempts.some(({ held, process }) => held.jobId === id && process !== null)) return;
    assert.ok(performance.now() < deadline, `${id} never ran`);
    await new Promise(setImmediate);
  }
}

/** What another process would have done: claims the job for this node and then never speaks of it again. */
async function claimAndVanish(store: Store): Promise<Held> {
  const [claimed] = await store.jobs.claim({ nodeId: 'local', limit: 1, leaseMs: LEASE_MS });
  assert.ok(claimed);
  return { teamId: claimed.job.teamId, jobId: claimed.job.id, attempt: claimed.job.attempt };
}

/** What another node would have done: takes back the job whose lease is over. */
async function takeAway(store: Store): Promise<Abandoned> {
  const [lost] = await store.jobs.abandoned({ nodeId: null });
  assert.ok(lost);
  await store.jobs.reclaim({ held: lost.held, error: 'taken over' });
  return lost;
}

engineTest('runs what is due to its end', async ({ engine, queue, job }) => {
  const queued = await queue('quick', QUICK);
  await engine.tick();
  const { state, attempt, records } = await job(queued.id);
  assert.deepEqual(
    { state, attempt, records },
    {
      state: 'finished',
      attempt: 1,
      records: { total: 1, added: 1, changed: 0, removed: 0 },
    },
  );
});

engineTest(
  'tries a failing run again by its budget, then fails it',
  async ({ engine, queue, job, advance }) => {
    const queued = await queue('failing', ['false']);
    for (const expected of ['retrying', 'retrying', 'failed']) {
      await engine.tick();
      assert.equal((await job(queued.id)).state, expected);
      advance(10 * 60_000);
    }
    const { failures, reason, error } = await job(queued.id);
    assert.equal(failures, 3);
    assert.equal(reason, 'error');
    assert.match(error ?? '', /exit code 1/);
  },
);

engineTest(
  'runs no more jobs at once than its capacity',
  async ({ engine, store, queue }) => {
    const jobs = [await queue('one', ENDLESS), await queue('two', ENDLESS), await queue('three', ENDLESS)];
    await engine.start();
    await running(store, jobs[0]?.id ?? '');
    await running(store, jobs[1]?.id ?? '');
    assert.equal((await store.jobs.abandoned({ nodeId: 'local' })).length, 2);
  },
  2,
);

engineTest(
  'at its start takes up what an earlier life left running',
  async ({ engine, store, queue, job }) => {
    const queued = await queue('quick', QUICK);
    await claimAndVanish(store);
    await engine.start();
    await engine.tick();
    const { state, attempt, crashes, failures } = await job(queued.id);
    assert.deepEqual(
      { state, attempt, crashes, failures },
      { state: 'finished', attempt: 2, crashes: 1, failures: 0 },
    );
  },
);

engineTest(
  'first kills the processes that the earlier life left behind',
  async ({ engine, store, queue }) => {
    await queue('quick', QUICK);
    const held = await claimAndVanish(store);
    const leftover = spawn('sleep', ['600'], { detached: true, stdio: 'ignore' });
    const exited = once(leftover, 'exit');
    const mark = await markOf(leftover.pid ?? 0);
    assert.ok(mark);
    await store.jobs.setProcess({ held, process: mark });
    await engine.start();
    assert.deepEqual(await exited, [null, 'SIGKILL']);
  },
);

engineTest('fails a job that was lost three times', async ({ engine, store, queue, job }) => {
  const queued = await queue('quick', QUICK);
  for (let life = 1; life <= 3; life++) {
    await claimAndVanish(store);
    await engine.reap({ nodeId: 'local' });
  }
  const { state, reason } = await job(queued.id);
  assert.deepEqual({ state, reason }, { state: 'failed', reason: 'lost' });
});

engineTest(
  'gives running jobs back when it stops, without using up a budget',
  async ({ engine, store, queue, job }) => {
    const queued = await queue('endless', ENDLESS);
    await engine.start();
    await running(store, queued.id);
    await engine.stop();
    const { state, attempt, crashes, failures } = await job(queued.id);
    assert.deepEqual(
      { state, attempt, crashes, failures },
      { state: 'retrying', attempt: 1, crashes: 0, failures: 0 },
    );
  },
);

engineTest('ends what runs when it stops, also while the store is away', async ({ engine, store, queue }) => {
  const queued = await queue('endless', ENDLESS);
  await engine.start();
  await running(store, queued.id);
  const [attempt] = await store.jobs.abandoned({ nodeId: 'local' });
  await store.close();
  await assert.rejects(() => engine.tick());
  await engine.stop();
  assert.equal(await isSameProcess(attempt?.process as ProcessMark), false);
});

engineTest(
  'ends a run whose job was taken over, and the run writes nothing',
  async ({ engine, store, queue, job, advance }) => {
    const queued = await queue('endless', ENDLESS);
    await engine.start();
    await running(store, queued.id);
    advance(LEASE_MS + 1);
    await takeAway(store);
    await store.jobs.claim({ nodeId: 'other', limit: 1, leaseMs: LEASE_MS });
    await engine.beat();
    await engine.tick();
    const { state, attempt } = await job(queued.id);
    assert.deepEqual({ state, attempt }, { state: 'running', attempt: 2 });
  },
  1,
);

engineTest(
  'ends the old attempt when a job that was taken away comes back to it',
  async ({ engine, store, queue, advance }) => {
    const queued = await queue('endless', ENDLESS);
    await engine.start();
    await running(store, queued.id);
    advance(LEASE_MS + 1);
    const old = await takeAway(store);
    await running(store, queued.id);
    const [current] = await store.jobs.abandoned({ nodeId: 'local' });
    assert.equal(current?.held.attempt, 2);
    await groupGone(old.process?.pid ?? 0);
    assert.equal(await isSameProcess(old.process as ProcessMark), false);
    assert.equal(await isSameProcess(current?.process as ProcessMark), true);
  },
);

engineTest(
  'starting twice, stopping twice and stopping before a start are harmless',
  async ({ engine, queue, job }) => {
    await engine.stop();
    await engine.start();
    await engine.start();
    const queued = await queue('quick', QUICK);
    await engine.tick();
    assert.equal((await job(queued.id)).state, 'finished');
    await engine.stop();
    await engine.stop();
  },
);
