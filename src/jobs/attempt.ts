/**
 * Runs one attempt of a job from its first line to its end: whatever produces its lines (a source, a request, a trial),
 * their ingestion, the time limit, log and progress, publishing, and how failures are mapped and written are the same.
 */

import { FencedError } from '../model/error.ts';
import {
  type AfterFailure,
  type AttemptLease,
  afterFailure,
  type FailureReason,
  type LogLevel,
} from '../model/job.ts';
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
import { toIso } from '../std/clock.ts';
import { MalformedError } from '../std/lines.ts';
import { printable } from '../std/printable.ts';
import type { ClaimedJob } from '../store/operations/attempts.ts';
import type { Published } from '../store/operations/publish.ts';
import type { Store } from '../store/store.ts';
import { Reporter } from './reporter.ts';
import { retryingStore } from './retrying-store.ts';
export interface AttemptDeps {
  store: Store;
  ingester: Ingester;
  log: Logger;
  /** Receives a report of each attempt. */
  observer: Observer;
  /** Begins traces for jobs that have none; undefined when tracing is off. */
  tracing?: Tracing | undefined;
  /** In [0, 1), for the jitter of retries. */
  random(): number;
}

/** How an attempt is ended early by whoever holds its lease. */
export interface RunSignals {
  /** Its lines end at once. The reason is an `Interruption`. */
  abort: AbortSignal;
  /** Its source is asked to end, and killed after the grace. */
  cancel: AbortSignal;
}

/** Why an attempt is aborted: its job will be released, or this node no longer holds it. */
export type Interruption = 'release' | 'fenced';

/** What produces the lines of an attempt: all that differs between a run of a source, a push and a trial. */
export interface Producer {
  /** How a sentence names it: `The run ended well`. */
  what: 'run' | 'push';
  /** How its records are read, staged and guarded. */
  definition: Definition;
  /** Begins. Throws what the job fails with. */
  start(attempt: StartedAttempt): Promise<Lines>;
  /** The error when it takes longer than `limits.timeout`. */
  tooSlow(seconds: number): string;
  /** Called before the records are published. Throws what the job fails with. */
  confirm?(attempt: StartedAttempt): Promise<void>;
  /** Called for each invalid record that is named, ten at most; they are logged by default. */
  onSkipped?(skipped: SkippedRecord): void;
  /** Called when all lines were read and staged. */
  onIngested?(ingested: Ingested): void;
  /** Whether the publication is guarded against removing nearly everything where the definition has no guard. */
  guardsPush?: boolean;
  /** Ends the attempt with the signal's reason, which it fails with. */
  signal?: AbortSignal;
  /** Somebody waits for the answer and keeps the records: it is not tried again, and neither is writing its end. */
  once?: boolean;
}

/** The lines of an attempt; those of a child process with its mark. */
export type Lines = Omit<Run, 'process'> & Partial<Pick<Run, 'process'>>;

/** What a producer knows of its attempt. */
interface StartedAttempt {
  /** Tries again while the database is away. */
  store: Store;
  log: Logger;
  reporter: Reporter;
  /** Aborted when the attempt is interrupted or canceled, or with the signal of its producer. */
  signal: AbortSignal;
  /** Cleans an error before it is stored or shown. A producer that knows secrets masks them here. */
  clean(text: string): string;
}

/** A failure of an attempt, with the reason that is stored with the job. */
export class RunFailure extends Error {
  readonly reason: FailureReason;
  constructor(reason: FailureReason, message: string, options?: ErrorOptions) {
    super(message, options);
    this.reason = reason;
  }
}

/** The sender of records is gone: the client that pushes has disconnected, or the service stops. */
export class BrokenOffError extends Error {
  override readonly name = 'BrokenOffError';
}

/**
 * How an attempt ended. `interrupted`: its end is not written here; the engine releases the job, or another node has it.
 * `unwritten` is set when the store did not take the end.
 */
export type AttemptEnd = (
  | { outcome: 'finished'; published?: Published; ingested?: Ingested }
  | { outcome: 'canceled' }
  | { outcome: 'failed' | 'retrying'; failure: RunFailure }
  | { outcome: 'interrupted'; reason: Interruption }
) & { unwritten?: { error: unknown; write(): Promise<unknown> } };

/** For a source that reports that nothing has changed: the published records have passed the guards already. */
const NO_GUARDS: Definition['guards'] = { minRecords: 0, maxDropPercent: null };

/** Runs an attempt and writes its end. When it settles, no process of the attempt is running. Never rejects. */
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
  // Writing the end is worth retrying after a cancellation too.
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
    // It was published, and only the store's answer was lost.
    if (error instanceof FencedError && (await isFinished())) return over({ outcome: 'finished' });
    if (error instanceof FencedError || signals.abort.reason === 'fenced') return interrupted('fenced');
    if (signals.cancel.aborted) return await canceled();
    if (!signals.abort.aborted) return await failed(asFailure(error));
    await lastLine('info', 'Given back, because the server is stopping. The next attempt starts over');
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
    await lastLine('warn', `Canceled: the ${producer.what} was ended, and nothing of it is published`);
    return written(() => store.jobs.endCanceled({ held }), { outcome: 'canceled' });
  }

  /** If another process has already written an end, this attempt counts as interrupted. */
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

  /** Whether exactly this attempt has finished. */
  async function isFinished(): Promise<boolean> {
    const stored = await deps.store.jobs.get({ teamId: held.teamId, id: held.jobId }).catch(() => undefined);
    return stored?.state === 'finished' && stored.attempt === held.attempt;
  }

  /** Must be written before the end itself: nothing can be added to the log of an attempt that has ended. */
  async function lastLine(level: LogLevel, text: string): Promise<void> {
    reporter.line(level, text);
    await reporter.flush();
  }
}

/** Stages the lines and publishes them. @throws RunFailure, FencedError, or any other error: see `asFailure` */
async function publishLines(
  deps: AttemptDeps,
  { job }: ClaimedJob,
  producer: Producer,
  attempt: StartedAttempt,
  signals: RunSignals,
): Promise<{ published: Published; ingested: Ingested }> {
  const { store, reporter, signal, log } = attempt;
  const { definition } = producer;
  const held: AttemptLease = { teamId: job.teamId, jobId: job.id, attempt: job.attempt };
  const startedAt = store.now();
  const run = await producer.start(attempt);
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
    if (run.process !== undefined) await store.jobs.setProcess({ held, process: run.process });
    const toLog = (skipped: SkippedRecord) => log.warn({ ...skipped }, 'record.skipped');
    const onSkipped = producer.onSkipped ?? toLog;
    const lines = reportProgress(run, reporter);
    const ingested = await ingest({ store, ingester: deps.ingester, onSkipped }, { held, definition, lines });
    producer.onIngested?.(ingested);
    const end = await run.end;
    signal.throwIfAborted();
    if (tooSlow !== undefined) throw tooSlow;
    if (!end.ok) throw new RunFailure(end.reason, end.error);
    if (definition.mode === 'replace' && !end.unchanged) await removeUnseen(store, held, ingested.seen);
    signal.throwIfAborted();
    const seconds = (store.now() - startedAt) / 1_000;
    const count = countWords(ingested.records, 'record');
    reporter.line('info', `The ${producer.what} ended well after ${seconds} s, with ${count}`);
    await reporter.flush();
    await producer.confirm?.(attempt);
    const { mode, guards } = definition;
    const published = await store.records.publish({
      held,
      guards: end.unchanged ? NO_GUARDS : { ...guards, guardsPush: producer.guardsPush === true },
      mode,
      // Undefined: that of the version before stays.
      state: end.state,
      fields: ingested.fields,
    });
    return { published, ingested };
  } catch (error) {
    // Lines that were ended in the middle of a record fail to parse: the timeout is the cause of that.
    throw tooSlow === undefined || error instanceof FencedError ? error : tooSlow;
  } finally {
    clearTimeout(deadline);
    // A canceled run may use its grace period.
    if (!signals.cancel.aborted) kill();
    await run.end;
    signals.cancel.removeEventListener('abort', stop);
    signals.abort.removeEventListener('abort', kill);
  }
}

/** Passes a run's batches on, and reports the progress after each. */
async function* reportProgress(run: Lines, reporter: Reporter): AsyncGenerator<string[]> {
  let records = 0;
  for await (const batch of run.batches) {
    yield batch;
    records += batch.length;
    reporter.progress({ records, bytes: run.bytes });
  }
}

/** The failure to store with the job for any error, which is its cause. */
function asFailure(error: unknown): RunFailure {
  if (error instanceof RunFailure) return error;
  const message = error instanceof Error ? error.message : String(error);
  return new RunFailure(reasonOf(error), message, { cause: error });
}

function reasonOf(error: unknown): FailureReason {
  if (error instanceof InvalidRecordError) return 'invalid_record';
  if (error instanceof MalformedError || error instanceof TooManyRecordsError) return 'output';
  return error instanceof BrokenOffError ? 'lost' : 'error';
}

function countsOf({ records, duplicates, existing, skipped, suppressed }: Ingested): JobAttemptDone['read'] {
  return { emitted: records, duplicates, existing, skipped, suppressed };
}

/** The first line of an error, without a trailing announcement of details: those are in the log already. */
function withoutTail(message: string): string {
  const [first = ''] = message.split('\n', 1);
  return first.replace(/\. [^.]*:$/, '').replace(/\.$/, '');
}

function whatFollows(then: AfterFailure): string {
  return then.state === 'failed'
    ? 'It is not tried again'
    : `The next attempt may start at ${toIso(then.runAt)}`;
}
