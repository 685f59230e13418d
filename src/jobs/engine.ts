/**
 * The job engine: claims due jobs up to this node's capacity, renews their leases by heartbeats, and reclaims jobs whose
 * node is gone. Each running attempt has a lease of 30 s, renewed every 10 s; an attempt whose lease could not be renewed
 * for 20 s is killed here, so that no other node takes over while it still runs.
 *
 *     claim ──▶ running here ──publish, fail──▶ over
 *                  │    │  └──somebody cancels──▶ asked to end ──▶ endCanceled
 *                  │    └──this node stops──▶ killed ──▶ released
 *                  └──no heartbeat for 20 s, or it was answered `lost`──▶ killed; reclaimed by any node
 *
 * A process that was suspended for a while (SIGSTOP, a sleeping machine) resumes with expired leases. It kills attempts
 * that were not renewed for too long; the others are renewed by the next heartbeat if no other node has taken them.
 */
import { performance } from 'node:perf_hooks';
import { setTimeout as pause } from 'node:timers/promises';
import { withinCeilings } from '../definitions/api-bounds.ts';
import { Problem } from '../model/error.ts';
import { type Held, LEASE_MS } from '../model/job.ts';
import type { Workflow } from '../model/workflow.ts';
import { killLeftover } from '../sources/process/groups.ts';
import { removeLeftoverFiles } from '../sources/process/run-files.ts';
import { Poller } from '../std/chore.ts';
import type { Abandoned, ClaimedJob } from '../store/operations/attempts.ts';
import { IsolatedBatch } from './isolated-batch.ts';
import type { RunJobDeps } from './run-attempt.ts';
import { type Interruption, runJob } from './run-job.ts';

/** A hint wakes the engine at once; when a hint is lost, the next poll finds the job. */
const POLL_MS = 1_000;

interface RunningJob {
  held: Held;
  abort: AbortController;
  cancel: AbortController;
  /** When the request that last granted or renewed its lease was sent, by the monotonic clock. */
  renewedAt: number;
  ended: Promise<void>;
  /** Whether it was killed because the store failed to renew its lease. */
  isRefused: boolean;
}

export interface EngineOptions extends RunJobDeps {
  nodeId: string;
  /** How many jobs this node runs at once. */
  capacity: number;
  /** How many jobs of one team all nodes run at once. */
  perTeam: number;
  /** Workflows whose jobs this node must not claim; none by default. */
  except?(): readonly { teamId: string; workflowId: string }[];
  /** Whether the files of this node are those that were applied; called for each claimed job. Yes by default. */
  runsHere?(workflow: Workflow): Promise<boolean>;
  /** Renews the lease of a push that this process holds, and returns whether it holds it: then it is not abandoned. */
  renewPush?(held: Held): boolean;
  /** 30 s by default. Heartbeats come every third of it; after two thirds without one, attempts are killed. */
  leaseMs?: number;
}

export class Engine {
  readonly #options: EngineOptions;
  readonly #leaseMs: number;
  readonly #running = new Set<RunningJob>();
  readonly #claims: Poller;
  readonly #beats: Poller;
  readonly #reaps: Poller;
  #fencing: NodeJS.Timeout | undefined;
  #unwatch: (() => void) | undefined;
  readonly #reclaims: IsolatedBatch<Abandoned>;
  #claiming: Promise<void> | undefined;
  /** Whether a claim failed without a clear answer: it may have been committed all the same. */
  #isUnsure = false;
  /** Whether the store is why leases are not renewed: its disk is full, or the database is away. */
  #isRefused = false;
  /** Attempts that ended here, but whose end the store did not record. None of them is a crash. */
  #unended: Held[] = [];
  #stopping = new AbortController();

  constructor(options: EngineOptions) {
    this.#options = options;
    const { random, leaseMs = LEASE_MS } = options;
    this.#leaseMs = leaseMs;
    const beatMs = leaseMs / 3;
    const report = (err: unknown) => options.log.error({ err }, 'engine.failed');
    this.#reclaims = new IsolatedBatch({
      nameOf: ({ held: { teamId, jobId } }) => ({ teamId, key: jobId }),
      failed: (err, { held }) => options.log.error({ err, ...held }, 'job.not_reclaimed'),
    });
    this.#claims = new Poller({ everyMs: POLL_MS, random, look: () => this.#claim().catch(report) });
    this.#beats = new Poller({ everyMs: beatMs, random, look: () => this.#beatInTime() });
    this.#reaps = new Poller({
      everyMs: beatMs,
      random,
      look: () => this.reap({ nodeId: null }).catch(report),
    });
  }

  /** Reclaims what an earlier process of this node left running, then starts to claim. */
  async start(): Promise<void> {
    if (this.#unwatch !== undefined) return;
    this.#stopping = new AbortController();
    this.#unwatch = this.#options.store.watch((touched) => {
      if (touched.jobs) this.#claims.nudge();
      if (touched.cancels) this.#beats.nudge();
    });
    await this.reap({ nodeId: this.#options.nodeId });
    this.#fencing = setInterval(() => this.#fenceSilent(), this.#leaseMs / 30).unref();
    for (const wake of [this.#beats, this.#reaps, this.#claims]) wake.start();
  }

  /** Stops claiming, kills running attempts and releases their jobs, without using their budgets. Counts the released. */
  async stop(): Promise<{ released: number }> {
    this.#stopping.abort();
    this.#unwatch?.();
    this.#unwatch = undefined;
    clearInterval(this.#fencing);
    await Promise.all([this.#claims.stop(), this.#beats.stop(), this.#reaps.stop()]);
    const running = [...this.#running];
    for (const job of running) this.#interrupt(job, 'release');
    await Promise.all(running.map((job) => job.ended));
    const released = running.length;
    const { store, log } = this.#options;
    try {
      if (released > 0) {
        // Jobs that ended by themselves in the meantime are skipped.
        await store.jobs.release({ held: running.map((job) => job.held) });
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
    await Promise.all([...this.#running].map((job) => job.ended));
  }

  /**
   * Renews the leases of what runs here. Attempts that this node no longer holds are killed, and canceled ones are asked
   * to end. Resolves with whether the store answered; never rejects.
   */
  async beat(): Promise<boolean> {
    // The lease of a killed attempt is not renewed.
    const running = [...this.#running].filter((job) => !job.abort.signal.aborted);
    if (running.length === 0) return true;
    const sentAt = performance.now();
    try {
      const {
        lost,
        canceled,
        late = [],
      } = await this.#options.store.jobs.beat({
        nodeId: this.#options.nodeId,
        held: running.map((job) => job.held),
        leaseMs: this.#leaseMs,
      });
      const isOf = (job: RunningJob) => (held: Held) =>
        held.jobId === job.held.jobId && held.attempt === job.held.attempt;
      for (const job of running) {
        if (late.some(isOf(job))) continue;
        job.renewedAt = Math.max(job.renewedAt, sentAt);
        if (lost.some(isOf(job))) this.#interrupt(job, 'fenced');
        else if (canceled.some(isOf(job))) job.cancel.abort();
      }
      this.#isRefused = false;
      return true;
    } catch (err) {
      this.#isRefused = err instanceof Problem;
      this.#options.log.error({ err, jobs: running.length }, 'engine.beat_failed');
      return false;
    }
  }

  /** Reclaims running jobs of a dead node (`nodeId`), or those whose lease has expired (null). */
  async reap(input: { nodeId: string | null }): Promise<void> {
    await this.#giveBackUnended();
    const found = await this.#options.store.jobs.abandoned(input);
    await this.#reclaims.each(found, (abandoned) => this.#takeBack(abandoned, input));
  }

  async #takeBack(abandoned: Abandoned, input: { nodeId: string | null }): Promise<void> {
    const { store, log } = this.#options;
    if (this.#runsHere(abandoned)) {
      this.#beats.nudge();
      return;
    }
    if (this.#options.renewPush?.(abandoned.held) === true) return;
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

  /** After a heartbeat that fails or hangs the next one follows soon: there is time for several before leases expire. */
  async #beatInTime(): Promise<void> {
    const { signal } = this.#stopping;
    const patience = pause(this.#leaseMs / 6, false, { signal, ref: false }).catch(() => false);
    const answered = await Promise.race([this.beat(), patience]);
    if (!answered) setTimeout(() => this.#beats.nudge(), this.#leaseMs / 30).unref();
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
    if (this.#stopping.signal.aborted || limit <= 0) return;
    if (this.#isUnsure) await this.#giveBackUnanswered();
    await this.#giveBackUnended();
    const sentAt = performance.now();
    const except = this.#options.except?.() ?? [];
    const busy = [...new Set([...this.#running].map(({ held }) => held.teamId))];
    const input = { nodeId, limit, leaseMs: this.#leaseMs, perTeam, except, busy };
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
    const here = new Set([...this.#running].map(({ held }) => `${held.jobId} ${held.attempt}`));
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
    // If this node lost the job and has claimed it again, the old attempt must not run beside the new one.
    for (const old of this.#running) if (old.held.jobId === jobId) this.#interrupt(old, 'fenced');
    const abort = new AbortController();
    const cancel = new AbortController();
    const ended = runJob(this.#options, claimed, { abort: abort.signal, cancel: cancel.signal })
      .then(
        () => undefined,
        // The end could not be written: the job is released when the store is back, or reclaimed without a lease.
        (err) => {
          this.#options.log.error({ err, jobId }, 'job.end_not_written');
          if (err instanceof Problem) this.#unended.push(running.held);
        },
      )
      .finally(() => {
        this.#running.delete(running);
        if (running.isRefused) this.#unended.push(running.held);
        this.#claims.nudge();
      });
    const held = { teamId, jobId, attempt };
    const running: RunningJob = { held, abort, cancel, renewedAt, ended, isRefused: false };
    this.#running.add(running);
  }

  /** Kills attempts whose lease was not renewed for so long that another node may soon take the job. */
  #fenceSilent(): void {
    for (const job of this.#running) {
      const silentMs = performance.now() - job.renewedAt;
      if (job.abort.signal.aborted || silentMs < (2 * this.#leaseMs) / 3) continue;
      this.#options.log.error({ ...job.held, silentMs: Math.round(silentMs) }, 'job.fenced_by_silence');
      job.isRefused = this.#isRefused;
      this.#interrupt(job, 'fenced');
    }
  }

  /** Whether exactly this attempt still runs here. One that was killed counts as ended, however long its end takes. */
  #runsHere({ held }: Abandoned): boolean {
    return [...this.#running].some(
      ({ held: here, abort }) =>
        here.jobId === held.jobId && here.attempt === held.attempt && !abort.signal.aborted,
    );
  }

  #interrupt(job: RunningJob, why: Interruption): void {
    job.abort.abort(why);
  }
}
