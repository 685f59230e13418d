/** Settles attempts: writes their results to the store, in batches of attempts that ended at about the same time. */
import { setTimeout as pause } from 'node:timers/promises';
import { Problem } from '../model/error.ts';
import type { Logger } from '../observe/log.ts';
import { fullJitterMs } from '../std/backoff.ts';
import type { Clock } from '../std/clock.ts';
import type { Settlement } from '../store/operations/settle.ts';
import type { Store } from '../store/store.ts';

const MAX_BATCH = 256;
/**
 * A transaction costs as much as 20 settlements: on SQLite, each settlement takes 27 µs in a batch of 16, 17 µs in a
 * batch of 64, and 14 µs in a batch of 256. If at least `STREAM` settlements arrived during the previous write, or while
 * another batch is being written, the settler waits until `WORTH_WRITING` settlements are waiting, or as many as there
 * are requests in flight, which a crash would repeat anyway. It waits up to `GATHER_MS` for each `WORTH_WRITING`.
 * With many lanes, larger batches also write fewer pages, because each lane has its own pages of the indexes.
 */
const STREAM = 8;
const WORTH_WRITING = 64;
const GATHER_MS = 5;
/**
 * Settlements that share a commit with other calls cost little even in small batches, so they are gathered for this time
 * instead: a crash repeats everything that still waits. Each turn of a busy event loop takes longer than that.
 */
const SHARED_GATHER_MS = 1;
/**
 * Maximum number of batches that are written at the same time, unless they share commits. If the next batch waited
 * until the event loop learned that the previous one is written, twice as many deliveries would be repeated after a
 * crash.
 */
const MAX_WRITES = 2;
const PAUSE = { baseMs: 250, maxMs: 10_000 };
/** Maximum number of tries to write a batch while closing, or after an error other than an unavailable store. */
const MAX_TRIES = 3;
/**
 * Maximum number of webhooks with a locked row that are retried at the same time. Each of them occupies a connection
 * while it waits for the lock.
 */
const MAX_ASIDE = 4;

/** The settlements of a webhook whose row is locked by another transaction. */
interface Aside {
  settlements: Settlement[];
  tries: number;
}

/**
 * Keeps settlements until the store has written them. While the store is unavailable, the settler retries:
 * indefinitely until `close` is called, then a few times. Deliveries whose settlements stay unwritten are still
 * `waiting` in the table, and are sent again after the next start with the same `webhook-id`. A batch that fails
 * because a row is locked is split by webhook: each webhook is retried separately, and later batches do not wait for
 * it.
 */
export class SettlementWriter {
  readonly #deliveries: Pick<Store['deliveries'], 'settle'>;
  readonly #log: Logger;
  readonly #random: () => number;
  readonly #gatherMs: number;
  readonly #inFlight: () => number;
  readonly #sharesCommit: () => boolean;
  readonly #elapsed: Clock;
  readonly #onSettled: (settlement: Settlement) => void;
  readonly #onGivenUp: (settlement: Settlement) => void;
  #waiting: Settlement[] = [];
  /** Whether a lane is waiting for one of the settlements. */
  #isAwaited = false;
  #gathered: (() => void) | undefined;
  #writing = 0;
  /** When the last batch was started, by the monotonic clock. */
  #startedAt = 0;
  readonly #writes = new Set<Promise<void>>();
  readonly #aside = new Map<string, Aside>();
  /** Keys of `#aside` that no loop is processing at the moment. */
  readonly #asideKeys: string[] = [];
  readonly #asideLoops = new Set<Promise<void>>();
  #loop: Promise<void> | undefined;
  #closing = new AbortController();

  /**
   * @param input.gatherMs how long to wait for 64 settlements; default: 5 ms
   * @param input.inFlight returns the number of requests in flight, without slow ones
   * @param input.sharesCommit see `Store.sharesCommit`
   * @param input.elapsed a monotonic clock, in milliseconds
   * @param input.onSettled called for each settlement after its commit
   * @param input.onGivenUp called for each settlement that stays unwritten
   */
  constructor(input: {
    deliveries: Pick<Store['deliveries'], 'settle'>;
    log: Logger;
    random: () => number;
    gatherMs?: number;
    inFlight: () => number;
    sharesCommit: () => boolean;
    elapsed: Clock;
    onSettled: (settlement: Settlement) => void;
    onGivenUp: (settlement: Settlement) => void;
  }) {
    this.#deliveries = input.deliveries;
    this.#log = input.log;
    this.#random = input.random;
    this.#gatherMs = input.gatherMs ?? GATHER_MS;
    this.#inFlight = input.inFlight;
    this.#sharesCommit = input.sharesCommit;
    this.#elapsed = input.elapsed;
    this.#onSettled = input.onSettled;
    this.#onGivenUp = input.onGivenUp;
  }

  /** Number of unsettled attempts. */
  get size(): number {
    let size = this.#waiting.length + this.#writing;
    for (const { settlements } of this.#aside.values()) size += settlements.length;
    return size;
  }

  /**
   * Adds a settlement. The caller limits the number of waiting settlements: see `size`.
   *
   * @param isAwaited whether the lane sends nothing until this settlement is written: if so, it is written without
   *   waiting for more settlements
   */
  add(settlement: Settlement, isAwaited = false): void {
    this.#waiting.push(settlement);
    this.#isAwaited ||= isAwaited;
    if (this.#gathered !== undefined && this.#isEnough) this.#gathered();
    this.#loop ??= this.#run();
  }

  /** Resolves when nothing is left to write. */
  async idle(): Promise<void> {
    while (this.#loop !== undefined || this.#writes.size > 0 || this.#asideLoops.size > 0) {
      await Promise.all([this.#loop, ...this.#writes, ...this.#asideLoops]);
    }
  }

  /** Shortens all pauses. Resolves when every settlement is written or given up. */
  async close(): Promise<void> {
    this.#closing.abort();
    this.#gathered?.();
    await this.idle();
    this.#closing = new AbortController();
  }

  async #run(): Promise<void> {
    // The caller must store the promise of this loop before the loop ends.
    await null;
    for (let isStream = false; this.#waiting.length > 0; isStream = this.#waiting.length >= STREAM) {
      const isAlone = !isStream && this.#writes.size === 0;
      if (!isAlone && !this.#isEnough) await this.#gather();
      this.#isAwaited = false;
      const batch = this.#waiting.splice(0, MAX_BATCH).filter((settlement) => !this.#joinAside(settlement));
      if (batch.length === 0) continue;
      const isPlain = !batch.some(changesWebhook);
      if (!isPlain) await Promise.all(this.#writes);
      this.#begin(batch);
      if (!isPlain) await Promise.all(this.#writes);
      else if (this.#writes.size >= MAX_WRITES && !this.#sharesCommit()) await Promise.race(this.#writes);
    }
    this.#loop = undefined;
  }

  #begin(batch: Settlement[]): void {
    this.#writing += batch.length;
    this.#startedAt = this.#elapsed();
    const write = this.#write(batch).then((outcome) => {
      this.#writing -= batch.length;
      this.#writes.delete(write);
      if (outcome === 'busy') this.#setAside(batch);
    });
    this.#writes.add(write);
  }

  /** Whether to write without waiting for more settlements. */
  get #isEnough(): boolean {
    if (this.#isAwaited || this.#waiting.length >= this.#worthWriting) return true;
    return this.#elapsed() - this.#startedAt >= SHARED_GATHER_MS && this.#sharesCommit();
  }

  get #worthWriting(): number {
    return Math.min(MAX_BATCH, Math.max(WORTH_WRITING, this.#inFlight()));
  }

  #gather(): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        this.#gathered = undefined;
        resolve();
      };
      const ms = this.#sharesCommit()
        ? SHARED_GATHER_MS
        : (this.#gatherMs * this.#worthWriting) / WORTH_WRITING;
      const timer = setTimeout(done, ms);
      this.#gathered = done;
    });
  }

  /** Resolves with `busy` if another transaction has locked a row; then nothing was written. */
  async #write(batch: readonly Settlement[]): Promise<'over' | 'busy'> {
    for (let tries = 1; ; tries += 1) {
      try {
        await this.#deliveries.settle({ settlements: batch });
        break;
      } catch (error) {
        const isAway = error instanceof Problem;
        if (isAway && error.code === 'database_busy') return 'busy';
        // The settlements are written one at a time, so that a settlement that cannot be written does not block the
        // others.
        if (!isAway && batch.length > 1) {
          for (const settlement of batch) {
            if ((await this.#write([settlement])) === 'busy') this.#setAside([settlement]);
          }
          return 'over';
        }
        const fields = { err: error, settlements: batch.length, tries };
        if (tries >= MAX_TRIES && (!isAway || this.#closing.signal.aborted)) {
          this.#log.error(fields, 'delivery.unsettled');
          for (const settlement of batch) this.#onGivenUp(settlement);
          return 'over';
        }
        this.#log.warn(fields, 'delivery.settle_failed');
        await this.#pause(tries);
      }
    }
    for (const settlement of batch) this.#onSettled(settlement);
    return 'over';
  }

  #setAside(batch: readonly Settlement[]): void {
    for (const settlement of batch) {
      if (this.#joinAside(settlement)) continue;
      this.#aside.set(asideKey(settlement), { settlements: [settlement], tries: 0 });
      this.#asideKeys.push(asideKey(settlement));
    }
    while (this.#asideLoops.size < Math.min(MAX_ASIDE, this.#aside.size)) {
      const loop: Promise<void> = this.#runAside().finally(() => this.#asideLoops.delete(loop));
      this.#asideLoops.add(loop);
    }
  }

  #joinAside(settlement: Settlement): boolean {
    const others = this.#aside.get(asideKey(settlement));
    others?.settlements.push(settlement);
    return others !== undefined;
  }

  /** Retries the webhooks that were set aside, in turn. Most settlements of a busy batch can be written immediately. */
  async #runAside(): Promise<void> {
    for (;;) {
      const key = this.#asideKeys.shift();
      const aside = key === undefined ? undefined : this.#aside.get(key);
      if (key === undefined || aside === undefined) return;
      const batch = aside.settlements.slice(0, MAX_BATCH);
      const isBusy = (await this.#write(batch)) === 'busy';
      aside.tries = isBusy ? aside.tries + 1 : 0;
      const isGivenUp = isBusy && aside.tries >= MAX_TRIES && this.#closing.signal.aborted;
      if (isGivenUp) for (const settlement of batch) this.#onGivenUp(settlement);
      if (!isBusy || isGivenUp) aside.settlements.splice(0, batch.length);
      if (aside.settlements.length === 0) {
        this.#aside.delete(key);
        continue;
      }
      if (isBusy) {
        this.#log.warn({ settlements: batch.length, tries: aside.tries }, 'delivery.settle_busy');
        await this.#pause(aside.tries);
      }
      this.#asideKeys.push(key);
    }
  }

  async #pause(failures: number): Promise<void> {
    const { signal } = this.#closing;
    if (signal.aborted) return pause(PAUSE.baseMs);
    const ms = fullJitterMs({ failures, ...PAUSE, random: this.#random() });
    await pause(ms, undefined, { signal }).catch(() => undefined);
  }
}

/** Batches that change webhooks are written one at a time, in order, because the last result counts. */
function changesWebhook({ health, breaker, next }: Settlement): boolean {
  return health !== null || breaker !== undefined || next.state === 'canceled';
}

function asideKey({ teamId, webhookId }: Settlement): string {
  return `${teamId} ${webhookId}`;
}
