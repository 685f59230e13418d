/**
 * The leases of the attempts (runs and pushes) that this process holds. A lease lasts 30 s, and one heartbeat renews all
 * of them every 10 s. An attempt whose lease could not be renewed for 20 s is aborted, so that it has ended before another
 * node takes over the job.
 *
 * A process that was suspended for a while (SIGSTOP, a sleeping machine) resumes with expired leases. It aborts attempts
 * whose last renewal is too long ago; the next heartbeat renews the others if no other node has taken them.
 */
import { performance } from 'node:perf_hooks';
import { Problem } from '../model/error.ts';
import { type AttemptLease, LEASE_MS } from '../model/job.ts';
import type { Logger } from '../observe/log.ts';
import { within } from '../std/clock.ts';
import type { Store } from '../store/store.ts';
import type { Interruption } from './attempt.ts';

const SOON_MS = 10;

export interface LeaseOptions {
  store: Store;
  log: Logger;
  nodeId: string;
  /**
   * How long a lease lasts (default: 30 s). A heartbeat is sent every third of this time. An attempt is aborted when
   * its lease was not renewed for two thirds of this time.
   */
  leaseMs?: number;
}

export class Lease {
  readonly held: AttemptLease;
  readonly #abort = new AbortController();
  readonly #cancel = new AbortController();
  /** Whether the attempt was aborted because the store could not renew the lease. */
  isRefused = false;
  /** When the last successful claim or renewal of the lease was sent, on the monotonic clock, in ms. */
  renewedAt: number;

  constructor(held: AttemptLease, renewedAt: number) {
    this.held = held;
    this.renewedAt = renewedAt;
  }

  /** See `RunSignals`. */
  get signals(): { abort: AbortSignal; cancel: AbortSignal } {
    return { abort: this.#abort.signal, cancel: this.#cancel.signal };
  }

  /**
   * Whether the attempt was aborted. An aborted attempt counts as ended, even while its process is still being killed.
   */
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
  /**
   * Whether the last heartbeat failed because of the store, for example because its disk is full or the database is
   * unavailable.
   */
  #isRefused = false;
  #stopKeeping: (() => void) | undefined;
  #soon: NodeJS.Timeout | undefined;

  constructor(options: LeaseOptions) {
    this.#options = options;
    this.leaseMs = options.leaseMs ?? LEASE_MS;
  }

  /**
   * Starts renewing a lease.
   *
   * @param renewedAt when the claim that granted the lease was sent
   */
  hold(held: AttemptLease, renewedAt: number): Lease {
    const lease = new Lease(held, renewedAt);
    // If this node has lost a job and claimed it again, the old attempt must not run alongside the new one.
    for (const old of this.#held) if (old.held.jobId === held.jobId) old.abort('fenced');
    this.#held.add(lease);
    this.#stopKeeping ??= this.#keep();
    return lease;
  }

  /** Stops renewing a lease, because its attempt has ended. */
  release(lease: Lease): void {
    this.#held.delete(lease);
    if (this.#held.size > 0) return;
    this.#stopKeeping?.();
    this.#stopKeeping = undefined;
  }

  /**
   * If the attempt runs in this process, renews its lease and returns true. The lease of such an attempt may look
   * expired only because a clock has jumped.
   */
  renew(held: AttemptLease): boolean {
    const isHere = [...this.#held].some((lease) => lease.is(held) && !lease.isAborted);
    if (isHere) this.#beatSoon();
    return isHere;
  }

  /**
   * Renews the leases of all attempts. Aborts each attempt whose lease this node has lost, and asks the attempts of
   * canceled jobs to stop. Resolves with whether the store responded. Never rejects.
   */
  async beat(): Promise<boolean> {
    const { store, nodeId, log } = this.#options;
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

  /** Sends heartbeats until the returned function is called. */
  #keep(): () => void {
    // The store reports that a job was canceled. The response to the next heartbeat names the job.
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

  /** Sends a heartbeat after a short delay, so that one heartbeat covers several cancellations. */
  #beatSoon(ms = SOON_MS): void {
    this.#soon ??= setTimeout(() => {
      this.#soon = undefined;
      void this.#beatInTime();
    }, ms).unref();
  }

  /**
   * Sends a heartbeat. If the heartbeat fails or hangs, the next one follows soon, so that several are tried before the
   * leases expire.
   */
  async #beatInTime(): Promise<void> {
    const isRenewed = await within(this.leaseMs / 6, this.beat(), () => false);
    if (!isRenewed) this.#beatSoon(this.leaseMs / 30);
  }

  /** Aborts each attempt whose last renewal was so long ago that another node may soon take over its job. */
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
