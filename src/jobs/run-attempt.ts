/** Runs an attempt from starting its source to publishing its records. `run-job.ts` handles its end. */

import type { Ceilings } from '../definitions/api-bounds.ts';
import { FencedError } from '../model/error.ts';
import type { FailureReason, Held } from '../model/job.ts';
import { InvalidRecordError } from '../model/record.ts';
import type { Definition, Workflow } from '../model/workflow.ts';
import type { AddressPolicy } from '../net/address-policy.ts';
import type { Logger } from '../observe/log.ts';
import type { Observer } from '../observe/observer.ts';
import type { Tracing } from '../observe/tracing.ts';
import { type Ingested, ingest, removeUnseen } from '../records/ingest.ts';
import { type SkippedRecord, TooManyRecordsError } from '../records/ingest-batch.ts';
import type { Ingester } from '../records/ingester.ts';
import type { RunAs } from '../sources/process/environment.ts';
import type { Run, RunInput } from '../sources/run.ts';
import { createMask } from '../sources/secrets.ts';
import { sourceName, startRun } from '../sources/start.ts';
import { countWords } from '../std/amounts.ts';
import type { ClaimedJob } from '../store/operations/attempts.ts';
import type { Published } from '../store/operations/publish.ts';
import type { Store } from '../store/store.ts';
import type { Reporter } from './reporter.ts';

/** The dependencies of running jobs. */
export interface RunJobDeps {
  store: Store;
  ingester: Ingester;
  log: Logger;
  /** Receives a report of each attempt. */
  observer: Observer;
  /** Begins traces for jobs that have none; undefined when tracing is off. */
  tracing?: Tracing | undefined;
  /** Where the definition files are on this node. */
  workflowsDirectory: string;
  /** The server's environment, of which children inherit a few variables. */
  environment: ReadonlyMap<string, string>;
  /** The secrets that a workflow may use; `team` is the slug. */
  secrets(team: string, workflow: Workflow): Promise<ReadonlyMap<string, string>>;
  /** What definitions made over the API are held to; nothing by default. */
  ceilings?: Ceilings;
  /** In [0, 1), for the jitter of retries. */
  random(): number;
  /** Addresses that sources may fetch from; only public ones by default. */
  fetchPolicy?: AddressPolicy;
  /** The system user that sources run as; the service's own by default. */
  runAs?: RunAs | undefined;
  /** Between SIGTERM and SIGKILL; 10 s by default. */
  killGraceMs?: number;
}

/** For a source that reports that nothing has changed: the published records have passed the guards already. */
const NO_GUARDS: Definition['guards'] = { minRecords: 0, maxDropPercent: null };

/** How the engine ends an attempt early. */
export interface RunSignals {
  /** Its children are killed at once. */
  abort: AbortSignal;
  /** Its children are asked to end, and killed after the grace. */
  cancel: AbortSignal;
}

interface Attempt extends RunJobDeps {
  claimed: ClaimedJob;
  held: Held;
  reporter: Reporter;
  signals: RunSignals;
  /** Aborted with either of `signals`. */
  signal: AbortSignal;
  /** Cleans an error before it is stored or shown: masks secrets and removes control characters. */
  clean(text: string): string;
}

/** A failure of the run, with the reason that is stored with the job. */
export class RunFailure extends Error {
  readonly reason: FailureReason;
  constructor(reason: FailureReason, message: string) {
    super(message);
    this.reason = reason;
  }
}

/**
 * Runs an attempt and publishes its records. When it settles, no process of the attempt is running.
 *
 * @throws RunFailure, FencedError, the reason of `signal`, or any other error: see `asFailure`
 */
export async function runAttempt(attempt: Attempt): Promise<{ published: Published; ingested: Ingested }> {
  const { store, claimed, held, reporter, signal, signals } = attempt;
  const { definition } = claimed.workflow;
  const startedAt = store.now();
  const run = await start(attempt);
  const stop = () => run.stop();
  const kill = () => run.kill();
  signals.cancel.addEventListener('abort', stop);
  signals.abort.addEventListener('abort', kill);
  if (signals.cancel.aborted) stop();
  if (signals.abort.aborted) kill();
  const deadline = new Deadline(run, definition.limits.timeoutMs);
  try {
    await store.jobs.setProcess({ held, process: run.process });
    const onSkipped = (skipped: SkippedRecord) => attempt.log.warn({ ...skipped }, 'record.skipped');
    const ingested = await ingest(
      { ...attempt, onSkipped },
      { held, definition, lines: reportProgress(run, reporter) },
    );
    const end = await run.end;
    signal.throwIfAborted();
    if (deadline.passed) throw new RunFailure('timeout', deadline.sentence);
    if (!end.ok) throw new RunFailure(end.reason, end.error);
    if (definition.mode === 'replace' && !end.unchanged) await removeUnseen(store, held, ingested.seen);
    signal.throwIfAborted();
    const seconds = (store.now() - startedAt) / 1_000;
    reporter.line(
      'info',
      `The run ended well after ${seconds} s, with ${countWords(ingested.records, 'record')}`,
    );
    await reporter.flush();
    const published = await store.records.publish({
      held,
      guards: end.unchanged ? NO_GUARDS : definition.guards,
      state: end.state === undefined ? claimed.state : end.state,
      fields: ingested.fields,
    });
    return { published, ingested };
  } catch (error) {
    // A run that was ended in the middle of a record fails to parse: the timeout is the cause of that.
    const fenced = error instanceof FencedError;
    if (deadline.passed && !fenced) throw new RunFailure('timeout', deadline.sentence);
    throw error;
  } finally {
    deadline.clear();
    // A canceled run may use its grace period.
    if (!signals.cancel.aborted) kill();
    await run.end;
    signals.cancel.removeEventListener('abort', stop);
    signals.abort.removeEventListener('abort', kill);
  }
}

/** The failure to store with the job for any error. */
export function asFailure(error: unknown): RunFailure {
  if (error instanceof RunFailure) return error;
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof InvalidRecordError) return new RunFailure('invalid_record', message);
  if (error instanceof TooManyRecordsError) return new RunFailure('output', message);
  return new RunFailure('error', message);
}

async function start(attempt: Attempt): Promise<Run> {
  const { store, claimed, reporter, signal, ...deps } = attempt;
  const { job, workflow } = claimed;
  const { definition } = workflow;
  const team = await store.teams.get({ teamId: job.teamId });
  if (team === undefined) throw new RunFailure('error', `The team ${job.teamId} of this job is gone`);
  const secrets = await deps.secrets(team.slug, workflow);
  attempt.clean = createMask(secrets).clean;
  signal.throwIfAborted();
  // Log lines that arrive before the process id is known are kept back, so that they follow the line that tells it.
  const early: Parameters<RunInput['onLog']>[0][] = [];
  let keep = (line: (typeof early)[number]): void => {
    early.push(line);
  };
  const run = await startRun({
    workflowsDirectory: deps.workflowsDirectory,
    definition,
    team: team.slug,
    workflowId: workflow.id,
    jobId: job.id,
    attempt: job.attempt,
    state: claimed.state,
    secrets,
    environment: deps.environment,
    runAs: deps.runAs,
    log: deps.log,
    onLog: (line) => keep(line),
    onProgress: (said) => reporter.progress(said),
    ...(deps.fetchPolicy === undefined ? {} : { fetchPolicy: deps.fetchPolicy }),
    ...(deps.killGraceMs === undefined ? {} : { killGraceMs: deps.killGraceMs }),
  });
  reporter.line(
    'info',
    `Attempt ${job.attempt}: ${sourceName(definition.source)} runs as process ${run.process.pid}`,
  );
  keep = ({ level, text }) => reporter.line(level, text);
  early.forEach(keep);
  return run;
}

/** Passes a run's batches on, and reports the progress after each. */
async function* reportProgress(run: Run, reporter: Reporter): AsyncGenerator<string[]> {
  let records = 0;
  for await (const batch of run.batches) {
    yield batch;
    records += batch.length;
    reporter.progress({ records, bytes: run.bytes });
  }
}

/** Asks a run to stop when its time limit is reached. */
class Deadline {
  passed = false;
  readonly sentence: string;
  readonly #timer: NodeJS.Timeout;

  constructor(run: Run, timeoutMs: number) {
    this.sentence = `The run took longer than ${timeoutMs / 1_000} s and was ended. Raise \`limits.timeout\` if it needs more`;
    this.#timer = setTimeout(() => {
      this.passed = true;
      run.stop();
    }, timeoutMs);
  }

  clear(): void {
    clearTimeout(this.#timer);
  }
}
