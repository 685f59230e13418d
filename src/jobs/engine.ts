/**
 * The engine: claims due jobs up to this node's capacity, keeps their leases, and takes back jobs whose holder is
 * gone. Each running attempt has a lease of 30 s, renewed every 10 s; an attempt whose lease could not be renewed
 * for 20 s is ended here, so that nobody else can take over while it still runs.
 *
 *     claim ──▶ running here ──publish, fail──▶ over
 *                  │    │  └──somebody cancels──▶ asked to end ──▶ endCanceled
 *                  │    └──this node stops──▶ killed ──▶ released
 *                  └──no beat for 20 s, or the beat says: not yours──▶ killed; the row is the reaper's
 *
 * A process that was stopped for a while (SIGSTOP, a sleeping machine) wakes up with leases that are over. What
 * it has silenced for too long it kills; what still runs here is renewed by the next beat, if nobody has taken it.
 */
import { performance } from 'node:perf_hooks';
import { setTimeout as pause } from 'node:timers/promises';
import { Problem } from '../model/error.ts';
import { type Held, LEASE_MS } from '../model/job.ts';
import type { Workflow } from '../model/workflow.ts';
import { Poller } from '../std/poller.ts';
import type { Abandoned, ClaimedJob } from '../store/job-operations.ts';
import { killLeftover, removeLeftoverFiles } from '../workflows/sources/leftover.ts';
import { EachAlone } from './each-alone.ts';
import type { RunJobDeps } from './run-attempt.ts';
import { type Interruption, runJob } from './run-job.ts';

/** A hint wakes the engine at once; this is how long a lost hint may cost. */
const POLL_MS = 1_000;

interface RunningJob {
  held: Held;
  abort: AbortController;
  cancel: AbortController;
  /** When the request was sent that last gave or renewed its lease, by the monotonic clock. */
  renewedAt: number;
  ended: Promise<void>;
  /** Whether it was ended because the store took no beat of it. */
  isRefused: boolean;
}

export interface EngineOptions extends RunJobDeps {
  nodeId: string;
  /** How many jobs this node runs at once. */
  capacity: number;
  /** How many jobs of one team all nodes run at once. */
  perTeam: number;
  /** Workflows whose jobs are for other nodes; none unless told. */
  except?(): readonly { teamId: string; workflowId: string }[];
  /** Whether what would run here is what was applied; asked of each job that was claimed. Yes unless told. */
  runsHere?(workflow: Workflow): Promise<boolean>;
  /** Renews a push that this process holds, and answers whether it does: such a job is not abandoned. */
  renewPush?(held: Held): boolean;
  /** 30 s unless told. A third of it lies between two beats; after two thirds without one attempts are ended. */
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
  readonly #reclaims: EachAlone<Abandoned>;
  #claiming: Promise<void> | undefined;
  /** Whether a claim was not answered: it may have been committed all the same. */
  #isUnsure = false;
  /** Whether it is the store that lets leases run out: a full disk, or a database that is away. */
  #isRefused = false;
  /** Attempts that are over here without the store having taken it. None of them is a crash. */
  #unended: Held[] = [];
  #stopping = new AbortController();

  constructor(options: EngineOptions) {
    this.#options = options;
    const { random, leaseMs = LEASE_MS } = options;
    this.#leaseMs = leaseMs;
    const beatMs = leaseMs / 3;
    const report = (err: unknown) => options.log.error({ err }, 'engine.failed');
    this.#reclaims = new EachAlone({
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

  /** Takes back what an earlier life of this node left running, then begins to claim. */
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

  /** Claims nothing more, ends running attempts and gives their jobs back, which it counts: no budget is used. */
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
        // A job that ended by itself in the meantime is no longer running and is passed over.
        await store.jobs.release({ held: running.map((job) => job.held) });
        log.info({ jobs: released }, 'jobs.released');
      }
      // To the next start they would be what a crash has left.
      if (this.#isUnsure) await this.#giveBackUnanswered();
      await this.#giveBackUnended();
    } catch (error) {
      // Stopping goes on all the same: the next start of this node takes them back.
      log.error({ err: error, jobs: released }, 'jobs.not_released');
    }
    return { released };
  }

  /** Claims what is due and waits until those attempts have ended. For tests. */
  async tick(): Promise<void> {
    await this.#claim();
    await Promise.all([...this.#running].map((job) => job.ended));
  }

  /**
   * Renews the leases of what runs here. Attempts that are no longer ours are killed, and those that somebody
   * canceled are asked to end. Answers whether the store answered; never rejects.
   */
  async beat(): Promise<boolean> {
    // An attempt that was killed is no longer kept: its lease may run out.
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

  /** Takes back running jobs of a dead node (`nodeId`), or those whose lease is over. */
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

  /** One that fails or hangs is followed by the next one soon: there is time for several before leases are over. */
  async #beatInTime(): Promise<void> {
    const { signal } = this.#stopping;
    const patience = pause(this.#leaseMs / 6, false, { signal, ref: false }).catch(() => false);
    const answered = await Promise.race([this.beat(), patience]);
    if (!answered) setTimeout(() => this.#beats.nudge(), this.#leaseMs / 30).unref();
  }

  /** One claim at a time: two would both take the room that there is. */
  #claim(): Promise<void> {
    this.#claiming ??= this.#claimDue().finally(() => {
      this.#claiming = undefined;
    });
    return this.#claiming;
  }

  async #claimDue(): Promise<void> {
    const { store, nodeId, capacity, perTeam } = this.#options;
    const limit = capacity - this.#running.size;
    if (this.#stopping.signal.aborted || limit <= 0) return;
    if (this.#isUnsure) await this.#giveBackUnanswered();
    await this.#giveBackUnended();
    const sentAt = performance.now();
    const except = this.#options.except?.() ?? [];
    const input = { nodeId, limit, leaseMs: this.#leaseMs, perTeam, except };
    const claimed = await store.jobs.claim(input).catch((error: unknown) => {
      this.#isUnsure ||= error instanceof Problem;
      throw error;
    });
    // Each by itself: nobody renews the lease of one that waits until it is known of another whether it runs here.
    await Promise.all(
      claimed.map(async (job) => {
        if (await this.#isForUs(job)) this.#begin(job, sentAt);
        else await this.#leave(job);
      }),
    );
  }

  /** What was claimed without an answer is running by the table and nowhere else: else that would pass for a crash. */
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

  /** Those that somebody else has taken meanwhile are passed over. */
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

  /** What was applied has changed a moment ago, and this node's files have not: the job is for another node. */
  async #leave({ job: { teamId, id: jobId, attempt, workflowId } }: ClaimedJob): Promise<void> {
    const { store, log } = this.#options;
    try {
      await store.jobs.release({ held: [{ teamId, jobId, attempt }] });
      log.info({ workflowId, jobId }, 'job.left_to_others');
    } catch (err) {
      // Nobody renews its lease: it is taken back when that is over.
      log.error({ err, workflowId, jobId }, 'job.not_left');
    }
  }

  #begin(claimed: ClaimedJob, renewedAt: number): void {
    const { teamId, id: jobId, attempt } = claimed.job;
    // Taken from us while we were silent, and now given back: the old attempt must not run beside the new one.
    for (const old of this.#running) if (old.held.jobId === jobId) this.#interrupt(old, 'fenced');
    const abort = new AbortController();
    const cancel = new AbortController();
    const ended = runJob(this.#options, claimed, { abort: abort.signal, cancel: cancel.signal })
      .then(
        () => undefined,
        // The end could not be written: it is given back when the store takes that, or taken back without a lease.
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

  /** Ends what has been silent for so long that its lease may soon be somebody else's. */
  #fenceSilent(): void {
    for (const job of this.#running) {
      const silentMs = performance.now() - job.renewedAt;
      if (job.abort.signal.aborted || silentMs < (2 * this.#leaseMs) / 3) continue;
      this.#options.log.error({ ...job.held, silentMs: Math.round(silentMs) }, 'job.fenced_by_silence');
      job.isRefused = this.#isRefused;
      this.#interrupt(job, 'fenced');
    }
  }

  /** Whether this very attempt still runs here. One that was killed does not, however long its end takes. */
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
