/** Jobs: their state, their logs, and waiting for their end. */
import { RateLimited, Unavailable } from './errors.ts';
import type { Events } from './events.ts';
import { type ListOptions, type Pages, pagesOf } from './pages.ts';
import type { Job, JobCounts, JobLogs, LogLine } from './resources.ts';
import {
  type CallOptions,
  type KeyedOptions,
  pause,
  randomKey,
  type Transport,
  timedOut,
} from './transport.ts';

export type JobState = Job['state'];
export type JobOrigin = Job['origin'];
export type FailureReason = NonNullable<Job['reason']>;

/** The longest `wait` that the service accepts, in seconds. */
const HELD_S = 25;
/** Poll interval while unrelated events keep arriving, or while events cannot be followed, in milliseconds. */
const LOOK_MS = 500;
const LOOK_AT_LOG_MS = 1_000;

export class Jobs {
  readonly #transport: Transport;
  readonly #events: Events;

  constructor(transport: Transport, events: Events) {
    this.#transport = transport;
    this.#events = events;
  }

  /** The jobs of the team, newest first. */
  list(
    options: ListOptions & {
      workflowId?: string | undefined;
      state?: readonly JobState[] | undefined;
      origin?: JobOrigin | undefined;
      /** Only jobs queued at or after this ISO 8601 time. */
      since?: string | undefined;
      /** Only jobs queued at or before this ISO 8601 time. */
      until?: string | undefined;
    } = {},
  ): Pages<Job> {
    const { workflowId, state, origin, since, until, ...rest } = options;
    return pagesOf(this.#transport, 'jobs', {
      ...rest,
      path: '/v1/jobs',
      query: { workflowId, state, origin, since, until },
    });
  }

  /** The number of jobs in each state. @throws NotFound */
  counts({
    workflowId,
    ...options
  }: CallOptions & { workflowId?: string | undefined } = {}): Promise<JobCounts> {
    return this.#transport.json({ ...options, path: '/v1/jobs/counts', query: { workflowId } });
  }

  /** @throws NotFound */
  get(jobId: string, options: CallOptions = {}): Promise<Job> {
    return this.#transport.json({ ...options, path: pathOf(jobId) });
  }

  /**
   * Waits until a job has ended, successfully or not: check its `state`. Follows the events of the team, and so returns
   * immediately after the end, with few requests.
   *
   * @param options.withinMs time limit in milliseconds (default: none)
   * @throws NotFound; TimedOut, and the job continues
   */
  async wait(
    jobId: string,
    { withinMs = 0, ...options }: CallOptions & { withinMs?: number } = {},
  ): Promise<Job> {
    const end = withinMs > 0 ? Date.now() + withinMs : Number.POSITIVE_INFINITY;
    let job = await this.get(jobId, options);
    if (job.finishedAt !== null) return job;
    let { next } = await this.#events.page({ ...options, after: 'now' });
    // The job may have ended before the position `next` in the events.
    job = await this.get(jobId, options);
    while (job.finishedAt === null) {
      const leftMs = end - Date.now();
      if (leftMs <= 0) throw timedOut(withinMs);
      const page = await this.#poll(next, { ...options, leftMs });
      next = page?.next ?? next;
      const isOurs = page?.events.some((event) => event.jobId === jobId);
      if (!isOurs) await pause(Math.min(LOOK_MS, leftMs), options.signal);
      if (isOurs || page === undefined || page.events.length === 0) job = await this.get(jobId, options);
    }
    return job;
  }

  /**
   * Lines of the log of an attempt (default: the last). Pass `next` as `after` in the next call; null after the last line.
   *
   * @throws NotFound
   */
  logs(
    jobId: string,
    options: CallOptions & { attempt?: number; after?: number; limit?: number } = {},
  ): Promise<JobLogs> {
    const { attempt, after, limit, ...rest } = options;
    const query = { attempt, after, limit, format: 'json' };
    return this.#transport.json({ ...rest, path: `${pathOf(jobId)}/logs`, query });
  }

  /** Follows the log, starting with the current attempt, until the job has ended. @throws NotFound */
  async *followLogs(jobId: string, options: CallOptions = {}): AsyncGenerator<LogLine & { attempt: number }> {
    let job = await this.get(jobId, options);
    let attempt = Math.max(1, job.attempt);
    let after = 0;
    for (;;) {
      const { lines, next } = await this.logs(jobId, { ...options, attempt, after });
      for (const line of lines) yield { ...line, attempt };
      after = lines.at(-1)?.seq ?? after;
      if (next !== null && lines.length > 0) continue;
      // `job` was read before the log. If the attempt had ended by then, its log is complete.
      if (attempt < job.attempt) {
        attempt += 1;
        after = 0;
      } else if (job.finishedAt !== null) {
        return;
      } else {
        await pause(LOOK_AT_LOG_MS, options.signal);
        job = await this.get(jobId, options);
      }
    }
  }

  /** Cancels a waiting job immediately, and a running job once its run has stopped. @throws NotFound, Conflict */
  cancel(jobId: string, options: CallOptions = {}): Promise<{ message: string; job: Job }> {
    return this.#transport.json({ ...options, method: 'POST', path: `${pathOf(jobId)}/cancel` });
  }

  /** Queues a new job of the same workflow. @throws NotFound; Conflict with the `jobId` of the unfinished job */
  rerun(
    jobId: string,
    { idempotencyKey = randomKey(), ...options }: KeyedOptions = {},
  ): Promise<{ message: string; job: Job }> {
    const path = `${pathOf(jobId)}/rerun`;
    return this.#transport.json({ ...options, method: 'POST', path, idempotencyKey });
  }

  /** Makes a queued or retrying job due immediately. @throws NotFound, Conflict */
  runNow(jobId: string, options: CallOptions = {}): Promise<{ message: string; job: Job }> {
    return this.#transport.json({ ...options, method: 'POST', path: `${pathOf(jobId)}/run-now` });
  }

  /** Waits for events after a position; undefined if the service accepts no further long poll. */
  async #poll(after: number, { leftMs, ...options }: CallOptions & { leftMs: number }) {
    const wait = Math.min(HELD_S, Math.ceil(leftMs / 1_000));
    try {
      return await this.#events.page({ ...options, after, wait, limit: 250 });
    } catch (error) {
      if (error instanceof Unavailable || error instanceof RateLimited) return undefined;
      throw error;
    }
  }
}

function pathOf(jobId: string): string {
  return `/v1/jobs/${encodeURIComponent(jobId)}`;
}
