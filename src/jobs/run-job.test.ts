/** One attempt on a real store that is away at times, with a real child process. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { Problem } from '../model/error.ts';
import { LEASE_MS } from '../model/job.ts';
import { silentLogger } from '../observe/log.ts';
import { makeJob, makeWorkflow } from '../store/conformance/setup.ts';
import { openStore } from '../store/open.ts';
import type { ClaimedJob, Store } from '../store/store.ts';
import { type RunJobDeps, runJob } from './run-job.ts';

/** Runs a case with one claimed job, whose run brings one record. */
function runTest(
  name: string,
  run: (bench: { deps: RunJobDeps; claimed: ClaimedJob }) => Promise<void>,
): void {
  test(name, async () => {
    const directory = await mkdtemp(join(tmpdir(), 'flowhook-run-'));
    const store = await openStore(`sqlite:${join(directory, 'flowhook.db')}`, {
      publicUrl: () => 'http://flowhook.test',
      log: silentLogger,
      synchronous: 'OFF',
    });
    try {
      const command = ['printf', '{"id":1}\\n'];
      const at = await makeWorkflow(store, {
        source: { type: 'command', command, protocol: 'ndjson', env: {}, directory: '.' },
        retries: { max: 0, backoffMs: 0 },
      });
      await makeJob(store, at);
      const [claimed] = await store.jobs.claim({ nodeId: 'local', limit: 1, leaseMs: LEASE_MS });
      const deps: RunJobDeps = {
        store,
        log: silentLogger,
        workflowsDirectory: directory,
        environment: new Map([['PATH', process.env.PATH ?? '']]),
        secrets: async () => new Map(),
        random: () => 0,
      };
      await run({ deps, claimed: claimed as ClaimedJob });
    } finally {
      await store.close();
      await rm(directory, { recursive: true, force: true });
    }
  });
}

/** The store, with writes of a run that find it away: the first of each, or all. */
function awayAtTimes(store: Store, onAway: () => void, always = false): Store {
  const away = <Input, Result>(write: (input: Input) => Promise<Result>) => {
    let tries = 0;
    return (input: Input): Promise<Result> => {
      tries += 1;
      if (tries > 1 && !always) return write(input);
      onAway();
      return Promise.reject(new Problem('database_unavailable'));
    };
  };
  const { jobs, records } = store;
  return {
    ...store,
    jobs: { ...jobs, setProcess: away(jobs.setProcess), fail: away(jobs.fail) },
    records: {
      ...records,
      sweep: away(records.sweep),
      stage: away(records.stage),
      remove: away(records.remove),
      publish: away(records.publish),
    },
  };
}

runTest('waits for a store that is away instead of losing the run', async ({ deps, claimed }) => {
  let away = 0;
  const store = awayAtTimes(deps.store, () => {
    away += 1;
  });
  const outcome = await runJob({ ...deps, store }, claimed, new AbortController().signal);
  assert.equal(outcome, 'finished');
  assert.equal(away, 4);
});

runTest('does not wait for the store once it is interrupted', async ({ deps, claimed }) => {
  const abort = new AbortController();
  const store = awayAtTimes(deps.store, () => abort.abort('fenced'), true);
  assert.equal(await runJob({ ...deps, store }, claimed, abort.signal), 'interrupted');
});
