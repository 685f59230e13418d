/** One attempt on a real store that is sometimes unavailable, with a real child process. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { commandSource } from '../../test/support/jobs/engine.ts';
import { Problem } from '../model/error.ts';
import { LEASE_MS } from '../model/job.ts';
import { type Logger, silentLogger } from '../observe/log.ts';
import { Ingester } from '../records/ingester.ts';
import { makeJob, makeWorkflow } from '../store/conformance/setup.ts';
import { openStore } from '../store/open.ts';
import type { ClaimedJob } from '../store/operations/attempts.ts';
import type { Store } from '../store/store.ts';
import { type AttemptDeps, type RunSignals, runAttempt } from './attempt.ts';
import { type SourceDeps, sourceProducer } from './run-source.ts';

async function runJob(
  deps: SourceDeps & AttemptDeps,
  claimed: ClaimedJob,
  signals: RunSignals,
): Promise<string> {
  return (await runAttempt(deps, claimed, sourceProducer(deps, claimed), signals)).outcome;
}

/** Runs a case with one claimed job whose run yields one record. */
function runTest(
  name: string,
  run: (bench: { deps: SourceDeps & AttemptDeps; claimed: ClaimedJob }) => Promise<void>,
): void {
  test(name, async () => {
    const directory = await mkdtemp(join(tmpdir(), 'flowhook-run-'));
    const databaseUrl = `sqlite:${join(directory, 'flowhook.db')}`;
    const ingester = new Ingester({ databaseUrl, log: silentLogger });
    const store = await openStore(databaseUrl, {
      publicUrl: () => 'http://flowhook.test',
      log: silentLogger,
      synchronous: 'OFF',
    });
    try {
      const command = ['printf', '{"id":1}\\n'];
      const at = await makeWorkflow(store, {
        source: commandSource(command),
        retries: { max: 0, backoffMs: 0 },
      });
      await makeJob(store, at);
      const [claimed] = await store.jobs.claim({ nodeId: 'local', limit: 1, leaseMs: LEASE_MS, perTeam: 1 });
      const deps: SourceDeps & AttemptDeps = {
        store,
        ingester,
        log: silentLogger,
        observer: {},
        workflowsDirectory: directory,
        environment: new Map([['PATH', process.env.PATH ?? '']]),
        secrets: async () => new Map(),
        random: () => 0,
      };
      await run({ deps, claimed: claimed as ClaimedJob });
    } finally {
      await ingester.close();
      await store.close();
      await rm(directory, { recursive: true, force: true });
    }
  });
}

function undisturbed(): RunSignals {
  return { abort: new AbortController().signal, cancel: new AbortController().signal };
}

/** The store, but each kind of write fails the first time, or always. */
function failing(store: Store, onFailure: () => void, always = false): Store {
  const away = <Input, Result>(write: (input: Input) => Promise<Result>) => {
    let tries = 0;
    return (input: Input): Promise<Result> => {
      tries += 1;
      if (tries > 1 && !always) return write(input);
      onFailure();
      return Promise.reject(new Problem('database_unavailable'));
    };
  };
  const { jobs, records } = store;
  return {
    ...store,
    jobs: { ...jobs, fail: away(jobs.fail) },
    records: {
      ...records,
      sweep: away(records.sweep),
      stage: away(records.stage),
      remove: away(records.remove),
      publish: away(records.publish),
    },
  };
}

runTest(
  'an error that quotes the output contains neither secrets nor terminal control characters',
  async ({ deps, claimed }) => {
    const { definition } = claimed.workflow;
    const command = ['printf', 'Using %s \\033]0;pwned\\007\\n', 'supersecret-token'];
    const workflow = { ...claimed.workflow, definition: { ...definition, source: commandSource(command) } };
    const secrets = async () => new Map([['TOKEN', 'supersecret-token']]);
    assert.equal(await runJob({ ...deps, secrets }, { ...claimed, workflow }, undisturbed()), 'failed');
    const { teamId, id } = claimed.job;
    const job = await deps.store.jobs.get({ teamId, id });
    assert.match(job?.error ?? '', /Using \*\*\* \]0;pwned/);
    const log = await deps.store.jobs.log({ teamId, jobId: id, attempt: 1, afterSeq: 0, limit: 10 });
    for (const text of [job?.error ?? '', ...log.map((line) => line.text)]) {
      assert.doesNotMatch(text, /supersecret|[^\P{Cc}\n]/u);
    }
  },
);

runTest('logs the records that a run skips', async ({ deps, claimed }) => {
  const command = ['printf', '{"id":1}\\n{"name":"Ada"}\\n'];
  const { definition } = claimed.workflow;
  const skipping = { ...definition, source: commandSource(command), onInvalid: 'skip' as const };
  const workflow = { ...claimed.workflow, definition: skipping };
  const skipped: object[] = [];
  const warn = (fields: object, message: string) =>
    void (message === 'record.skipped' && skipped.push(fields));
  const log: Logger = { ...silentLogger, warn, child: () => log };
  assert.equal(await runJob({ ...deps, log }, { ...claimed, workflow }, undisturbed()), 'finished');
  assert.partialDeepStrictEqual(skipped, [{ position: 2, field: 'id' }]);
});

runTest('waits for an unavailable store instead of losing the run', async ({ deps, claimed }) => {
  let failures = 0;
  const store = failing(deps.store, () => {
    failures += 1;
  });
  const outcome = await runJob({ ...deps, store }, { ...claimed, hasLeftovers: true }, undisturbed());
  assert.equal(outcome, 'finished');
  // sweep, stage, publish
  assert.equal(failures, 3);
});

runTest('does not wait for the store once it is interrupted', async ({ deps, claimed }) => {
  const abort = new AbortController();
  const store = failing(deps.store, () => abort.abort('fenced'), true);
  assert.equal(
    await runJob({ ...deps, store }, claimed, { ...undisturbed(), abort: abort.signal }),
    'interrupted',
  );
});

runTest('is retried when the ingest thread dies', async ({ deps, claimed }) => {
  const threads: Worker[] = [];
  const ingester = new Ingester({
    databaseUrl: '',
    log: silentLogger,
    // Receives messages and never responds.
    open: () => {
      const thread = new Worker('require("node:worker_threads").parentPort.on("message", () => {})', {
        eval: true,
      });
      threads.push(thread);
      return thread;
    },
  });
  const { workflow } = claimed;
  const patient = {
    ...claimed,
    workflow: {
      ...workflow,
      definition: { ...workflow.definition, retries: { max: 1, backoffMs: 0 } },
    },
  };
  const running = runJob({ ...deps, ingester }, patient, undisturbed());
  while (threads.length === 0) await new Promise(setImmediate);
  await threads[0]?.terminate();
  assert.equal(await running, 'retrying');

  const [again] = await deps.store.jobs.claim({ nodeId: 'local', limit: 1, leaseMs: LEASE_MS, perTeam: 1 });
  assert.equal(await runJob(deps, again as ClaimedJob, undisturbed()), 'finished');
});
