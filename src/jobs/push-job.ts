/** Runs pushes: jobs whose records a client sends in the request, from the first byte to the published version. */
import { createHash, type Hash } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { type Ceilings, withinCeilings } from '../definitions/api-bounds.ts';
import { Problem } from '../model/error.ts';
import type { AfterFailure, AttemptLease, Job, RecordCounts } from '../model/job.ts';
import { removalWarning } from '../model/planned-writes.ts';
import { findingsSentence } from '../model/quality/judge.ts';
import { type Definition, MODES, type Mode } from '../model/workflow.ts';
import { countWords } from '../std/amounts.ts';
import { Shares } from '../std/fair-share.ts';
import { MalformedError } from '../std/lines.ts';
import type { ClaimedJob } from '../store/operations/attempts.ts';
import type { Store } from '../store/store.ts';
import { type AttemptDeps, InterruptedError, type Producer, type RunFailure, runAttempt } from './attempt.ts';
import { Leases } from './leases.ts';
import {
  countBytes,
  decoded,
  type PushEncoding,
  type PushFormat,
  readPushed,
  untilAborted,
} from './push-records.ts';
import { jobHeaders } from './submit.ts';

/** How long a push waits for an unfinished job of its workflow to end. */
const WAIT_MS = 30_000;
/** Maximum number of waiting pushes, across all teams. Pushes beyond this number are refused with `push_busy`. */
const MAX_WAITING = 64;
/**
 * How often a waiting push checks whether the unfinished job of its workflow has ended (`LOOK_MS`), and how often it
 * tries to start even if that job seems unfinished (`TRY_MS`).
 */
const LOOK_MS = 100;
const TRY_MS = 1_000;

export interface PushDeps extends AttemptDeps {
  nodeId: string;
  /** The leases of this process. Pass them so that pushes and the engine share them (default: a new `Leases`). */
  leases?: Leases;
  /** Upper limits for definitions made over the API (default: none). */
  ceilings?: Ceilings;
  /** How long a push waits for an unfinished job of its workflow to end (default: 30 s). */
  waitMs?: number;
}

/** A job of origin `push`: it runs on the node that received the request, as soon as its workflow has no other job. */
export interface JobNow {
  teamId: string;
  workflowId: string;
  idempotencyKey: string | null;
  /** The trace context of the request, as stored. */
  trace?: string | null;
  /** Whether the workflow may have any kind of source. By default, only `push` is accepted. */
  anySource?: boolean;
  /**
   * When this signal aborts, the job fails with the signal's reason. If this reason is an InterruptedError, the job
   * fails as `lost`.
   */
  signal?: AbortSignal;
  /** Aborts with an InterruptedError when the client disconnects, which ends the wait for an unfinished job. */
  sender?: AbortSignal;
  /** A store that names the author in the audit log (default: the store of the deps). */
  store?: Store;
}

/** Makes the producer of the lines of a job that has started. `outer` aborts when the job must end. */
export type ProducerOf = (claimed: ClaimedJob, outer: AbortSignal) => Producer;

/** One push request. */
export interface Push extends Omit<JobNow, 'anySource' | 'store'> {
  /**
   * How the records are merged with the existing records (default: the workflow's mode). A mode that can change more of
   * the existing records than the workflow's mode is refused.
   */
  mode: Mode | undefined;
  /** Turns off the default against removing nearly all records. The workflow's own `expect` still applies. */
  allowDrop?: boolean;
  format: PushFormat;
  encoding: PushEncoding;
  /**
   * The body of the request, which is read no faster than its records are written. Throws an InterruptedError when the
   * client disconnects.
   */
  bytes: AsyncIterable<Uint8Array>;
  /** Called before publishing. Throws if the client is no longer allowed to push. */
  confirm?: () => Promise<void>;
}

export interface Pushed {
  jobId: string;
  version: number;
  records: RecordCounts;
  /** A sentence that warns of an effect that may be unintended, such as the removal of many records. */
  warning?: string;
}

/** The state that all pushes share. */
interface PushSurroundings extends PushDeps {
  leases: Leases;
  /** The number of pushes of each team that wait for an unfinished job. */
  waiting: Shares;
  /** Ends all waits. */
  turnedAway: AbortController;
  /**
   * Functions that write the end of an earlier push to the store again. The first write failed, for example because the
   * disk was full.
   */
  unended: Set<() => Promise<unknown>>;
}

/** Runs pushes. `stop` aborts the running pushes, and resolves when they have ended. */
export class PushJobs {
  readonly #deps: PushSurroundings;
  readonly #running = new Set<Promise<unknown>>();
  readonly #stop = new AbortController();

  constructor(deps: PushDeps) {
    this.#deps = {
      ...deps,
      leases: deps.leases ?? new Leases(deps),
      waiting: new Shares(),
      turnedAway: new AbortController(),
      unended: new Set(),
    };
  }

  /**
   * Runs one push. If it throws, nothing was published.
   *
   * @throws Problem `workflow_not_found`, `not_push`, `workflow_paused`, `field_invalid` (the mode) or `push_busy`
   *   before reading the body; `idempotency_key_reused`; `push_refused` or `push_timeout` when the job has failed, with
   *   the headers of `jobHeaders` and `x-job-reason`; `push_canceled`; InterruptedError
   */
  run(push: Push): Promise<Pushed> {
    return this.#follow(push, (signal) => runPush(this.#deps, push, signal));
  }

  /**
   * Runs one job whose lines come from elsewhere. If it throws, nothing was published.
   *
   * @throws Problem like `run`, and what the producer throws
   */
  runWith(job: JobNow, producerOf: ProducerOf): Promise<Pushed> {
    return this.#follow(job, async (signal) => {
      const begun = await begin(this.#deps, job, signal);
      if (begun.outcome === 'replayed') return pushedBy(begun.job);
      return attempt(this.#deps, job, begun, producerOf, signal);
    });
  }

  #follow({ signal }: JobNow, run: (signal: AbortSignal) => Promise<Pushed>): Promise<Pushed> {
    const ends = signal === undefined ? this.#stop.signal : AbortSignal.any([signal, this.#stop.signal]);
    const running = run(ends).finally(() => this.#running.delete(running));
    this.#running.add(running);
    return running;
  }

  /** Refuses new pushes and waiting pushes with `stopping`. Running pushes continue. */
  turnAway(): void {
    this.#deps.turnedAway.abort(new Problem('stopping'));
  }

  async stop(): Promise<void> {
    this.turnAway();
    this.#stop.abort(
      new InterruptedError('The service was stopped while the records were arriving. Push them again'),
    );
    await Promise.allSettled(this.#running);
  }
}

async function runPush(deps: PushSurroundings, push: Push, signal: AbortSignal): Promise<Pushed> {
  const { teamId, workflowId } = push;
  const workflow = await deps.store.workflows.get({ teamId, id: workflowId });
  if (workflow === undefined) throw new Problem('workflow_not_found');
  refuseWiderMode(push.mode, workflow.definition);
  const begun = await begin(deps, push, signal);
  if (begun.outcome === 'begun') {
    return attempt(deps, push, begun, (claimed, outer) => pushProducer(push, claimed, outer), signal);
  }
  const { timeoutMs } = workflow.definition.limits;
  if (begun.sent !== null) await refuseOtherBody(push, begun.sent, { timeoutMs, signal });
  return pushedBy(begun.job);
}

/** `MODES` is ordered from `replace` to `append`: each mode can change less of the existing records than the previous one. */
function refuseWiderMode(mode: Mode | undefined, definition: Definition): void {
  if (mode === undefined || MODES.indexOf(mode) >= MODES.indexOf(definition.mode)) return;
  throw new Problem('field_invalid', {
    sentence:
      `The mode \`${mode}\` can change more of the existing records than \`${definition.mode}\`, the mode of the ` +
      `workflow. Use ${MODES.slice(MODES.indexOf(definition.mode)).join(' or ')}, or change \`mode\` in the definition`,
  });
}

/**
 * Starts the job as soon as its workflow has no unfinished job.
 *
 * @throws Problem `push_busy`, `not_push`, `workflow_paused`, `workflow_not_found`
 */
async function begin(deps: PushSurroundings, job: JobNow, outer: AbortSignal) {
  const ends = [outer, deps.turnedAway.signal];
  const signal = AbortSignal.any(job.sender === undefined ? ends : [...ends, job.sender]);
  const begun = await tryToBegin(deps, job, signal);
  switch (begun.outcome) {
    case 'begun':
    case 'replayed':
      return begun;
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

async function tryToBegin(deps: PushSurroundings, of: JobNow, signal: AbortSignal) {
  const { store, nodeId, leases, waiting, waitMs = WAIT_MS } = deps;
  const { teamId, workflowId, idempotencyKey, trace = null, anySource = false } = of;
  const giveUpAt = performance.now() + waitMs;
  let isWaiting = false;
  await writeEnds(deps);
  try {
    for (;;) {
      signal.throwIfAborted();
      const sentAt = performance.now();
      const input = { teamId, workflowId, nodeId, leaseMs: leases.leaseMs, idempotencyKey, trace, anySource };
      const begun = await store.jobs.begin(input);
      if (begun.outcome === 'begun') return { ...begun, sentAt };
      if (begun.outcome !== 'occupied' || performance.now() >= giveUpAt) return begun;
      if (!isWaiting) {
        if (!waiting.admits(teamId, MAX_WAITING)) return begun;
        waiting.add(teamId);
        isWaiting = true;
      }
      // Checking whether the unfinished job has ended only reads from the store. Trying to start the new job writes, so
      // it is done less often.
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

/** Writes the ends of earlier pushes again. An end that the store refuses again is kept for the next call. */
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
  { store = deps.store }: JobNow,
  begun: { claimed: ClaimedJob; sentAt: number },
  producerOf: ProducerOf,
  outer: AbortSignal,
): Promise<Pushed> {
  const { job } = begun.claimed;
  const claimed = { ...begun.claimed, workflow: withinCeilings(begun.claimed.workflow, deps.ceilings) };
  const held: AttemptLease = { teamId: job.teamId, jobId: job.id, attempt: job.attempt };
  const lease = deps.leases.hold(held, begun.sentAt);
  try {
    const end = await runAttempt({ ...deps, store }, claimed, producerOf(claimed, outer), lease.signals);
    // The end of this push is written before the next push starts. If the lease expires first, the job fails as `lost`.
    if (end.unwritten?.error instanceof Problem) deps.unended.add(end.unwritten.write);
    switch (end.outcome) {
      case 'finished':
        if (end.published === undefined || !('version' in end.published))
          return await afterFence(deps.store, held);
        return pushedAs({
          jobId: job.id,
          version: end.published.version,
          records: end.published.records,
          findings: end.published.findings ?? null,
          quarantined: end.ingested?.found.aside.records ?? 0,
        });
      case 'canceled':
        throw canceledPush(job);
      case 'failed':
      case 'retrying':
        throw refusalOf(end.failure, job);
      case 'interrupted':
        // If the end of the job were not written, the job would block its workflow until the lease expires.
        if (lease.isRefused) {
          const then: AfterFailure = { state: 'failed' };
          const end = { held, reason: 'lost', error: UNHELD, failures: 0, then } as const;
          deps.unended.add(() => deps.store.jobs.fail(end));
        }
        return await afterFence(deps.store, held);
    }
  } finally {
    deps.leases.release(lease);
  }
}

/** Produces the lines of an attempt from the body of a request. */
function pushProducer(push: Push, { job, workflow }: ClaimedJob, outer: AbortSignal): Producer {
  const { format, encoding } = push;
  const held: AttemptLease = { teamId: job.teamId, jobId: job.id, attempt: job.attempt };
  const hash = push.idempotencyKey === null ? undefined : hashOf(push);
  const stop = new AbortController();
  return {
    what: 'push',
    definition: { ...workflow.definition, mode: push.mode ?? workflow.definition.mode },
    signal: outer,
    once: true,
    guardsPush: push.allowDrop !== true,
    tooSlow: (seconds) =>
      `The push took longer than ${seconds} s. Send the records in smaller pushes, or raise \`limits.timeout\``,
    async start({ reporter }) {
      reporter.line('info', `Push started: ${format}${encoding === 'identity' ? '' : `, ${encoding}`}`);
      let bytes = 0;
      const sent = countBytes(push.bytes, (total) => {
        bytes = total;
        reporter.progress({ bytes });
      });
      const batches = readPushed(sent, { format, encoding, onBytes: (chunk) => void hash?.update(chunk) });
      const end = () => stop.abort(new Error('The push was stopped'));
      return {
        batches: untilAborted(batches, AbortSignal.any([outer, stop.signal])),
        get bytes() {
          return bytes;
        },
        end: Promise.resolve({ ok: true, state: undefined }),
        stop: end,
        kill: end,
      };
    },
    async confirm({ store }) {
      await push.confirm?.();
      // The hash is stored before publishing, so that a later request with the same idempotency key and the same body
      // returns the result of this push.
      if (hash !== undefined) await store.jobs.noteSent({ held, sent: hash.digest('hex') });
    },
  };
}

/** Returns the error for the client whose push has failed. */
function refusalOf({ reason, message, cause }: RunFailure, job: Job): unknown {
  if (reason === 'error' || reason === 'lost') return cause;
  const headers = { ...jobHeaders(job), 'x-job-reason': reason };
  return new Problem(reason === 'timeout' ? 'push_timeout' : 'push_refused', { sentence: message, headers });
}

/** Returns the error for the client whose push was canceled. */
function canceledPush(job: Job): Problem {
  return new Problem('push_canceled', { headers: jobHeaders(job) });
}

const UNHELD = 'The push was stopped because the database could not renew its lease. Push again shortly';

/**
 * Returns the result of a job whose lease this node no longer holds. The job may have finished nevertheless, if
 * publishing succeeded and only the response of the store was lost.
 *
 * @throws Problem `push_canceled`, or `database_unavailable` when the job has failed or is unfinished
 */
async function afterFence(store: Store, { teamId, jobId }: AttemptLease): Promise<Pushed> {
  const job = await store.jobs.get({ teamId, id: jobId });
  if (job?.state === 'finished') return pushedBy(job);
  if (job?.state === 'canceled') throw canceledPush(job);
  throw new Problem('database_unavailable', {
    sentence: UNHELD,
    headers: { 'x-job-id': jobId },
  });
}

function pushedBy(job: Job): Pushed {
  if (job.version === null || job.records === null) throw new Error(`Job ${job.id} has no published version`);
  const { id: jobId, version, records, findings, quarantined } = job;
  return pushedAs({ jobId, version, records, findings, quarantined });
}

function pushedAs({
  findings,
  quarantined,
  ...pushed
}: Pushed & Pick<Job, 'findings' | 'quarantined'>): Pushed {
  const how = quarantined
    ? `Published without ${countWords(quarantined, 'record')}, now in the quarantine`
    : 'Published, although not as expected';
  const unmet = findings === null ? [] : [`${how}: ${findingsSentence(findings)}`];
  const warning = [...unmet, removalWarning(pushed.records) ?? []].flat().join('. ');
  return warning === '' ? pushed : { ...pushed, warning };
}

/**
 * Starts the hash of a push, which covers its format and mode, and then its uncompressed body. The compressed bytes are
 * not hashed, because a client that compresses the same records again may send different bytes.
 */
function hashOf({ format, mode }: Pick<Push, 'format' | 'mode'>): Hash {
  return createHash('sha256').update(`${format} ${mode ?? ''}\n`);
}

/**
 * Reads the body of a push whose idempotency key has already been used for a published push, and compares the two
 * bodies.
 *
 * @param first the hash of the published push
 * @param limits.timeoutMs time limit for reading the whole body
 * @throws Problem `idempotency_key_reused` when the bodies differ; `push_timeout`; any error of the body
 */
async function refuseOtherBody(
  push: Push,
  first: string,
  { timeoutMs, signal }: { timeoutMs: number; signal: AbortSignal },
): Promise<void> {
  const hash = hashOf(push);
  const abort = new AbortController();
  const deadline = setTimeout(() => abort.abort(new Problem('push_timeout')), timeoutMs);
  try {
    const body = untilAborted(decoded(push.bytes, push.encoding), AbortSignal.any([signal, abort.signal]));
    for await (const chunk of body) hash.update(chunk);
  } catch (error) {
    if (!(error instanceof MalformedError)) throw error;
    throw new Problem('idempotency_key_reused', { cause: error });
  } finally {
    clearTimeout(deadline);
  }
  if (hash.digest('hex') !== first) throw new Problem('idempotency_key_reused');
}
