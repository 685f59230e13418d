/** From the start of a source to the publishing of its records: what may fail in an attempt, without its end. */
import { FencedError } from '../model/error.ts';
import type { FailureReason, Held } from '../model/job.ts';
import { InvalidRecordError } from '../model/record.ts';
import type { Definition, Workflow } from '../model/workflow.ts';
import type { AddressPolicy } from '../net/address-policy.ts';
import type { Logger } from '../observe/log.ts';
import type { Observer } from '../observe/observer.ts';
import type { Tracing } from '../observe/tracing.ts';
import { type Ingested, ingest, removeUnseen } from '../records/ingest.ts';
import { TooManyRecordsError } from '../records/ingest-batch.ts';
import type { Ingester } from '../records/ingester.ts';
import type { ClaimedJob } from '../store/job-operations.ts';
import type { Published } from '../store/record-operations.ts';
import type { Store } from '../store/store.ts';
import { createMask } from '../workflows/sources/mask.ts';
import { type Run, type RunInput, sourceName, startRun } from '../workflows/sources/run.ts';
import type { Reporter } from './reporter.ts';

/** What running jobs need from their surroundings. */
export interface RunJobDeps {
  store: Store;
  ingester: Ingester;
  log: Logger;
  /** Told of each attempt. */
  observer: Observer;
  /** Begins traces for jobs that have none; nothing where nothing is traced. */
  tracing?: Tracing | undefined;
  /** Where definition files lie on this node. */
  workflowsDirectory: string;
  /** The server's environment, of which children inherit a few variables. */
  environment: ReadonlyMap<string, string>;
  /** What a workflow of a team may use of its secrets; the team by its slug. */
  secrets(team: string, workflow: Workflow): Promise<ReadonlyMap<string, string>>;
  /** In [0, 1): spreads retries. */
  random(): number;
  /** What modules may fetch; only public addresses unless told. */
  fetchPolicy?: AddressPolicy;
  /** Between SIGTERM and SIGKILL; 10 s unless told. */
  killGraceMs?: number;
}

/** A source that has nothing new leaves published what has passed its guards already. */
const NO_GUARDS: Definition['guards'] = { minRecords: 0, maxDropPercent: null };

/** How the engine ends an attempt before its time. */
export interface RunSignals {
  /** Its children are killed at once. */
  abort: AbortSignal;
  /** Its children are asked to end, and killed after the grace. */
  cancel: AbortSignal;
}

export interface Attempt extends RunJobDeps {
  claimed: ClaimedJob;
  held: Held;
  reporter: Reporter;
  signals: RunSignals;
  /** `abort` or `cancel`. */
  signal: AbortSignal;
  /** What an error goes through before it is stored or shown: no secrets, nothing that acts on a terminal. */
  clean(text: string): string;
}

/** Raised inside a run, with the reason that the job's row will carry. */
export class RunFailure extends Error {
  readonly reason: FailureReason;
  constructor(reason: FailureReason, message: string) {
    super(message);
    this.reason = reason;
  }
}

/**
 * Runs an attempt and publishes what it brought. Nothing of it runs any longer when this settles.
 *
 * @throws RunFailure, FencedError, the reason of `signal`, or whatever else went wrong: see `asFailure`
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
    const ingested = await ingest(attempt, { held, definition, lines: counted(run, reporter) });
    const end = await run.end;
    signal.throwIfAborted();
    if (deadline.passed) throw new RunFailure('timeout', deadline.sentence);
    if (!end.ok) throw new RunFailure(end.reason, end.error);
    if (definition.mode === 'replace' && !end.unchanged) await removeUnseen(store, held, ingested.seen);
    signal.throwIfAborted();
    const seconds = (store.now() - startedAt) / 1_000;
    reporter.line('info', `The run ended well after ${seconds} s, with ${ingested.records} records`);
    await reporter.flush();
    const published = await store.records.publish({
      held,
      guards: end.unchanged ? NO_GUARDS : definition.guards,
      state: end.state === undefined ? claimed.state : end.state,
      fields: ingested.fields,
    });
    return { published, ingested };
  } catch (error) {
    // A run that was cut off may have left half a record: the time limit is the cause, the half only its trace.
    const fenced = error instanceof FencedError;
    if (deadline.passed && !fenced) throw new RunFailure('timeout', deadline.sentence);
    throw error;
  } finally {
    deadline.clear();
    // One that was asked to end has its grace.
    if (!signals.cancel.aborted) kill();
    await run.end;
    signals.cancel.removeEventListener('abort', stop);
    signals.abort.removeEventListener('abort', kill);
  }
}

/** What an error means for the job. */
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
  // What it says before it is known as which process it runs comes after the line that tells that.
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

/** A run's batches, as they are read; what they come to is its progress. */
async function* counted(run: Run, reporter: Reporter): AsyncGenerator<string[]> {
  let records = 0;
  for await (const batch of run.batches) {
    yield batch;
    records += batch.length;
    reporter.progress({ records, bytes: run.bytes });
  }
}

/** Asks a run to stop when its time is over, and remembers that it did. */
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
