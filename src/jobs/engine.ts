/**
 * The job engine: claims due jobs up to this node's capacity, runs them, and reclaims jobs whose node is gone.
 *
 *     claim ──▶ running here ──publish, fail──▶ ended
 *                  │    │  └──canceled──▶ asked to stop ──▶ endCanceled
 *                  │    └──this node stops──▶ killed ──▶ released
 *                  └──lease lost (`leases.ts`)──▶ killed; reclaimed by any node
 */
import { performance } from 'node:perf_hooks';
import { type Ceilings, withinCeilings } from '../definitions/api-bounds.ts';
import { Problem } from '../model/error.ts';
import type { AttemptLease } from '../model/job.ts';
import type { Workflow } from '../model/workflow.ts';
import { killLeftover } from '../sources/process/groups.ts';
import { removeLeftoverFiles } from '../sources/process/run-files.ts';
import { Poller } from '../std/chore.ts';
import type { Abandoned, ClaimedJob } from '../store/operations/attempts.ts';
import { quietMs } from '../store/quiet.ts';
import { type AttemptDeps, runAttempt } from './attempt.ts';
import { IsolatedBatch } from './isolated-batch.ts';
import { type Lease, Leases } from './leases.ts';
import { type SourceDeps, sourceProducer } from './run-source.ts';

/**
 * How often the engine looks for due jobs while something happens. The store usually wakes the engine when a job is due,
 * and polling finds the jobs whose notification was lost. An idle engine sleeps until a job is due.
 */
const POLL_MS = 1_000;

export interface EngineOptions extends AttemptDeps, SourceDeps {
  nodeId: string;
  /** Maximum number of concurrent jobs on this node. */
  capacity: number;
  /** Maximum number of concurrent jobs of one team, across all nodes. */
  perTeam: number;
  /** Upper limits for definitions made over the API (default: none). */
  ceilings?: Ceilings;
  /** Returns the workflows whose jobs this node must not claim (default: none). */
  except?(): readonly { teamId: string; workflowId: string }[];
  /** Returns whether the files of this node match the applied workflow. Called for each claimed job (default: true). */
  runsHere?(workflow: Workflow): Promise<boolean>;
  /** The leases of this process. Pass them so that the engine and pushes share them (default: a new `Leases`). */
  leases?: Leases;
  /** See `LeaseOptions`; ignored with `leases`. */
  leaseMs?: number;
}

export class Engine {
  readonly #options: EngineOptions;
  readonly #leases: Leases;
  /** The running attempts, each with a promise that settles when the attempt has ended. */
  readonly #running = new Map<Lease, Promise<void>>();
  /** The running attempts that take a place: those whose source has not ended. Publishing needs no place. */
  readonly #working = new Set<Lease>();
  /** Whether the last claim got as many jobs as there were places, so that more may be due. */
  #isFull = false;
  readonly #claims: Poller;
  readonly #reaps: Poller;
  #unwatch: (() => void) | undefined;
  readonly #reclaims: IsolatedBatch<Abandoned>;
  #claiming: Promise<void> | undefined;
  /** Whether the response to a claim was lost. The store may have committed this claim. */
  #isUnsure = false;
  /**
   * Attempts that ended on this node, but whose end the store could not record. Their jobs are released, so that these
   * attempts do not count as crashes.
   */
  #unended: AttemptLease[] = [];
  #isStopping = false;

  constructor(options: EngineOptions) {
    this.#options = options;
    this.#leases = options.leases ?? new Leases(options);
    const { random } = options;
    const report = (err: unknown) => options.log.error({ err }, 'engine.failed');
    this.#reclaims = new IsolatedBatch({
      nameOf: ({ held: { teamId, jobId } }) => ({ teamId, key: jobId }),
      failed: (err, { held }) => options.log.error({ err, ...held }, 'job.not_reclaimed'),
    });
    this.#claims = new Poller({
      everyMs: POLL_MS,
      random,
      look: () => this.#claim().catch(report),
      quietMs: () => this.#quietMs(),
    });
    this.#reaps = new Poller({
      everyMs: this.#leases.leaseMs / 3,
      random,
      look: () => this.reap({ nodeId: null }).catch(report),
    });
  }

  /** Reclaims jobs that a previous process of this node left running, then starts to claim jobs. */
  async start(): Promise<void> {
    if (this.#unwatch !== undefined) return;
    this.#isStopping = false;
    this.#unwatch = this.#options.store.watch((touched) => {
      if (touched.jobs) this.#claims.nudge();
    });
    await this.reap({ nodeId: this.#options.nodeId });
    for (const wake of [this.#reaps, this.#claims]) wake.start();
  }

  /**
   * Stops claiming jobs, kills the running attempts and releases their jobs. A released job does not use up a retry.
   *
   * @returns the number of released jobs
   */
  async stop(): Promise<{ released: number }> {
    this.#isStopping = true;
    this.#unwatch?.();
    this.#unwatch = undefined;
    await Promise.all([this.#claims.stop(), this.#reaps.stop()]);
    // A claim of `#leavePlace` may still be running. Its jobs are released too.
    await this.#claiming?.catch(() => {});
    const leases = [...this.#running.keys()];
    for (const lease of leases) lease.abort('release');
    await Promise.all(this.#running.values());
    const released = leases.length;
    const { store, log } = this.#options;
    try {
      if (released > 0) {
        // The store skips jobs that ended while they were being killed.
        await store.jobs.release({ held: leases.map(({ held }) => held) });
        log.info({ jobs: released }, 'jobs.released');
      }
      // These jobs are released too, because otherwise the next start of this node would count them as crashed.
      if (this.#isUnsure) await this.#releaseUnanswered();
      await this.#releaseUnended();
    } catch (error) {
      // The next start of this node reclaims the jobs that were not released.
      log.error({ err: error, jobs: released }, 'jobs.not_released');
    }
    return { released };
  }

  /** Claims due jobs, and resolves when the attempts of these jobs have ended. Used by tests. */
  async tick(): Promise<void> {
    await this.#claim();
    await Promise.all(this.#running.values());
  }

  /**
   * Reclaims running jobs: those of a dead node if `nodeId` is set, or all jobs whose lease has expired if it is null.
   */
  async reap(input: { nodeId: string | null }): Promise<void> {
    await this.#releaseUnended();
    const found = await this.#options.store.jobs.abandoned(input);
    await this.#reclaims.each(found, (abandoned) => this.#reclaim(abandoned, input));
  }

  async #reclaim(abandoned: Abandoned, input: { nodeId: string | null }): Promise<void> {
    const { store, log } = this.#options;
    if (this.#leases.renew(abandoned.held)) return;
    const killed = abandoned.process !== null && (await killLeftover(abandoned.process));
    await removeLeftoverFiles(abandoned.held);
    const job = await store.jobs.reclaim({
      ...input,
      held: abandoned.held,
      error: 'The process that ran this job died or stopped responding',
    });
    log.warn(
      { workflowId: abandoned.workflowId, ...abandoned.held, killed, state: job?.state ?? 'taken' },
      'job.reclaimed',
    );
  }

  async #quietMs(): Promise<number> {
    const isUnsettled = this.#running.size > 0 || this.#isUnsure || this.#unended.length > 0;
    return isUnsettled ? 0 : quietMs(this.#options.store, this.#options.store.jobs.nextDueAt);
  }

  /** Only one claim is sent at a time, because each of two concurrent claims would fill the whole free capacity. */
  #claim(): Promise<void> {
    this.#claiming ??= this.#claimDue().finally(() => {
      this.#claiming = undefined;
    });
    return this.#claiming;
  }

  async #claimDue(): Promise<void> {
    const { store, nodeId, capacity, perTeam, ceilings } = this.#options;
    // Attempts that publish are limited too, because a slow database would otherwise collect them.
    const limit = Math.min(capacity - this.#working.size, 2 * capacity - this.#running.size);
    if (this.#isStopping || limit <= 0) return;
    if (this.#isUnsure) await this.#releaseUnanswered();
    await this.#releaseUnended();
    const sentAt = performance.now();
    const except = this.#options.except?.() ?? [];
    const busy = [...new Set([...this.#working].map(({ held }) => held.teamId))];
    const unsure = new Set<string>();
    const input = { nodeId, limit, leaseMs: this.#leases.leaseMs, perTeam, except, busy, unsure };
    const claimed = await store.jobs.claim(input).catch((error: unknown) => {
      this.#isUnsure ||= error instanceof Problem;
      throw error;
    });
    this.#isUnsure ||= unsure.size > 0;
    this.#isFull = claimed.length === limit;
    // The claimed jobs are compared and started concurrently, because the leases of jobs that have not started are not
    // renewed.
    await Promise.all(
      claimed.map(async (job) => {
        if (await this.#isForUs(job))
          this.#begin({ ...job, workflow: withinCeilings(job.workflow, ceilings) }, sentAt);
        else await this.#leave(job);
      }),
    );
  }

  /**
   * Releases the jobs of a claim whose response was lost. The store lists these jobs as running on this node, so
   * without a release they would count as crashed.
   */
  async #releaseUnanswered(): Promise<void> {
    const { store, nodeId, log } = this.#options;
    const here = new Set([...this.#running.keys()].map(({ held }) => `${held.jobId} ${held.attempt}`));
    const held = (await store.jobs.abandoned({ nodeId }))
      .filter((one) => one.nodeId === nodeId && one.origin !== 'push' && one.process === null)
      .map((one) => one.held)
      .filter(({ jobId, attempt }) => !here.has(`${jobId} ${attempt}`));
    if (held.length > 0) {
      await store.jobs.release({ held });
      log.warn({ jobs: held.length }, 'jobs.claimed_without_answer');
    }
    this.#isUnsure = false;
  }

  /**
   * Releases the jobs of the attempts in `#unended`. The store skips jobs that another node has taken in the meantime.
   * Never rejects: jobs whose server is still unavailable are released later, and other jobs do not wait for them.
   */
  async #releaseUnended(): Promise<void> {
    const { store, log } = this.#options;
    let jobs = 0;
    const release = async (held: AttemptLease) => {
      try {
        await store.jobs.release({ held: [held] });
        jobs += 1;
      } catch {
        this.#unended.push(held);
      }
    };
    await Promise.all(this.#unended.splice(0).map(release));
    if (jobs > 0) log.warn({ jobs }, 'jobs.released_unrecorded: the store could not record how they ended');
  }

  async #isForUs({ job, workflow }: ClaimedJob): Promise<boolean> {
    try {
      return (await this.#options.runsHere?.(workflow)) ?? true;
    } catch (err) {
      this.#options.log.error({ err, jobId: job.id }, 'job.not_compared');
      return false;
    }
  }

  /** Releases a claimed job whose applied workflow differs from the files of this node, so that another node can run it. */
  async #leave({ job: { teamId, id: jobId, attempt, workflowId } }: ClaimedJob): Promise<void> {
    const { store, log } = this.#options;
    try {
      await store.jobs.release({ held: [{ teamId, jobId, attempt }] });
      log.info({ workflowId, jobId }, 'job.left_to_others');
    } catch (err) {
      // Nothing renews the lease of this job, so the job is reclaimed when the lease expires.
      log.error({ err, workflowId, jobId }, 'job.not_left');
    }
  }

  #begin(claimed: ClaimedJob, renewedAt: number): void {
    const { teamId, id: jobId, attempt } = claimed.job;
    const lease = this.#leases.hold({ teamId, jobId, attempt }, renewedAt);
    const producer = {
      ...sourceProducer(this.#options, claimed),
      confirm: async () => this.#leavePlace(lease),
    };
    this.#working.add(lease);
    const running = runAttempt(this.#options, claimed, producer, lease.signals);
    const ended = running
      .then(({ unwritten }) => {
        // The job is released once the store is available again. If its lease expires first, any node reclaims the job.
        if (lease.isRefused || unwritten?.error instanceof Problem) this.#unended.push(lease.held);
      })
      .catch((err) => this.#options.log.error({ err, jobId }, 'job.end_not_written'))
      .finally(() => {
        this.#leases.release(lease);
        this.#working.delete(lease);
        this.#running.delete(lease);
        this.#claims.nudge();
      });
    this.#running.set(lease, ended);
  }

  /** Called before an attempt publishes. The next job is claimed with the transaction that publishes. */
  #leavePlace(lease: Lease): void {
    this.#working.delete(lease);
    if (this.#isFull) this.#claim().catch((err) => this.#options.log.error({ err }, 'engine.failed'));
  }
}
