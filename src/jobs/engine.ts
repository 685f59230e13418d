/**
 * The engine: claims due jobs up to this node's capacity, keeps their leases, and takes back jobs whose holder is
 * gone. Each running attempt has a lease of 30 s, renewed every 10 s; a node that could not renew for 20 s ends
 * its own children, so that nobody else can take over while they still run.
 */
import { performance } from 'node:perf_hooks';
import { BEAT_MS, type Held, LEASE_MS, SELF_FENCE_MS } from '../model/job.ts';
import { Wake } from '../std/wake.ts';
import type { ClaimedJob } from '../store/store.ts';
import { killLeftover, removeLeftoverFiles } from '../workflows/sources/leftover.ts';
import { type Interruption, type RunJobDeps, runJob } from './run-job.ts';

/** A hint wakes the engine at once; this is how long a lost hint may cost. */
const POLL_MS = 1_000;

interface RunningJob {
  held: Held;
  abort: AbortController;
  ended: Promise<void>;
}

export class Engine {
  readonly #deps: RunJobDeps;
  readonly #nodeId: string;
  readonly #capacity: number;
  readonly #running = new Set<RunningJob>();
  readonly #wake: Wake;
  #timers: NodeJS.Timeout[] = [];
  #unwatch: (() => void) | undefined;
  #lastBeat = 0;
  #claiming: Promise<void> | undefined;
  #stopping = false;

  /** @param options.capacity how many jobs this node runs at once */
  constructor(options: RunJobDeps & { nodeId: string; capacity: number }) {
    this.#deps = options;
    this.#nodeId = options.nodeId;
    this.#capacity = options.capacity;
    this.#wake = new Wake({
      everyMs: POLL_MS,
      random: options.random,
      look: () => this.#claim().catch((error) => this.#report(error)),
    });
  }

  /** Takes back what an earlier life of this node left running, then begins to claim. */
  async start(): Promise<void> {
    if (this.#timers.length > 0) return;
    this.#stopping = false;
    await this.reap({ nodeId: this.#nodeId });
    this.#lastBeat = performance.now();
    this.#timers = [
      setInterval(() => this.beat(), BEAT_MS),
      setInterval(() => this.reap({ nodeId: null }).catch((error) => this.#report(error)), BEAT_MS),
    ];
    for (const timer of this.#timers) timer.unref();
    this.#unwatch = this.#deps.store.watch((touched) => {
      if (touched.jobs) this.#wake.nudge();
    });
    this.#wake.start();
  }

  /** Claims nothing more, ends running attempts and gives their jobs back: no budget is used. */
  async stop(): Promise<void> {
    this.#stopping = true;
    for (const timer of this.#timers) clearInterval(timer);
    this.#timers = [];
    this.#unwatch?.();
    await this.#wake.stop();
    const running = [...this.#running];
    for (const job of running) this.#interrupt(job, 'release');
    await Promise.all(running.map((job) => job.ended));
    if (running.length === 0) return;
    const { store, log } = this.#deps;
    try {
      // A job that ended by itself in the meantime is no longer running and is passed over.
      await store.jobs.release({ held: running.map((job) => job.held) });
      log.info({ jobs: running.length }, 'jobs.released');
    } catch (error) {
      // Stopping goes on all the same: the next start of this node takes them back.
      log.error({ err: error, jobs: running.length }, 'jobs.not_released');
    }
  }

  /** Claims what is due and waits until those attempts have ended. For tests. */
  async tick(): Promise<void> {
    await this.#claim();
    await Promise.all([...this.#running].map((job) => job.ended));
  }

  /** Renews the leases of what runs here. Attempts that are no longer ours are ended. */
  async beat(): Promise<void> {
    // An attempt that is being ended has its successor in the same list, and the answer names jobs.
    const running = [...this.#running].filter((job) => !job.abort.signal.aborted);
    if (running.length === 0) {
      this.#lastBeat = performance.now();
      return;
    }
    try {
      const sentAt = performance.now();
      const { lost } = await this.#deps.store.jobs.beat({
        nodeId: this.#nodeId,
        held: running.map((job) => job.held),
        leaseMs: LEASE_MS,
      });
      this.#lastBeat = sentAt;
      for (const job of running) {
        if (lost.includes(job.held.jobId)) this.#interrupt(job, 'fenced');
      }
    } catch (error) {
      const silentMs = performance.now() - this.#lastBeat;
      this.#deps.log.error({ err: error, silentMs: Math.round(silentMs) }, 'engine.beat_failed');
      if (silentMs >= SELF_FENCE_MS) for (const job of running) this.#interrupt(job, 'fenced');
    }
  }

  /** Takes back running jobs of a dead node (`nodeId`), or those whose lease is over. */
  async reap(input: { nodeId: string | null }): Promise<void> {
    const { store, log } = this.#deps;
    for (const abandoned of await store.jobs.abandoned(input)) {
      if (this.#attemptsOf(abandoned.held.jobId).length > 0) continue;
      const killed = abandoned.process !== null && (await killLeftover(abandoned.process));
      await removeLeftoverFiles(abandoned.held);
      const job = await store.jobs.reclaim({
        held: abandoned.held,
        error: 'The process that ran this job ended without a word',
      });
      log.warn(
        { workflowId: abandoned.workflowId, ...abandoned.held, killed, state: job?.state ?? 'taken' },
        'job.reclaimed',
      );
    }
  }

  /** One claim at a time: two would both take the room that there is. */
  #claim(): Promise<void> {
    this.#claiming ??= this.#claimDue().finally(() => {
      this.#claiming = undefined;
    });
    return this.#claiming;
  }

  async #claimDue(): Promise<void> {
    const limit = this.#capacity - this.#running.size;
    if (this.#stopping || limit <= 0) return;
    const claimed = await this.#deps.store.jobs.claim({ nodeId: this.#nodeId, limit, leaseMs: LEASE_MS });
    for (const job of claimed) this.#begin(job);
  }

  #begin(claimed: ClaimedJob): void {
    const { job } = claimed;
    // Taken from us while we were silent, and now given back: the old attempt must not run beside the new one.
    for (const old of this.#attemptsOf(job.id)) this.#interrupt(old, 'fenced');
    const abort = new AbortController();
    const ended = runJob(this.#deps, claimed, abort.signal)
      .then(
        () => undefined,
        // The end could not be written: the lease runs out and the job is taken back.
        (error) => this.#deps.log.error({ err: error, jobId: job.id }, 'job.end_not_written'),
      )
      .finally(() => {
        this.#running.delete(running);
        this.#wake.nudge();
      });
    const running = { held: { teamId: job.teamId, jobId: job.id, attempt: job.attempt }, abort, ended };
    this.#running.add(running);
  }

  #attemptsOf(jobId: string): RunningJob[] {
    return [...this.#running].filter(({ held }) => held.jobId === jobId);
  }

  #interrupt(job: RunningJob, why: Interruption): void {
    job.abort.abort(why);
  }

  #report(error: unknown): void {
    this.#deps.log.error({ err: error }, 'engine.failed');
  }
}
