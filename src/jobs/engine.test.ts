/** The engine on a real store, with real child processes: claiming, reclaiming, releasing and stopping. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { claimAndVanish, ENDLESS, engineTest, QUICK, takeAway } from '../../test/support/jobs/engine.ts';
import { LEASE_MS, type ProcessMark } from '../model/job.ts';
import { groupGone, isSameProcess, markOf } from '../sources/process/groups.ts';
import type { Store } from '../store/store.ts';

engineTest('runs a due job to its end', async ({ engine, queue, job }) => {
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
  'retries a failing run as often as its workflow allows, then fails the job',
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
  'an exception while an end is reported still frees the place for the next job',
  async ({ another, queue, job }) => {
    const jobAttemptDone = () => {
      throw new Error('broken observer');
    };
    const engine = another({ capacity: 1, observer: { jobAttemptDone } });
    const ids = [(await queue('one', QUICK)).id, (await queue('two', QUICK)).id];
    for (const _ of ids) await engine.tick();
    for (const id of ids) assert.equal((await job(id)).state, 'finished');
  },
);

engineTest(
  'runs at most as many concurrent jobs as its capacity',
  async ({ engine, store, queue, running }) => {
    const jobs = [await queue('one', ENDLESS), await queue('two', ENDLESS), await queue('three', ENDLESS)];
    await engine.start();
    await running(jobs[0]?.id ?? '');
    await running(jobs[1]?.id ?? '');
    assert.equal((await store.jobs.abandoned({ nodeId: 'local' })).length, 2);
  },
  { capacity: 2 },
);

engineTest(
  'an attempt that publishes leaves its place to one other job',
  async ({ another, store, queue, until }) => {
    const gate = Promise.withResolvers<void>();
    let publishing = 0;
    let claims = 0;
    const publish: Store['records']['publish'] = async (input) => {
      publishing += 1;
      await gate.promise;
      return store.records.publish(input);
    };
    const claim: Store['jobs']['claim'] = (input) => {
      claims += 1;
      return store.jobs.claim(input);
    };
    const engine = another({
      capacity: 1,
      store: { ...store, jobs: { ...store.jobs, claim }, records: { ...store.records, publish } },
    });
    const ids: string[] = [];
    for (const name of ['one', 'two', 'three']) ids.push((await queue(name, QUICK)).id);
    await engine.start();
    await until(ids[2] ?? '', () => publishing === 2);
    const before = claims;
    const ticked = engine.tick();
    assert.equal(claims, before, 'nothing is claimed while two attempts publish');
    assert.equal((await store.jobs.abandoned({ nodeId: 'local' })).length, 2);
    gate.resolve();
    for (const id of ids) await until(id, ({ state }) => state === 'finished');
    await ticked;
  },
);

engineTest(
  'runs at most as many concurrent jobs of one team as a team may have',
  async ({ engine, store, queue, running }) => {
    const jobs = [await queue('one', ENDLESS), await queue('two', ENDLESS)];
    await engine.start();
    await running(jobs[0]?.id ?? '');
    assert.equal((await store.jobs.abandoned({ nodeId: 'local' })).length, 1);
  },
  { perTeam: 1 },
);

engineTest(
  'reclaims at startup the jobs that a previous process left running',
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
  'first kills the child processes that the previous process left behind',
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
  'releases running jobs when it stops, without using up their retries',
  async ({ engine, queue, job, running }) => {
    const queued = await queue('endless', ENDLESS);
    await engine.start();
    await running(queued.id);
    await engine.stop();
    const { state, attempt, crashes, failures } = await job(queued.id);
    assert.deepEqual(
      { state, attempt, crashes, failures },
      { state: 'retrying', attempt: 1, crashes: 0, failures: 0 },
    );
  },
);

engineTest(
  'kills its runs when it stops, even while the store is unavailable',
  async ({ engine, store, queue, running }) => {
    const queued = await queue('endless', ENDLESS);
    await engine.start();
    await running(queued.id);
    const [attempt] = await store.jobs.abandoned({ nodeId: 'local' });
    await store.close();
    await assert.rejects(() => engine.tick());
    await engine.stop();
    assert.equal(await isSameProcess(attempt?.process as ProcessMark), false);
  },
);

engineTest(
  'kills a run whose job another node has taken, and the run writes nothing',
  async ({ engine, leases, store, queue, job, advance, running }) => {
    const queued = await queue('endless', ENDLESS);
    await engine.start();
    await running(queued.id);
    advance(LEASE_MS + 1);
    await takeAway(store);
    await store.jobs.claim({ nodeId: 'other', limit: 1, leaseMs: LEASE_MS, perTeam: 100 });
    await leases.beat();
    await engine.tick();
    const { state, attempt } = await job(queued.id);
    assert.deepEqual({ state, attempt }, { state: 'running', attempt: 2 });
  },
  { capacity: 1 },
);

engineTest(
  'kills the old attempt when it claims again a job that it had lost',
  async ({ engine, store, queue, advance, running }) => {
    const queued = await queue('endless', ENDLESS);
    await engine.start();
    await running(queued.id);
    advance(LEASE_MS + 1);
    const old = await takeAway(store);
    await running(queued.id);
    const [current] = await store.jobs.abandoned({ nodeId: 'local' });
    assert.equal(current?.held.attempt, 2);
    await groupGone(old.process?.pid ?? 0);
    assert.equal(await isSameProcess(old.process as ProcessMark), false);
    assert.equal(await isSameProcess(current?.process as ProcessMark), true);
  },
);

engineTest(
  'starting twice, stopping twice and stopping before a start are harmless',
  async ({ engine, queue, until }) => {
    await engine.stop();
    await engine.start();
    await engine.start();
    const queued = await queue('quick', QUICK);
    await until(queued.id, ({ state }) => state === 'finished');
    await engine.stop();
    await engine.stop();
  },
);
