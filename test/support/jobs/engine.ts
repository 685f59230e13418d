/** A real store with an engine for tests, with a clock that can be moved and real child processes. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { Engine, type EngineOptions } from '../../../src/jobs/engine.ts';
import { Leases } from '../../../src/jobs/leases.ts';
import { submitJob } from '../../../src/jobs/submit.ts';
import {
  type AttemptLease,
  type Job,
  LEASE_MS,
  type LogLine,
  type ProcessMark,
} from '../../../src/model/job.ts';
import type { Definition } from '../../../src/model/workflow.ts';
import { silentLogger } from '../../../src/observe/log.ts';
import { Ingester } from '../../../src/records/ingester.ts';
import { makeWorkflow } from '../../../src/store/conformance/setup.ts';
import { openStore } from '../../../src/store/open.ts';
import type { Abandoned } from '../../../src/store/operations/attempts.ts';
import type { Store } from '../../../src/store/store.ts';

/** A command that emits one record. */
export const QUICK = ['printf', '{"id":1}\\n'];
/** A command that emits one record and then never ends by itself. */
export const ENDLESS = ['sh', '-c', 'echo "{\\"id\\":1}"; exec sleep 600'];

export interface Bench {
  store: Store;
  engine: Engine;
  /** The leases of `engine`. */
  leases: Leases;
  teamId: string;
  /** Where commands run. */
  directory: string;
  /** Makes another engine on the same store. It is stopped at the end. */
  another(options: Partial<EngineOptions>): Engine;
  advance(ms: number): void;
  /** Makes a workflow with this command and queues it. */
  queue(id: string, command: string[], changes?: Partial<Definition>): Promise<Job>;
  job(id: string): Promise<Job>;
  log(id: string, attempt?: number): Promise<LogLine[]>;
  /** Waits until the job satisfies a condition, which is checked in every turn of the event loop. */
  until(id: string, holds: (job: Job) => boolean): Promise<Job>;
  /** Waits until an attempt of the job has a child process. */
  running(id: string): Promise<{ held: AttemptLease; process: ProcessMark }>;
}

/** Runs a case with its own store and engine, which is not started. */
export function engineTest(
  name: string,
  run: (bench: Bench) => Promise<void>,
  options: Partial<EngineOptions> = {},
): void {
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
    const engines: Engine[] = [];
    const another = (changes: Partial<EngineOptions>) => {
      const engine = new Engine({
        store,
        ingester,
        log: silentLogger,
        observer: {},
        workflowsDirectory: directory,
        environment: new Map([['PATH', process.env.PATH ?? '']]),
        secrets: async () => new Map(),
        random: () => 0,
        nodeId: 'local',
        capacity: 4,
        perTeam: 4,
        ...options,
        ...changes,
      });
      engines.push(engine);
      return engine;
    };
    const leases = new Leases({ store, log: silentLogger, nodeId: 'local' });
    const { id: teamId } = await store.teams.ensure({ slug: 'default' });
    const job = async (id: string) => {
      const found = await store.jobs.get({ teamId, id });
      assert.ok(found);
      return found;
    };
    try {
      await run({
        store,
        engine: another({ leases }),
        leases,
        teamId,
        directory,
        another,
        advance: (ms) => {
          ahead += ms;
        },
        async queue(id, command, changes = {}) {
          const at = await makeWorkflow(store, { id, source: commandSource(command), ...changes });
          return (await submitJob(store, { ...at, origin: 'api', idempotencyKey: null })).job;
        },
        job,
        log: (jobId, attempt = 1) => store.jobs.log({ teamId, jobId, attempt, afterSeq: 0, limit: 100_000 }),
        async until(id, holds) {
          const found = await eventually(`${id} never satisfied the condition`, async () => {
            const now = await job(id);
            return holds(now) ? now : undefined;
          });
          return found;
        },
        running: (id) =>
          eventually(`${id} never ran`, async () => {
            const attempts = await store.jobs.abandoned({ nodeId: 'local' });
            const found = attempts.find(({ held }) => held.jobId === id);
            return found?.process ? { held: found.held, process: found.process } : undefined;
          }),
      });
    } finally {
      await Promise.all(engines.map((engine) => engine.stop()));
      await ingester.close();
      await store.close();
      await rm(directory, { recursive: true, force: true });
    }
  });
}

export function commandSource(command: string[]): Definition['source'] {
  return {
    type: 'command',
    command,
    protocol: 'ndjson',
    streams: null,
    config: null,
    env: {},
    directory: '.',
  };
}

/** Acts like a process that claims a job for this node and then crashes. */
export async function claimAndVanish(store: Store): Promise<AttemptLease> {
  const [claimed] = await store.jobs.claim({ nodeId: 'local', limit: 1, leaseMs: LEASE_MS, perTeam: 100 });
  assert.ok(claimed);
  return { teamId: claimed.job.teamId, jobId: claimed.job.id, attempt: claimed.job.attempt };
}

/** Acts like another node that takes over a job whose lease has expired. */
export async function takeAway(store: Store): Promise<Abandoned> {
  const [lost] = await store.jobs.abandoned({ nodeId: null });
  assert.ok(lost);
  await store.jobs.reclaim({ held: lost.held, nodeId: null, error: 'taken over' });
  return lost;
}

async function eventually<Result>(
  otherwise: string,
  look: () => Promise<Result | undefined>,
): Promise<Result> {
  const deadline = performance.now() + 90_000;
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    assert.ok(performance.now() < deadline, otherwise);
    await new Promise(setImmediate);
  }
}
