/** Calls a function at intervals, and at once when nudged; never twice at the same time. */

/** A nudge is answered after this long at most. */
const MAX_REST_MS = 100;

/**
 * Looks at once when started, then every `everyMs` (± 20 %, so that several nodes do not poll in step). After a nudge
 * it looks as soon as it has rested for as long as the last look took, so that a flood of nudges takes at most half of
 * the time. Its timers do not keep the process alive.
 */
export class Poller {
  readonly #everyMs: number;
  readonly #random: () => number;
  readonly #look: () => Promise<void>;
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> | undefined;
  #started = false;
  #nudged = false;
  #restMs = 0;

  /** @param look must not reject */
  constructor(input: { everyMs: number; random: () => number; look: () => Promise<void> }) {
    this.#everyMs = input.everyMs;
    this.#random = input.random;
    this.#look = input.look;
  }

  start(): void {
    if (this.#started) return;
    this.#started = true;
    this.#schedule(0);
  }

  /** Resolves when the look under way, if any, has ended. None follows. */
  async stop(): Promise<void> {
    this.#started = false;
    clearTimeout(this.#timer);
    await this.#looking;
  }

  /** Makes it look soon. Any number of nudges during a look are one more look after it. */
  nudge(): void {
    if (this.#nudged || !this.#started) return;
    this.#nudged = true;
    if (this.#looking === undefined) this.#schedule(this.#restMs);
  }

  #schedule(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#run(), ms);
    this.#timer.unref();
  }

  #run(): void {
    if (this.#looking !== undefined) return;
    this.#nudged = false;
    const startMs = performance.now();
    this.#looking = this.#look().finally(() => {
      this.#looking = undefined;
      this.#restMs = Math.min(MAX_REST_MS, performance.now() - startMs);
      if (!this.#started) return;
      this.#schedule(this.#nudged ? this.#restMs : this.#everyMs * (0.8 + 0.4 * this.#random()));
    });
  }
}
