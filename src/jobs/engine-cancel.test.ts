/** Canceling jobs that run on this node, that ran on another one, and that are about to publish. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Bench, claimAndVanish, ENDLESS, engineTest, QUICK } from '../../test/support/jobs/engine.ts';
import { LEASE_MS, type ProcessMark } from '../model/job.ts';
import { isSameProcess } from '../sources/process/groups.ts';
import type { Store } from '../store/store.ts';

/** Prints goodbye on SIGTERM. Creates the file `listening` when it is ready. */
const POLITE = [
  'sh',
  '-c',
  'trap "echo goodbye >&2; exit 0" TERM; touch listening; while :; do sleep 0.05; done',
];
/** Ignores SIGTERM: the signal to the group ends only the sleep. */
const DEAF = ['sh', '-c', 'trap "" TERM; echo "{\\"id\\":1}"; while :; do sleep 0.05; done'];
/** Succeeds as soon as the file `go` exists. */
const WAITING = ['sh', '-c', 'echo "{\\"id\\":1}"; until [ -e go ]; do sleep 0.01; done'];

const by = 'Canceled by the key test';

async function eventTypes({ store, teamId }: Bench, jobId: string): Promise<string[]> {
  const events = await store.events.list({ teamId, afterSequence: 0, limit: 1_000 });
  return events.filter((event) => event.jobId === jobId).map(({ type }) => type);
}

engineTest('a running job is asked to stop immediately, and ends as canceled', async (bench) => {
  const { engine, store, teamId, directory, queue, running, until, log } = bench;
  const { id } = await queue('polite', POLITE);
  await engine.start();
  const { process } = await running(id);
  await until(id, () => existsSync(join(directory, 'listening')));
  const canceled = await store.jobs.cancel({ teamId, id, by });
  assert.equal(canceled?.outcome, 'canceling');
  const job = await until(id, ({ state }) => state !== 'running');
  assert.deepEqual([job.state, job.error, job.attempt], ['canceled', by, 1]);
  assert.equal(await isSameProcess(process), false);
  const lines = await log(id);
  assert.match(lines[0]?.text ?? '', /^Attempt 1: the command sh runs as process \d+$/);
  assert.deepEqual(
    lines.slice(-2).map(({ text }) => text),
    ['goodbye', 'Canceled: the run was stopped and nothing was published'],
  );
  assert.deepEqual(await eventTypes(bench, id), ['workflow_queued', 'workflow_started', 'workflow_canceled']);
});

engineTest(
  'a cancellation that a failed heartbeat missed is noticed soon after',
  async ({ another, store, teamId, queue, running, until }) => {
    let failures = 0;
    const beat: Store['jobs']['beat'] = (input) => {
      if (failures > 0) return store.jobs.beat(input);
      failures += 1;
      return Promise.reject(new Error('away'));
    };
    // Regular heartbeats are sent every 10 s.
    const engine = another({ store: { ...store, jobs: { ...store.jobs, beat } } });
    const { id } = await queue('endless', ENDLESS);
    await engine.start();
    await running(id);
    await store.jobs.cancel({ teamId, id, by });
    const from = performance.now();
    await until(id, ({ state }) => state === 'canceled');
    assert.ok(performance.now() - from < 5_000);
  },
);

engineTest(
  'a program that ignores the request is killed after the grace period',
  async ({ engine, store, teamId, queue, running, until }) => {
    const { id } = await queue('deaf', DEAF);
    await engine.start();
    const { process } = await running(id);
    await store.jobs.cancel({ teamId, id, by });
    const job = await until(id, ({ state }) => state !== 'running');
    assert.equal(job.state, 'canceled');
    assert.equal(await isSameProcess(process), false);
  },
  { killGraceMs: 100 },
);

engineTest(
  'stopping the engine ends a grace period',
  async ({ engine, leases, store, teamId, queue, running, job }) => {
    const { id } = await queue('deaf', DEAF);
    await engine.start();
    const { process } = await running(id);
    await store.jobs.cancel({ teamId, id, by });
    await leases.beat();
    await engine.stop();
    assert.equal((await job(id)).state, 'canceled');
    assert.equal(await isSameProcess(process as ProcessMark), false);
  },
);

engineTest(
  'a waiting job is canceled immediately and never runs',
  async ({ engine, store, teamId, queue, job }) => {
    const { id } = await queue('quick', QUICK);
    assert.equal((await store.jobs.cancel({ teamId, id, by }))?.outcome, 'canceled');
    await engine.tick();
    const { state, attempt } = await job(id);
    assert.deepEqual([state, attempt], ['canceled', 0]);
  },
);

engineTest(
  'a canceled job whose node is gone ends as canceled when another node reclaims it',
  async ({ engine, store, teamId, queue, job, advance }) => {
    const { id } = await queue('endless', ENDLESS);
    await claimAndVanish(store);
    await store.jobs.cancel({ teamId, id, by });
    advance(LEASE_MS + 1);
    await engine.reap({ nodeId: null });
    const { state, error } = await job(id);
    assert.deepEqual([state, error], ['canceled', by]);
  },
);

engineTest('a cancellation before publishing prevents it', async (bench) => {
  const { engine, store, teamId, directory, queue, running, job } = bench;
  const { id } = await queue('waiting', WAITING);
  // Without heartbeats, the engine notices the cancellation only when it tries to publish.
  const ticking = engine.tick();
  await running(id);
  await store.jobs.cancel({ teamId, id, by });
  await writeFile(join(directory, 'go'), '');
  await ticking;
  assert.equal((await job(id)).state, 'canceled');
  assert.equal((await store.records.version({ teamId, workflowId: 'waiting' }))?.number, 0);
  assert.equal((await eventTypes(bench, id)).at(-1), 'workflow_canceled');
});
