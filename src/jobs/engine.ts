/**
 * The job engine: claims due jobs up to this node's capacity, runs them, and reclaims jobs whose node is gone.
 *
 *     claim ──▶ running here ──publish, fail──▶ over
 *                  │    │  └──somebody cancels──▶ asked to end ──▶ endCanceled
 *                  │    └──this node stops──▶ killed ──▶ released
 *                  └──its lease is lost (`leases.ts`)──▶ killed; reclaimed by any node
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
import { type AttemptDeps, runAttempt } from './attempt.ts';
import { IsolatedBatch } from './isolated-batch.ts';
import { type Lease, Leases } from './leases.ts';
import { type SourceDeps, sourceProducer } from './run-source.ts';

/** A hint wakes the engine at once; when a hint is lost, the next poll finds the job. */
const POLL_MS = 1_000;

export interface EngineOptions extends AttemptDeps, SourceDeps {
  nodeId: string;
  /** How many jobs this node runs at once. */
  capacity: number;
  /** How many jobs of one team all nodes run at once. */
  perTeam: number;
  /** What definitions made over the API are held to; nothing by default. */
  ceilings?: Ceilings;
  /** Workflows whose jobs this node must not claim; none by default. */
  except?(): readonly { teamId: string; workflowId: string }[];
  /** Whether the files of this node are those that were applied; called for each claimed job. Yes by default. */
  runsHere?(workflow: Workflow): Promise<boolean>;
  /** The leases of this process, if others hold some too; its own by default. */
  leases?: Leases;
  /** See `LeaseOptions`; of its own leases. */
  leaseMs?: number;
}

export class Engine {
  readonly #options: EngineOptions;
  readonly #leases: Leases;
  /** What runs here, with what settles at its end. */
  readonly #running = new Map<Lease, Promise<void>>();
  readonly #claims: Poller;
  readonly #reaps: Poller;
  #unwatch: (() => void) | undefined;
  readonly #reclaims: IsolatedBatch<Abandoned>;
  #claiming: Promise<void> | undefined;
  /** Whether a claim failed without a clear answer: it may have been committed all the same. */
  #isUnsure = false;
  /** Attempts that ended here, but whose end the store did not record. None of them is a crash. */
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
    this.#claims = new Poller({ everyMs: POLL_MS, random, look: () => this.#claim().catch(report) });
    this.#reaps = new Poller({
      everyMs: this.#leases.leaseMs / 3,
      random,
      look: () => this.reap({ nodeId: null }).catch(report),
    });
  }

  /** Reclaims what an earlier process of this node left running, then starts to claim. */
  async start(): Promise<void> {
    if (this.#unwatch !== undefined) return;
    this.#isStopping = false;
    this.#unwatch = this.#options.store.watch((touched) => {
      if (touched.jobs) this.#claims.nudge();
    });
    await this.reap({ nodeId: this.#options.nodeId });
    for (const wake of [this.#reaps, this.#claims]) wake.start();
  }

  /** Stops claiming, kills running attempts and releases their jobs, without using their budgets. Counts the released. */
  async stop(): Promise<{ released: number }> {
    this.#isStopping = true;
    this.#unwatch?.();
    this.#unwatch = undefined;
    await Promise.all([this.#claims.stop(), this.#reaps.stop()]);
    const leases = [...this.#running.keys()];
    for (const lease of leases) lease.abort('release');
    await Promise.all(this.#running.values());
    const released = leases.length;
    const { store, log } = this.#options;
    try {
      if (released > 0) {
        // Jobs that ended by themselves in the meantime are skipped.
        await store.jobs.release({ held: leases.map(({ held }) => held) });
        log.info({ jobs: released }, 'jobs.released');
      }
      // Otherwise the next start would take them for crashed.
      if (this.#isUnsure) await this.#giveBackUnanswered();
      await this.#giveBackUnended();
    } catch (error) {
      // Stopping continues: the next start of this node reclaims them.
      log.error({ err: error, jobs: released }, 'jobs.not_released');
    }
    return { released };
  }

  /** Claims due jobs and resolves when their attempts have ended. For tests. */
  async tick(): Promise<void> {
    await this.#claim();
    await Promise.all(this.#running.values());
  }

  /** Reclaims running jobs of a dead node (`nodeId`), or those whose lease has expired (null). */
  async reap(input: { nodeId: string | null }): Promise<void> {
    await this.#giveBackUnended();
    const found = await this.#options.store.jobs.abandoned(input);
    await this.#reclaims.each(found, (abandoned) => this.#takeBack(abandoned, input));
  }

  async #takeBack(abandoned: Abandoned, input: { nodeId: string | null }): Promise<void> {
    const { store, log } = this.#options;
    if (this.#leases.renew(abandoned.held)) return;
    const killed = abandoned.process !== null && (await killLeftover(abandoned.process));
    await removeLeftoverFiles(abandoned.held);
    const job = await store.jobs.reclaim({
      ...input,
      held: abandoned.held,
      error: 'The process that ran this job ended without a word',
    });
    log.warn(
      { workflowId: abandoned.workflowId, ...abandoned.held, killed, state: job?.state ?? 'taken' },
      'job.reclaimed',
    );
  }

  /** One claim at a time: two concurrent ones would both fill the free capacity. */
  #claim(): Promise<void> {
    this.#claiming ??= this.#claimDue().finally(() => {
      this.#claiming = undefined;
    });
    return this.#claiming;
  }

  async #claimDue(): Promise<void> {
    const { store, nodeId, capacity, perTeam, ceilings } = this.#options;
    const limit = capacity - this.#running.size;
    if (this.#isStopping || limit <= 0) return;
    if (this.#isUnsure) await this.#giveBackUnanswered();
    await this.#giveBackUnended();
    const sentAt = performance.now();
    const except = this.#options.except?.() ?? [];
    const busy = [...new Set([...this.#running.keys()].map(({ held }) => held.teamId))];
    const input = { nodeId, limit, leaseMs: this.#leases.leaseMs, perTeam, except, busy };
    const claimed = await store.jobs.claim(input).catch((error: unknown) => {
      this.#isUnsure ||= error instanceof Problem;
      throw error;
    });
    // Concurrently, because leases of jobs that have not begun are not renewed.
    await Promise.all(
      claimed.map(async (job) => {
        if (await this.#isForUs(job))
          this.#begin({ ...job, workflow: withinCeilings(job.workflow, ceilings) }, sentAt);
        else await this.#leave(job);
      }),
    );
  }

  /** Releases jobs of a claim without an answer: in the table they are running, and would be taken for crashed. */
  async #giveBackUnanswered(): Promise<void> {
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

  /** Releases `#unended`; those that another node has taken meanwhile are skipped. */
  async #giveBackUnended(): Promise<void> {
    const held = this.#unended;
    if (held.length === 0) return;
    this.#unended = [];
    try {
      await this.#options.store.jobs.release({ held });
      this.#options.log.warn({ jobs: held.length }, 'jobs.given_back: the store did not take how they ended');
    } catch (error) {
      this.#unended.push(...held);
      throw error;
    }
  }

  async #isForUs({ job, workflow }: ClaimedJob): Promise<boolean> {
    try {
      return (await this.#options.runsHere?.(workflow)) ?? true;
    } catch (err) {
      this.#options.log.error({ err, jobId: job.id }, 'job.not_compared');
      return false;
    }
  }

  /** Releases a claimed job whose workflow was changed just now, while this node's files were not: others can run it. */
  async #leave({ job: { teamId, id: jobId, attempt, workflowId } }: ClaimedJob): Promise<void> {
    const { store, log } = this.#options;
    try {
      await store.jobs.release({ held: [{ teamId, jobId, attempt }] });
      log.info({ workflowId, jobId }, 'job.left_to_others');
    } catch (err) {
      // Its lease is not renewed, so it is reclaimed when that expires.
      log.error({ err, workflowId, jobId }, 'job.not_left');
    }
  }

  #begin(claimed: ClaimedJob, renewedAt: number): void {
    const { teamId, id: jobId, attempt } = claimed.job;
    const lease = this.#leases.hold({ teamId, jobId, attempt }, renewedAt);
    const producer = sourceProducer(this.#options, claimed);
    const running = runAttempt(this.#options, claimed, producer, lease.signals);
    const ended = running
      .then(({ unwritten }) => {
        // The job is released when the store is back, or reclaimed without a lease.
        if (lease.isRefused || unwritten?.error instanceof Problem) this.#unended.push(lease.held);
      })
      .catch((err) => this.#options.log.error({ err, jobId }, 'job.end_not_written'))
      .finally(() => {
        this.#leases.release(lease);
        this.#running.delete(lease);
        this.#claims.nudge();
      });
    this.#running.set(lease, ended);
  }
}
