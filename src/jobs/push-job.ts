/** Runs pushes: jobs whose records a client sends in the request, from the first byte to the published version. */
import { setTimeout as pause } from 'node:timers/promises';
import { type Ceilings, withinCeilings } from '../definitions/api-bounds.ts';
import { FencedError, Problem } from '../model/error.ts';
import {
  type AfterFailure,
  BEAT_MS,
  type Held,
  type Job,
  LEASE_MS,
  type RecordCounts,
} from '../model/job.ts';
import { removalWarning } from '../model/staging.ts';
import { type Definition, MODES, type Mode } from '../model/workflow.ts';
import type { Logger } from '../observe/log.ts';
import type { Observer } from '../observe/observer.ts';
import { tracedAttempt } from '../observe/trace-context.ts';
import { type Ingested, ingest, removeUnseen } from '../records/ingest.ts';
import type { SkippedRecord } from '../records/ingest-batch.ts';
import type { Ingester } from '../records/ingester.ts';
import { Shares } from '../std/fair-share.ts';
import type { ClaimedJob } from '../store/operations/attempts.ts';
import type { Published } from '../store/operations/publish.ts';
import type { Store } from '../store/store.ts';
import { type AttemptEnd, reportAttempt } from './attempt-end.ts';
import { CanceledError, canceledPush, failureOf, GuardError, TimeoutError } from './push-failure.ts';
import { BrokenOffError, type PushEncoding, type PushFormat, readPushed } from './push-records.ts';
import { hashOf, refuseOtherBody } from './push-sent.ts';
import { countBytes, countRecords, untilAborted } from './push-streams.ts';
import { Reporter } from './reporter.ts';
import { retryingStore } from './retrying-store.ts';
import { jobHeaders } from './submit.ts';

/** How long a push waits for an unfinished job of its workflow. */
const WAIT_MS = 30_000;
/** How many pushes wait at a time, shared between teams; further ones are refused as `push_busy`. */
const MAX_WAITING = 64;
/** How often a waiting push reads whether that job has ended, and how often it tries to begin in any case. */
const LOOK_MS = 100;
const TRY_MS = 1_000;

export interface PushDeps {
  store: Store;
  ingester: Ingester;
  log: Logger;
  /** Receives a report of each push that has begun. */
  observer: Observer;
  /** The holder of the leases. */
  nodeId: string;
  /** What definitions made over the API are held to; nothing by default. */
  ceilings?: Ceilings;
  /** In [0, 1). */
  random(): number;
  /** How long a push waits for an unfinished job; 30 s by default. */
  waitMs?: number;
}

/** One push request. */
export interface Push {
  teamId: string;
  workflowId: string;
  /** By default the mode of the workflow; never one that may change more of the existing records. */
  mode: Mode | undefined;
  /** Whether the push may remove nearly all records, unless the workflow itself has a guard against that. */
  allowDrop?: boolean;
  idempotencyKey: string | null;
  /** The trace context of the request, as it is stored. */
  trace?: string | null;
  format: PushFormat;
  encoding: PushEncoding;
  /** Read no faster than records are written. Throws a BrokenOffError when the client disconnects. */
  bytes: AsyncIterable<Uint8Array>;
  /** Called after each batch with the number of records read so far. */
  onRecords?: (records: number) => void;
  /** Ends the push with the signal's reason: its job fails, as `lost` after a BrokenOffError. */
  signal?: AbortSignal;
  /** Called before publishing. Throws when the sender may no longer push. */
  confirm?: () => Promise<void>;
  /** Ends the wait for an unfinished job, with a BrokenOffError, because a client that is gone needs no job. */
  sender?: AbortSignal;
}

interface Pushed {
  jobId: string;
  version: number;
  records: RecordCounts;
  /** A sentence about what it did that may not have been meant. */
  warning?: string;
}

/** The state that all pushes share. */
interface PushSurroundings extends PushDeps {
  /** Functions that renew the lease of a running push, by job id. */
  beats: Map<string, () => void>;
  /** Pushes that wait for an unfinished job, by team. */
  waiting: Shares;
  /** Ends all waits. */
  turnedAway: AbortController;
  /** Functions that write the end of a push, which the store refused before, for instance because its disk was full. */
  unended: Set<() => Promise<void>>;
}

/** Runs pushes; `stop` ends those that still run and resolves when they have ended. */
export class PushJobs {
  readonly #deps: PushSurroundings;
  readonly #running = new Set<Promise<unknown>>();
  readonly #stop = new AbortController();
  readonly #unwatch: () => void;

  constructor(deps: PushDeps) {
    const beats = new Map<string, () => void>();
    this.#deps = {
      ...deps,
      beats,
      waiting: new Shares(),
      turnedAway: new AbortController(),
      unended: new Set(),
    };
    // The answer to a heartbeat says which jobs are to be canceled.
    this.#unwatch = deps.store.watch(({ cancels }) => {
      if (cancels) for (const beat of beats.values()) beat();
    });
  }

  /**
   * Runs one push to its end. When it throws, nothing was published.
   *
   * @throws Problem `workflow_not_found`, `not_push`, `workflow_paused`, `field_invalid` (the mode) or `push_busy`
   *   before anything is read; `idempotency_key_reused`; `push_refused` or `push_timeout` when the job has failed, with
   *   the headers of `jobHeaders` and `x-job-reason`; `push_canceled`; BrokenOffError
   */
  run(push: Push): Promise<Pushed> {
    const signal =
      push.signal === undefined ? this.#stop.signal : AbortSignal.any([push.signal, this.#stop.signal]);
    const running = runPush(this.#deps, push, signal).finally(() => this.#running.delete(running));
    this.#running.add(running);
    return running;
  }

  /** Renews the lease of a push and returns whether it runs here. Its lease may seem expired after a clock jump. */
  renew({ jobId }: Held): boolean {
    const beat = this.#deps.beats.get(jobId);
    beat?.();
    return beat !== undefined;
  }

  /** Refuses waiting and new pushes as `stopping`. Running pushes continue. */
  turnAway(): void {
    this.#deps.turnedAway.abort(new Problem('stopping'));
  }

  async stop(): Promise<void> {
    this.#unwatch();
    this.turnAway();
    this.#stop.abort(
      new BrokenOffError('The service was stopped while the records arrived. Push them again'),
    );
    await Promise.allSettled(this.#running);
  }
}

async function runPush(deps: PushSurroundings, push: Push, signal: AbortSignal): Promise<Pushed> {
  const { teamId, workflowId } = push;
  const workflow = await deps.store.workflows.get({ teamId, id: workflowId });
  if (workflow === undefined) throw new Problem('workflow_not_found');
  refuseWiderMode(push.mode, workflow.definition);
  const ends = [signal, deps.turnedAway.signal];
  const waiting = AbortSignal.any(push.sender === undefined ? ends : [...ends, push.sender]);
  const begun = await begin(deps, push, waiting);
  switch (begun.outcome) {
    case 'begun':
      return attempt(deps, push, begun.claimed, signal);
    case 'replayed': {
      const { timeoutMs } = workflow.definition.limits;
      if (begun.sent !== null) await refuseOtherBody(push, begun.sent, { timeoutMs, signal });
      return pushedBy(begun.job);
    }
    case 'occupied':
      throw new Problem('push_busy', { headers: { 'retry-after': '5', ...jobHeaders(begun.job) } });
    case 'not_push':
      throw new Problem('not_push');
    case 'paused':
      throw new Problem('workflow_paused');
    case 'not_found':
      throw new Problem('workflow_not_found');
  }
}

/** `MODES` is ordered from `replace` to `append`: each mode may change less of the existing records than the one before. */
function refuseWiderMode(mode: Mode | undefined, definition: Definition): void {
  if (mode === undefined || MODES.indexOf(mode) >= MODES.indexOf(definition.mode)) return;
  throw new Problem('field_invalid', {
    sentence:
      `The mode \`${mode}\` may do more to the records than \`${definition.mode}\`, which the workflow's ` +
      `definition names: choose ${MODES.slice(MODES.indexOf(definition.mode)).join(' or ')}, or change it there`,
  });
}

/** Begins the job as soon as no unfinished job of the workflow is in the way. */
async function begin(deps: PushSurroundings, push: Push, signal: AbortSignal) {
  const { store, nodeId, waiting, waitMs = WAIT_MS } = deps;
  const { teamId, workflowId, idempotencyKey, trace = null } = push;
  const giveUpAt = performance.now() + waitMs;
  let isWaiting = false;
  await writeEnds(deps);
  try {
    for (;;) {
      signal.throwIfAborted();
      const begun = await store.jobs.begin({
        teamId,
        workflowId,
        nodeId,
        leaseMs: LEASE_MS,
        idempotencyKey,
        trace,
      });
      if (begun.outcome !== 'occupied' || performance.now() >= giveUpAt) return begun;
      if (!isWaiting) {
        if (!waiting.admits(teamId, MAX_WAITING)) return begun;
        waiting.add(teamId);
        isWaiting = true;
      }
      // Looking is a read, trying to begin is a write.
      for (let waitedMs = 0; waitedMs < TRY_MS && performance.now() < giveUpAt; waitedMs += LOOK_MS) {
        await pause(LOOK_MS, undefined, { signal }).catch(() => signal.throwIfAborted());
        const job = await store.jobs.get({ teamId, id: begun.job.id });
        if (job === undefined || job.finishedAt !== null) break;
      }
    }
  } finally {
    if (isWaiting) waiting.remove(teamId);
  }
}

/** Tries again to write the ends of earlier pushes; those that the store refuses again are kept. */
async function writeEnds({ unended }: PushSurroundings): Promise<void> {
  for (const write of [...unended]) {
    unended.delete(write);
    await write().catch((error) => {
      if (error instanceof Problem) unended.add(write);
    });
  }
}

async function attempt(
  deps: PushSurroundings,
  push: Push,
  begun: ClaimedJob,
  outer: AbortSignal,
): Promise<Pushed> {
  const { job } = begun;
  const workflow = withinCeilings(begun.workflow, deps.ceilings);
  const held: Held = { teamId: job.teamId, jobId: job.id, attempt: job.attempt };
  const log = deps.log.child({ workflowId: workflow.id, jobId: job.id, origin: 'push' });
  const startedAt = deps.store.now();
  const traced = tracedAttempt(job);
  const over = (end: AttemptEnd) =>
    reportAttempt(deps.observer, { job, workflow, traced, startedAt, now: deps.store.now() }, end);
  const { limits } = workflow.definition;
  const abort = new AbortController();
  const signal = AbortSignal.any([outer, abort.signal]);
  const deadline = setTimeout(() => {
    const sentence = `The push took longer than ${limits.timeoutMs / 1_000} s. Send it in parts, or raise \`limits.timeout\``;
    abort.abort(new TimeoutError(sentence));
  }, limits.timeoutMs);
  const beat = () => void keepLease(deps, held, abort);
  const beating = setInterval(beat, BEAT_MS);
  deps.beats.set(held.jobId, beat);
  const reporter = new Reporter({
    report: (news) => deps.store.jobs.report({ held, ...news }),
    now: () => deps.store.now(),
    log,
  });
  const { format, encoding } = push;
  reporter.line('info', `A push begins: ${format}${encoding === 'identity' ? '' : `, ${encoding}`}`);
  try {
    const store = retryingStore(deps.store, signal, deps.random);
    const during = { ...deps, store, log, reporter };
    const { published, ingested } = await publish(during, push, workflow.definition, held, signal);
    if (published.outcome === 'guarded') throw new GuardError(published.error);
    if (published.outcome === 'canceled') {
      over({ outcome: 'canceled', ingested });
      throw canceledPush(job);
    }
    over({ outcome: 'finished', ingested, published });
    return pushedAs({ jobId: job.id, version: published.version, records: published.records });
  } catch (error) {
    if (error instanceof FencedError) return await afterFence(deps.store, held, over);
    if (error instanceof Problem && error.code === 'push_canceled') throw error;
    const ended = (write: () => Promise<void>, end: AttemptEnd) =>
      write().then(
        () => over(end),
        (err) => {
          // Written with the next push, unless the lease expires first and the job ends as lost.
          if (err instanceof Problem) deps.unended.add(write);
          log.error({ err }, 'job.end_not_written');
          over({ outcome: 'interrupted', reason: 'end_not_written' });
        },
      );
    if (error instanceof CanceledError) {
      reporter.line('warn', 'Canceled: nothing of the push is published');
      await reporter.flush();
      await ended(() => deps.store.jobs.endCanceled({ held }), { outcome: 'canceled' });
      throw canceledPush(job);
    }
    const failure = failureOf(error);
    const { reason, message } = failure;
    reporter.line('error', `Failed (${reason}): ${message}`);
    await reporter.flush();
    const then: AfterFailure = { state: 'failed' };
    const fail = () => deps.store.jobs.fail({ held, reason, error: message, failures: 0, then });
    await ended(fail, { outcome: 'failed', reason, error: message });
    throw failure.toThrow(job);
  } finally {
    clearTimeout(deadline);
    clearInterval(beating);
    deps.beats.delete(held.jobId);
    reporter.stop();
  }
}

async function publish(
  deps: PushDeps & { reporter: Reporter },
  push: Push,
  stored: Definition,
  held: Held,
  signal: AbortSignal,
): Promise<{ published: Published; ingested: Ingested }> {
  const { store, reporter } = deps;
  const definition = { ...stored, mode: push.mode ?? stored.mode };
  const bytes = countBytes(push.bytes, (total) => reporter.progress({ bytes: total }));
  const hash = push.idempotencyKey === null ? undefined : hashOf(push);
  const form = { ...push, ...(hash && { onBytes: (chunk: Uint8Array) => void hash.update(chunk) }) };
  const batches = countRecords(readPushed(bytes, form), (records) => {
    reporter.progress({ records });
    push.onRecords?.(records);
  });
  const onSkipped = (skipped: SkippedRecord) => deps.log.warn({ ...skipped }, 'record.skipped');
  const lines = untilAborted(batches, signal);
  const ingested = await ingest({ ...deps, onSkipped }, { held, definition, lines });
  signal.throwIfAborted();
  if (definition.mode === 'replace') await removeUnseen(store, held, ingested.seen);
  signal.throwIfAborted();
  reporter.line('info', `The push is whole: ${ingested.records} records`);
  await reporter.flush();
  await push.confirm?.();
  // Before it is published: from then on the key is answered with this push.
  if (hash !== undefined) await store.jobs.noteSent({ held, sent: hash.digest('hex') });
  const { mode } = definition;
  const guards = { ...definition.guards, guardsPush: push.allowDrop !== true };
  const { fields } = ingested;
  const published = await store.records.publish({ held, guards, mode, fields, state: undefined });
  return { published, ingested };
}

async function keepLease(
  { store, nodeId, log }: PushDeps,
  held: Held,
  abort: AbortController,
): Promise<void> {
  try {
    const { lost, canceled } = await store.jobs.beat({ nodeId, held: [held], leaseMs: LEASE_MS });
    if (lost.length > 0) abort.abort(new FencedError(`Job ${held.jobId} was taken away`));
    else if (canceled.length > 0) abort.abort(new CanceledError());
  } catch (err) {
    // Every write of the push is fenced: if the lease expires before the next heartbeat, nothing is published.
    log.error({ err, jobId: held.jobId }, 'push.beat_failed');
  }
}

/** This node no longer holds the job: it ended as lost, or publishing was retried after it had succeeded. */
async function afterFence(
  store: Store,
  { teamId, jobId }: Held,
  over: (end: AttemptEnd) => void,
): Promise<Pushed> {
  const job = await store.jobs.get({ teamId, id: jobId });
  if (job?.state === 'finished' || job?.state === 'canceled') over({ outcome: job.state });
  else over({ outcome: 'interrupted', reason: 'fenced' });
  if (job?.state === 'finished') return pushedBy(job);
  if (job?.state === 'canceled') throw canceledPush(job);
  throw new Problem('database_unavailable', {
    sentence: 'The push lost its hold on the database and was ended. Push again shortly',
    headers: { 'x-job-id': jobId },
  });
}

function pushedBy(job: Job): Pushed {
  if (job.version === null || job.records === null) throw new Error(`Job ${job.id} has not published`);
  return pushedAs({ jobId: job.id, version: job.version, records: job.records });
}

function pushedAs(pushed: Pushed): Pushed {
  const warning = removalWarning(pushed.records);
  return warning === undefined ? pushed : { ...pushed, warning };
}
