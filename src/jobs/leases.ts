/**
 * The leases of the attempts that this process holds: those of runs and of pushes. Each lasts 30 s and is renewed every
 * 10 s by a heartbeat for all of them; an attempt whose lease could not be renewed for 20 s is aborted here, so that no
 * other node takes over while it still runs.
 *
 * A process that was suspended for a while (SIGSTOP, a sleeping machine) resumes with expired leases. It aborts attempts
 * that were not renewed for too long; the others are renewed by the next heartbeat if no other node has taken them.
 */
import { performance } from 'node:perf_hooks';
import { Problem } from '../model/error.ts';
import { type AttemptLease, LEASE_MS } from '../model/job.ts';
import type { Logger } from '../observe/log.ts';
import type { Store } from '../store/store.ts';
import type { Interruption } from './attempt.ts';

const SOON_MS = 10;

export interface LeaseOptions {
  store: Store;
  log: Logger;
  nodeId: string;
  /** 30 s by default. Heartbeats come every third of it; after two thirds without one, attempts are aborted. */
  leaseMs?: number;
}

export class Lease {
  readonly held: AttemptLease;
  readonly #abort = new AbortController();
  readonly #cancel = new AbortController();
  /** Whether it was aborted because the store failed to renew it. */
  isRefused = false;
  /** When the request that last granted or renewed it was sent, by the monotonic clock. */
  renewedAt: number;

  constructor(held: AttemptLease, renewedAt: number) {
    this.held = held;
    this.renewedAt = renewedAt;
  }

  /** `abort` ends the attempt at once, its reason is an `Interruption`; `cancel` asks it to end. */
  get signals(): { abort: AbortSignal; cancel: AbortSignal } {
    return { abort: this.#abort.signal, cancel: this.#cancel.signal };
  }

  /** An aborted attempt counts as ended, however long its end takes. */
  get isAborted(): boolean {
    return this.#abort.signal.aborted;
  }

  abort(why: Interruption): void {
    this.#abort.abort(why);
  }

  cancel(): void {
    this.#cancel.abort();
  }

  is({ jobId, attempt }: AttemptLease): boolean {
    return this.held.jobId === jobId && this.held.attempt === attempt;
  }
}

export class Leases {
  readonly leaseMs: number;
  readonly #options: LeaseOptions;
  readonly #held = new Set<Lease>();
  /** Whether the store is why leases are not renewed: its disk is full, or the database is away. */
  #isRefused = false;
  #stopKeeping: (() => void) | undefined;
  #soon: NodeJS.Timeout | undefined;

  constructor(options: LeaseOptions) {
    this.#options = options;
    this.leaseMs = options.leaseMs ?? LEASE_MS;
  }

  /** Keeps a lease from now on. @param renewedAt when the request that granted it was sent */
  hold(held: AttemptLease, renewedAt: number): Lease {
    const lease = new Lease(held, renewedAt);
    // If this node lost the job and has it again, the old attempt must not run beside the new one.
    for (const old of this.#held) if (old.held.jobId === held.jobId) old.abort('fenced');
    this.#held.add(lease);
    this.#stopKeeping ??= this.#keep();
    return lease;
  }

  /** The attempt is over. */
  release(lease: Lease): void {
    this.#held.delete(lease);
    if (this.#held.size > 0) return;
    this.#stopKeeping?.();
    this.#stopKeeping = undefined;
  }

  /** Whether exactly this attempt runs here; then its lease is renewed at once. It may only seem expired after a clock jump. */
  renew(held: AttemptLease): boolean {
    const isHere = [...this.#held].some((lease) => lease.is(held) && !lease.isAborted);
    if (isHere) this.#beatSoon();
    return isHere;
  }

  /**
   * Renews all leases. Attempts that this node no longer holds are aborted, and canceled ones are asked to end. Resolves
   * with whether the store answered; never rejects.
   */
  async beat(): Promise<boolean> {
    const { store, nodeId, log } = this.#options;
    // The lease of an aborted attempt is not renewed.
    const leases = [...this.#held].filter((lease) => !lease.isAborted);
    if (leases.length === 0) return true;
    const sentAt = performance.now();
    try {
      const held = leases.map((lease) => lease.held);
      const { lost, canceled, late = [] } = await store.jobs.beat({ nodeId, held, leaseMs: this.leaseMs });
      for (const lease of leases) {
        const isNamed = (found: readonly AttemptLease[]) => found.some((one) => lease.is(one));
        if (isNamed(late)) continue;
        lease.renewedAt = Math.max(lease.renewedAt, sentAt);
        if (isNamed(lost)) lease.abort('fenced');
        else if (isNamed(canceled)) lease.cancel();
      }
      this.#isRefused = false;
      return true;
    } catch (err) {
      this.#isRefused = err instanceof Problem;
      log.error({ err, jobs: leases.length }, 'engine.beat_failed');
      return false;
    }
  }

  /** Keeps what is held until the returned function is called. */
  #keep(): () => void {
    // The answer to a heartbeat says which jobs are to be canceled.
    const unwatch = this.#options.store.watch(({ cancels }) => {
      if (cancels) this.#beatSoon();
    });
    const beating = setInterval(() => void this.#beatInTime(), this.leaseMs / 3).unref();
    const fencing = setInterval(() => this.#fenceSilent(), this.leaseMs / 30).unref();
    return () => {
      unwatch();
      clearInterval(beating);
      clearInterval(fencing);
    };
  }

  /** One heartbeat hears of all the cancels of this moment. */
  #beatSoon(ms = SOON_MS): void {
    this.#soon ??= setTimeout(() => {
      this.#soon = undefined;
      void this.#beatInTime();
    }, ms).unref();
  }

  /** After a heartbeat that fails or hangs the next one follows soon: there is time for several before leases expire. */
  async #beatInTime(): Promise<void> {
    const late = Promise.withResolvers<false>();
    const patience = setTimeout(late.resolve, this.leaseMs / 6, false).unref();
    const answered = await Promise.race([this.beat(), late.promise]);
    clearTimeout(patience);
    if (!answered) this.#beatSoon(this.leaseMs / 30);
  }

  /** Aborts attempts whose lease was not renewed for so long that another node may soon take the job. */
  #fenceSilent(): void {
    for (const lease of this.#held) {
      const silentMs = performance.now() - lease.renewedAt;
      if (lease.isAborted || silentMs < (2 * this.leaseMs) / 3) continue;
      this.#options.log.error({ ...lease.held, silentMs: Math.round(silentMs) }, 'job.fenced_by_silence');
      lease.isRefused = this.#isRefused;
      lease.abort('fenced');
    }
  }
}
