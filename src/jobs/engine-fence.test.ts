/** Which engine may run a job after silence, with hanging stores, clock jumps and two engines. */
import assert from 'node:assert/strict';
import { ENDLESS, engineTest, QUICK } from '../../test/support/jobs/engine.ts';
import { LEASE_MS } from '../model/job.ts';
import { groupGone, isSameProcess } from '../sources/process/groups.ts';
import type { Store } from '../store/store.ts';

/** A lease short enough to expire within a test. */
const SHORT_MS = 600;

function withBeat(store: Store, beat: Store['jobs']['beat']): Store {
  return { ...store, jobs: { ...store.jobs, beat } };
}

for (const [how, beat] of [
  ['hangs', () => new Promise<never>(() => {})],
  ['fails', () => Promise.reject(new Error('away'))],
] as const) {
  engineTest(
    `kills its runs when its heartbeat ${how}, and reclaims the job`,
    async ({ another, store, queue, running, until }) => {
      const engine = another({ store: withBeat(store, beat), leaseMs: SHORT_MS });
      const { id } = await queue('endless', ENDLESS);
      await engine.start();
      const { process } = await running(id);
      assert.equal(await groupGone(process.pid), true);
      const { crashes } = await until(id, ({ attempt }) => attempt > 1);
      assert.ok(crashes > 0);
    },
  );
}

engineTest(
  'a killed attempt whose own writes hang does not block the next one',
  async ({ another, store, queue, until }) => {
    const response = Promise.withResolvers<void>();
    let stages = 0;
    const stage: Store['records']['stage'] = async (input) => {
      stages += 1;
      if (stages === 1) await response.promise;
      return store.records.stage(input);
    };
    let hangs = true;
    const beating = withBeat(store, (input) => (hangs ? new Promise(() => {}) : store.jobs.beat(input)));
    const hung = { ...beating, records: { ...store.records, stage } };
    const engine = another({ store: hung, leaseMs: SHORT_MS });
    const { id } = await queue('quick', QUICK);
    await engine.start();
    try {
      await until(id, ({ crashes }) => crashes > 0);
      hangs = false;
      const { state, attempt } = await until(id, ({ finishedAt }) => finishedAt !== null);
      assert.equal(state, 'finished');
      assert.ok(attempt > 1);
    } finally {
      // Otherwise stopping the engine would wait for this response.
      response.resolve();
    }
  },
);

engineTest(
  'a process that wakes up after its leases expired keeps its runs if no other node has taken them',
  async ({ engine, leases, store, queue, running, job, advance }) => {
    const { id } = await queue('endless', ENDLESS);
    await engine.start();
    const { process } = await running(id);
    advance(LEASE_MS + 1);
    assert.equal((await store.jobs.abandoned({ nodeId: null })).length, 1);
    await engine.reap({ nodeId: null });
    await leases.beat();
    assert.deepEqual(await store.jobs.abandoned({ nodeId: null }), []);
    assert.deepEqual([(await job(id)).attempt, await isSameProcess(process)], [1, true]);
  },
);

engineTest(
  'a job has one outcome when a second engine takes it over from a silent one',
  async ({ another, store, teamId, queue, running, job, advance }) => {
    // The first engine reports the end of its child only after the second one has finished.
    const over = Promise.withResolvers<void>();
    const fail: Store['jobs']['fail'] = (input) => over.promise.then(() => store.jobs.fail(input));
    const engine = another({ store: { ...store, jobs: { ...store.jobs, fail } } });
    const second = another({ nodeId: 'other' });
    const { id } = await queue('endless', [
      'sh',
      '-c',
      'echo "{\\"id\\":$FLOWHOOK_ATTEMPT}"; [ $FLOWHOOK_ATTEMPT = 2 ] || exec sleep 600',
    ]);
    const first = engine.tick();
    await running(id);
    advance(LEASE_MS + 1);
    await second.reap({ nodeId: null });
    await second.tick();
    over.resolve();
    // The child of the first engine was killed, but its end must not be written.
    await first;
    const { state, attempt, crashes, failures, version } = await job(id);
    assert.deepEqual([state, attempt, crashes, failures, version], ['finished', 2, 1, 0, 1]);
    const events = await store.events.list({ teamId, afterSequence: 0, limit: 100 });
    assert.deepEqual(
      events.map(({ type }) => type),
      ['workflow_queued', 'workflow_started', 'workflow_data_change', 'workflow_finished'],
    );
    const { json } = await store.records.page({
      teamId,
      workflowId: 'endless',
      version: 1,
      afterSeq: 0,
      rows: 10,
    });
    assert.equal(Buffer.from(json).toString(), '{"id":"2"}');
  },
);

engineTest('two engines run every job once', async ({ engine, another, queue, until }) => {
  const ids: string[] = [];
  for (let n = 0; n < 6; n++) ids.push((await queue(`quick-${n}`, QUICK)).id);
  await Promise.all([engine.start(), another({ nodeId: 'other' }).start()]);
  for (const id of ids) {
    const { state, attempt } = await until(id, ({ finishedAt }) => finishedAt !== null);
    assert.deepEqual([state, attempt], ['finished', 1]);
  }
});
