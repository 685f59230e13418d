/**
 * Runs one attempt of a job. A producer (a source, a push request or a trial) supplies the lines; everything else is here:
 * ingesting the lines, the time limit, the log, progress, publishing, and recording failures.
 */
import { FencedError } from '../model/error.ts';
import {
  type AfterFailure,
  type AttemptLease,
  afterFailure,
  type FailureReason,
  type LogLevel,
} from '../model/job.ts';
import { absentFields } from '../model/quality/absent-fields.ts';
import type { Expected } from '../model/quality/judge.ts';
import { InvalidRecordError } from '../model/record.ts';
import type { Definition } from '../model/workflow.ts';
import type { Logger } from '../observe/log.ts';
import type { JobAttemptDone, Observer } from '../observe/observer.ts';
import { tracedAttempt, UNTRACED } from '../observe/trace-context.ts';
import type { Tracing } from '../observe/tracing.ts';
import { type Ingested, ingest, removeUnseen } from '../records/ingest.ts';
import { type SkippedRecord, TooManyRecordsError } from '../records/ingest-batch.ts';
import type { Ingester } from '../records/ingester.ts';
import type { Run } from '../sources/run.ts';
import { countWords } from '../std/amounts.ts';
import { toIso, within } from '../std/clock.ts';
import { MalformedError } from '../std/lines.ts';
import { printable } from '../std/printable.ts';
import type { ClaimedJob } from '../store/operations/attempts.ts';
import type { Published } from '../store/operations/publish.ts';
import type { Store } from '../store/store.ts';
import { Reporter } from './reporter.ts';
import { retryingStore } from './retrying-store.ts';

/** Processes that end sooner are not stored. Storing one takes as long as publishing an unchanged version. */
const NOTED_AFTER_MS = 50;

export interface AttemptDeps {
  store: Store;
  ingester: Ingester;
  log: Logger;
  /** Receives a report of each attempt. */
  observer: Observer;
  /** Starts a trace for each job that has none. Undefined when tracing is off. */
  tracing?: Tracing | undefined;
  /** Returns a number from 0 (inclusive) to 1 (exclusive), which varies the delay before a retry. */
  random(): number;
}

/** Signals that end an attempt early; the holder of its lease aborts them. */
export interface RunSignals {
  /** Aborting this signal kills the source. The reason of the signal is an `Interruption`. */
  abort: AbortSignal;
  /** Aborting this signal asks the source to stop. A source that is still running after the grace period is killed. */
  cancel: AbortSignal;
}

/**
 * Why an attempt is aborted: `release` when its job will be released, `fenced` when this node no longer holds its
 * lease.
 */
export type Interruption = 'release' | 'fenced';

/** Supplies the lines of an attempt, and everything else that differs between a run of a source, a push and a trial. */
export interface Producer {
  /** The noun in log lines such as `The run succeeded`. */
  what: 'run' | 'push';
  /** Defines how the records are read, staged and guarded. */
  definition: Definition;
  /** Starts producing lines. If it throws, the job fails with that error. */
  start(attempt: StartedAttempt): Promise<Lines>;
  /** Returns the error message for an attempt that exceeded `limits.timeout`. */
  tooSlow(seconds: number): string;
  /** Called before the records are published. If it throws, the job fails with that error. */
  confirm?(attempt: StartedAttempt): Promise<void>;
  /** Called for each of the first ten invalid records. By default they are logged. */
  onSkipped?(skipped: SkippedRecord): void;
  /** Called when all lines were read and staged. */
  onIngested?(ingested: Ingested): void;
  /** Whether the default expectation of pushes applies, which refuses to remove nearly all records. */
  guardsPush?: boolean;
  /** Whether the records come from the quarantine, so that the audit log says who accepted them. */
  accepts?: boolean;
  /** When this signal aborts, the attempt fails with the signal's reason. */
  signal?: AbortSignal;
  /**
   * Whether the caller waits for the result and still has the records. In this case, neither the attempt nor its final
   * write to the store is retried.
   */
  once?: boolean;
}

/** The lines of an attempt. `process` is set if a child process produces them. */
export type Lines = Omit<Run, 'process'> & Partial<Pick<Run, 'process'>>;

/** The attempt, as a producer sees it. */
interface StartedAttempt {
  /** Retries writes while the database is unavailable. */
  store: Store;
  log: Logger;
  reporter: Reporter;
  /** Aborts when the attempt is interrupted or canceled, or when the `signal` of the producer aborts. */
  signal: AbortSignal;
  /** Cleans an error message before it is stored or shown. A producer that knows secrets replaces this to mask them. */
  clean(text: string): string;
}

/** Fails an attempt with a reason that is stored with the job. */
export class RunFailure extends Error {
  readonly reason: FailureReason;
  constructor(reason: FailureReason, message: string, options?: ErrorOptions) {
    super(message, options);
    this.reason = reason;
  }
}

/** Thrown when no more records will arrive: the pushing client has disconnected, or the service is stopping. */
export class InterruptedError extends Error {
  override readonly name = 'InterruptedError';
}

/**
 * How an attempt ended. An attempt with the outcome `interrupted` has not recorded its end: the engine releases its
 * job, or another node has already taken the job. `unwritten` is set when writing the end to the store failed;
 * `unwritten.write` tries again.
 */
export type AttemptEnd = (
  | { outcome: 'finished'; published?: Published; ingested?: Ingested }
  | { outcome: 'canceled' }
  | { outcome: 'failed' | 'retrying'; failure: RunFailure }
  | { outcome: 'interrupted'; reason: Interruption }
) & { unwritten?: { error: unknown; write(): Promise<unknown> } };

/**
 * Runs an attempt and records how it ended. When the promise resolves, no process of the attempt is left. Never
 * rejects.
 */
export async function runAttempt(
  deps: AttemptDeps,
  claimed: ClaimedJob,
  producer: Producer,
  signals: RunSignals,
): Promise<AttemptEnd> {
  const { job, workflow } = claimed;
  const held: AttemptLease = { teamId: job.teamId, jobId: job.id, attempt: job.attempt };
  const traced = job.trace === null ? (deps.tracing?.arrive(undefined) ?? UNTRACED) : tracedAttempt(job);
  const log = deps.log.child({
    workflowId: workflow.id,
    jobId: job.id,
    attempt: job.attempt,
    ...(traced.trace === null ? {} : { traceId: traced.trace.traceId }),
  });
  const now = () => deps.store.now();
  const startedAt = now();
  const reporter = new Reporter({ report: (news) => deps.store.jobs.report({ held, ...news }), now, log });
  const ends = [signals.abort, signals.cancel];
  const signal = AbortSignal.any(producer.signal === undefined ? ends : [...ends, producer.signal]);
  // Only an abort ends the retries of this store, not a cancellation, because the end of a canceled attempt must be
  // written.
  const store = producer.once ? deps.store : retryingStore(deps.store, signals.abort, deps.random);
  const attempt: StartedAttempt = {
    store: retryingStore(deps.store, signal, deps.random),
    log,
    reporter,
    signal,
    clean: printable,
  };
  try {
    const { published, ingested } = await publishLines(deps, claimed, producer, attempt, signals);
    if (published.outcome === 'guarded') throw new RunFailure('guard', published.error);
    if (published.outcome === 'canceled') return over({ outcome: 'canceled' }, { ingested });
    return over({ outcome: 'finished', published, ingested }, { ingested, published });
  } catch (error) {
    // Publishing succeeded, but the response of the store was lost. The retry of the publication was then fenced.
    if (error instanceof FencedError && (await isFinished())) return over({ outcome: 'finished' });
    if (error instanceof FencedError || signals.abort.reason === 'fenced') return interrupted('fenced');
    if (signals.cancel.aborted) return await canceled();
    if (!signals.abort.aborted) return await failed(asFailure(error));
    await lastLine('info', 'Released because the server is stopping. The next attempt starts over');
    return interrupted('release');
  } finally {
    reporter.stop();
  }

  async function failed(failure: RunFailure): Promise<AttemptEnd> {
    const { reason } = failure;
    const message = attempt.clean(failure.message);
    const isCounted = !producer.once && (reason === 'error' || reason === 'source');
    const failures = job.failures + (isCounted ? 1 : 0);
    const { retries } = workflow.definition;
    const then: AfterFailure = producer.once
      ? { state: 'failed' }
      : afterFailure({ reason, failures, retries, nowMs: now(), random: deps.random() });
    await lastLine('error', `Failed (${reason}): ${withoutTail(message)}. ${whatFollows(then)}`);
    const nextAt = then.state === 'retrying' ? then.runAt : null;
    const end = { outcome: then.state, failure } as const;
    const write = () => store.jobs.fail({ held, reason, error: message, failures, then });
    return written(write, end, { reason, error: message, nextAt });
  }

  async function canceled(): Promise<AttemptEnd> {
    await lastLine('warn', `Canceled: the ${producer.what} was stopped and nothing was published`);
    return written(() => store.jobs.endCanceled({ held }), { outcome: 'canceled' });
  }

  /**
   * Writes the end of the attempt. If another process has already written an end, the attempt counts as interrupted.
   */
  async function written(
    write: () => Promise<unknown>,
    end: AttemptEnd,
    details: Parameters<typeof over>[1] = {},
  ): Promise<AttemptEnd> {
    try {
      await write();
      return over(end, details);
    } catch (error) {
      if (error instanceof FencedError) return interrupted('fenced');
      report('interrupted', { reason: 'end_not_written' });
      log.error({ err: error }, 'job.end_not_written');
      return { ...end, unwritten: { error, write } };
    }
  }

  function interrupted(reason: Interruption): AttemptEnd {
    return over({ outcome: 'interrupted', reason }, { reason });
  }

  function over(end: AttemptEnd, details: Parameters<typeof report>[1] = {}): AttemptEnd {
    report(end.outcome, details);
    return end;
  }

  function report(
    outcome: JobAttemptDone['outcome'],
    details: Partial<Pick<JobAttemptDone, 'reason' | 'error' | 'nextAt'>> & {
      ingested?: Ingested;
      published?: Published;
    },
  ): void {
    const { ingested, published, ...why } = details;
    const endedAt = now();
    deps.observer.jobAttemptDone?.({
      teamId: job.teamId,
      workflowId: job.workflowId,
      jobId: job.id,
      attempt: job.attempt,
      origin: job.origin,
      sourceType: workflow.definition.source.type,
      outcome,
      reason: null,
      error: null,
      nextAt: null,
      ...why,
      startedAt,
      durationMs: Math.max(0, endedAt - startedAt),
      waitedMs: Math.max(0, startedAt - job.runAt),
      read: ingested === undefined ? null : countsOf(ingested),
      published: published?.outcome === 'published' || published?.outcome === 'unchanged' ? published : null,
      ...traced,
    });
  }

  /** Returns whether the job was finished by this attempt, and not by a later one. */
  async function isFinished(): Promise<boolean> {
    const stored = await deps.store.jobs.get({ teamId: held.teamId, id: held.jobId }).catch(() => undefined);
    return stored?.state === 'finished' && stored.attempt === held.attempt;
  }

  /** Call this before writing the end of the attempt, because an attempt that has ended accepts no more log lines. */
  async function lastLine(level: LogLevel, text: string): Promise<void> {
    reporter.line(level, text);
    await reporter.flush();
  }
}

/** Stages the lines and publishes them. @throws RunFailure, FencedError, or any error that `asFailure` maps */
async function publishLines(
  deps: AttemptDeps,
  { job, hasLeftovers, mayRelease }: ClaimedJob,
  producer: Producer,
  attempt: StartedAttempt,
  signals: RunSignals,
): Promise<{ published: Published; ingested: Ingested }> {
  const { store, reporter, signal, log } = attempt;
  const { definition } = producer;
  const held: AttemptLease = { teamId: job.teamId, jobId: job.id, attempt: job.attempt };
  const startedAt = store.now();
  const starting = producer.start(attempt);
  const toLog = (skipped: SkippedRecord) => log.warn({ ...skipped }, 'record.skipped');
  const onSkipped = producer.onSkipped ?? toLog;
  // What an earlier attempt has staged is removed while the source starts.
  const ingesting = ingest(
    { store, ingester: deps.ingester, onSkipped },
    {
      held,
      workflowId: job.workflowId,
      definition,
      hasLeftovers,
      mayRelease,
      lines: reportProgress(starting, reporter),
    },
  );
  const ingestEnded = ingesting.then(
    () => undefined,
    () => undefined,
  );
  const run = await starting.catch(async (error) => {
    await ingestEnded;
    throw error;
  });
  const stop = () => run.stop();
  const kill = () => run.kill();
  signals.cancel.addEventListener('abort', stop);
  signals.abort.addEventListener('abort', kill);
  if (signals.cancel.aborted) stop();
  if (signals.abort.aborted) kill();
  let tooSlow: RunFailure | undefined;
  const deadline = setTimeout(() => {
    tooSlow = new RunFailure('timeout', producer.tooSlow(definition.limits.timeoutMs / 1_000));
    run.stop();
  }, definition.limits.timeoutMs);
  try {
    const [ingested] = await Promise.all([ingesting, noteProcess(store, held, run)]);
    producer.onIngested?.(ingested);
    const end = await run.end;
    signal.throwIfAborted();
    if (tooSlow !== undefined) throw tooSlow;
    if (!end.ok) throw new RunFailure(end.reason, end.error);
    if (definition.mode === 'replace' && !end.unchanged) await removeUnseen(store, held, ingested.seen);
    signal.throwIfAborted();
    const seconds = (store.now() - startedAt) / 1_000;
    const count = countWords(ingested.records, 'record');
    reporter.line('info', `The ${producer.what} succeeded after ${seconds} s with ${count}`);
    await producer.confirm?.(attempt);
    for (const field of ingested.found.notCompared) {
      reporter.line('warn', `Too many values of \`${field}\` to compare all of them for \`unique\``);
    }
    for (const sentence of absentFields(definition.expect.fields, ingested.found.profile)) {
      reporter.line('warn', sentence);
    }
    if (ingested.found.aside.records > 0) {
      const count = countWords(ingested.found.aside.records, 'record');
      reporter.line('warn', `Set aside, because a field is not as expected: ${count}`);
    }
    const { mode } = definition;
    const published = await reporter.last((report) =>
      store.records.publish({
        held,
        ...report,
        accepted: producer.accepts === true ? ingested.records - ingested.suppressed : undefined,
        // If the source is unchanged, the published records met the expectations when they were published. Accepted
        // records do not meet them, and say nothing about the source.
        ...(end.unchanged || producer.accepts === true
          ? {}
          : {
              expected: expectedOf(producer, ingested),
              observed: { profile: ingested.found.profile, drifts: ingested.found.drifts },
            }),
        mode,
        // If the state is undefined, the new version keeps the state of the previous version.
        state: end.state,
        fields: ingested.fields,
      }),
    );
    return { published, ingested };
  } catch (error) {
    // A timeout may cut a record in half, and the half does not parse. The error to report is then the timeout.
    throw tooSlow === undefined || error instanceof FencedError ? error : tooSlow;
  } finally {
    clearTimeout(deadline);
    // A canceled run is not killed here, because its grace period has not ended yet.
    if (!signals.cancel.aborted) kill();
    signals.cancel.removeEventListener('abort', stop);
    signals.abort.removeEventListener('abort', kill);
    await ingestEnded;
    await run.end;
  }
}

function expectedOf({ definition, guardsPush = false }: Producer, ingested: Ingested): Expected {
  const { records: emitted, duplicates, found } = ingested;
  const { findings, aside } = found;
  return { expect: definition.expect, guardsPush, findings, emitted, duplicates, aside };
}

/**
 * Stores the process of a run that lasts, so that the next start of this node can kill it. The launcher does that unless
 * it is killed with the server.
 */
async function noteProcess(store: Store, held: AttemptLease, { process, end }: Lines): Promise<void> {
  if (process === undefined) return;
  const hasEnded = end.then(
    () => true,
    () => true,
  );
  if (!(await within(NOTED_AFTER_MS, hasEnded, () => false))) await store.jobs.setProcess({ held, process });
}

/** Yields the batches of a run once it has started, and reports progress after each. */
async function* reportProgress(starting: Promise<Lines>, reporter: Reporter): AsyncGenerator<string[]> {
  const run = await starting;
  let records = 0;
  for await (const batch of run.batches) {
    yield batch;
    records += batch.length;
    reporter.progress({ records, bytes: run.bytes });
  }
}

/** Maps any error to a failure that can be stored with the job. */
function asFailure(error: unknown): RunFailure {
  if (error instanceof RunFailure) return error;
  const message = error instanceof Error ? error.message : String(error);
  return new RunFailure(reasonOf(error), message, { cause: error });
}

function reasonOf(error: unknown): FailureReason {
  if (error instanceof InvalidRecordError) return 'invalid_record';
  if (error instanceof MalformedError || error instanceof TooManyRecordsError) return 'output';
  return error instanceof InterruptedError ? 'lost' : 'error';
}

function countsOf(ingested: Ingested): JobAttemptDone['read'] {
  const { records: emitted, duplicates, existing, skipped, suppressed, found } = ingested;
  return { emitted, duplicates, existing, skipped, suppressed, quarantined: found.aside.records };
}

/**
 * Returns the first line of an error message without a trailing `… standard error:`. The lines after the first are
 * already in the log.
 */
function withoutTail(message: string): string {
  const [first = ''] = message.split('\n', 1);
  return first.replace(/\. [^.]*:$/, '').replace(/\.$/, '');
}

function whatFollows(then: AfterFailure): string {
  return then.state === 'failed' ? 'It will not be retried' : `Next attempt at ${toIso(then.runAt)} or later`;
}
