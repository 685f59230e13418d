/** Writes down what attempts came to: whatever is done at the moment goes over as one transaction. */
import { setTimeout as pause } from 'node:timers/promises';
import { Problem } from '../model/error.ts';
import type { Logger } from '../observe/log.ts';
import { fullJitterMs } from '../std/backoff.ts';
import type { DeliveryOperations, Settlement } from '../store/webhook-operations.ts';

const MAX_BATCH = 256;
const PAUSE = { baseMs: 250, maxMs: 10_000 };
/** How often a write is tried that fails for another reason than a store that is away, or while closing. */
const MAX_TRIES = 3;

/**
 * Holds what is to be settled until the store has taken it. A store that is away is tried until it is back,
 * or, once `close` was called, a few times only: what then stays unwritten is still `waiting` in the table and
 * is sent again after the next start, with the same `webhook-id`.
 */
export class Settler {
  readonly #deliveries: Pick<DeliveryOperations, 'settle'>;
  readonly #log: Logger;
  readonly #random: () => number;
  readonly #onSettled: (settlement: Settlement) => void;
  readonly #onGivenUp: (settlement: Settlement) => void;
  #waiting: Settlement[] = [];
  #writing = 0;
  #loop: Promise<void> | undefined;
  #closing = new AbortController();

  /** @param input.onSettled called for each settlement after its commit; `onGivenUp` when it stays unwritten */
  constructor(input: {
    deliveries: Pick<DeliveryOperations, 'settle'>;
    log: Logger;
    random: () => number;
    onSettled: (settlement: Settlement) => void;
    onGivenUp: (settlement: Settlement) => void;
  }) {
    this.#deliveries = input.deliveries;
    this.#log = input.log;
    this.#random = input.random;
    this.#onSettled = input.onSettled;
    this.#onGivenUp = input.onGivenUp;
  }

  /** How many attempts are not yet written down. */
  get size(): number {
    return this.#waiting.length + this.#writing;
  }

  /** The caller bounds how much is waiting: see `size`. */
  add(settlement: Settlement): void {
    this.#waiting.push(settlement);
    this.#loop ??= this.#run();
  }

  /** Resolves when nothing is waiting any more. */
  async idle(): Promise<void> {
    while (this.#loop !== undefined) await this.#loop;
  }

  /** Ends the pause under way and makes the next ones short; resolves when all is written or given up. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.idle();
    this.#closing = new AbortController();
  }

  async #run(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, MAX_BATCH);
      this.#writing = batch.length;
      await this.#write(batch);
      this.#writing = 0;
    }
    this.#loop = undefined;
  }

  async #write(batch: readonly Settlement[]): Promise<void> {
    for (let tries = 1; ; tries += 1) {
      try {
        await this.#deliveries.settle({ settlements: batch });
        break;
      } catch (error) {
        const isAway = error instanceof Problem;
        // One settlement that cannot be written must not keep back the others of its batch.
        if (!isAway && batch.length > 1) {
          for (const settlement of batch) await this.#write([settlement]);
          return;
        }
        const fields = { err: error, settlements: batch.length, tries };
        if (tries >= MAX_TRIES && (!isAway || this.#closing.signal.aborted)) {
          this.#log.error(fields, 'delivery.unsettled');
          for (const settlement of batch) this.#onGivenUp(settlement);
          return;
        }
        this.#log.warn(fields, 'delivery.settle_failed');
        await this.#pause(tries);
      }
    }
    for (const settlement of batch) this.#onSettled(settlement);
  }

  async #pause(failures: number): Promise<void> {
    const { signal } = this.#closing;
    if (signal.aborted) return pause(PAUSE.baseMs);
    const ms = fullJitterMs({ failures, ...PAUSE, random: this.#random() });
    await pause(ms, undefined, { signal }).catch(() => undefined);
  }
}
