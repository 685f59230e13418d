/** Claims whose response is lost, or in which one job has to wait: on a real store, with real child processes. */
import assert from 'node:assert/strict';
import { ENDLESS, engineTest, QUICK } from '../../test/support/jobs/engine.ts';
import { Problem } from '../model/error.ts';

engineTest('a claim whose response was lost is released, and uses up no retry', async (bench) => {
  const { store, another, queue, job } = bench;
  const queued = await queue('quick', QUICK);
  let isLost = true;
  const engine = another({
    store: {
      ...store,
      jobs: {
        ...store.jobs,
        claim: async (input) => {
          const claimed = await store.jobs.claim(input);
          if (isLost) throw new Problem('database_unavailable');
          return claimed;
        },
      },
    },
  });
  await assert.rejects(engine.tick());
  assert.equal((await job(queued.id)).state, 'running');
  isLost = false;
  await engine.tick();
  const { state, attempt, crashes } = await job(queued.id);
  assert.deepEqual({ state, attempt, crashes }, { state: 'finished', attempt: 2, crashes: 0 });
});

engineTest('stopping releases a claim whose response was lost', async ({ store, another, queue, job }) => {
  const { id } = await queue('quick', QUICK);
  const claim: typeof store.jobs.claim = async (input) => {
    await store.jobs.claim(input);
    throw new Problem('database_unavailable');
  };
  const engine = another({ store: { ...store, jobs: { ...store.jobs, claim } } });
  await assert.rejects(engine.tick());
  assert.equal((await job(id)).state, 'running');
  await engine.stop();
  const { state, crashes, failures } = await job(id);
  assert.deepEqual({ state, crashes, failures }, { state: 'retrying', crashes: 0, failures: 0 });
});

engineTest('stopping releases the jobs of a claim that is still running', async (bench) => {
  const { store, another, queue, job, until } = bench;
  const ids = [(await queue('quick', QUICK)).id, (await queue('endless', ENDLESS)).id] as const;
  const gate = Promise.withResolvers<void>();
  let claims = 0;
  const claim: typeof store.jobs.claim = async (input) => {
    const claimed = await store.jobs.claim(input);
    if (++claims === 2) await gate.promise;
    return claimed;
  };
  const engine = another({ capacity: 1, store: { ...store, jobs: { ...store.jobs, claim } } });
  await engine.tick();
  await until(ids[1], ({ state }) => state === 'running');
  const stopped = engine.stop();
  await new Promise(setImmediate);
  gate.resolve();
  await stopped;
  const { state, crashes, failures } = await job(ids[1]);
  assert.deepEqual({ state, crashes, failures }, { state: 'retrying', crashes: 0, failures: 0 });
});

engineTest(
  'stopping releases a run whose end the store did not record',
  async ({ store, another, queue, job }) => {
    const { id } = await queue('unended', ['false']);
    const fail = () => Promise.reject(new Problem('stopping'));
    const engine = another({ store: { ...store, jobs: { ...store.jobs, fail } } });
    await engine.tick();
    assert.equal((await job(id)).state, 'running');
    await engine.stop();
    const { state, crashes, failures } = await job(id);
    assert.deepEqual({ state, crashes, failures }, { state: 'retrying', crashes: 0, failures: 0 });
  },
);

engineTest('a job whose files are still being compared does not delay other jobs', async (bench) => {
  const { another, queue, until } = bench;
  const waiting = await queue('waiting', QUICK);
  const other = await queue('other', QUICK);
  const compared = Promise.withResolvers<boolean>();
  const engine = another({ runsHere: async ({ id }) => id === 'other' || compared.promise });
  const ticked = engine.tick();
  await until(other.id, ({ state }) => state === 'finished');
  compared.resolve(true);
  await ticked;
  await until(waiting.id, ({ state }) => state === 'finished');
});

engineTest('a job that cannot be reclaimed does not keep others from being reclaimed', async (bench) => {
  const { store, another, queue, job } = bench;
  const jobs = [await queue('locked', QUICK), await queue('other', QUICK)];
  await store.jobs.claim({ nodeId: 'gone', limit: 4, leaseMs: 0, perTeam: 4 });
  const engine = another({
    store: {
      ...store,
      jobs: {
        ...store.jobs,
        reclaim: (input) =>
          input.held.jobId === jobs[0]?.id
            ? Promise.reject(new Problem('database_busy'))
            : store.jobs.reclaim(input),
      },
    },
  });
  bench.advance(1);
  await engine.reap({ nodeId: null });
  const states = await Promise.all(jobs.map(async ({ id }) => (await job(id)).state));
  assert.deepEqual(states, ['running', 'retrying']);
});
