/**
 * Where looks into a lane begin. As long as anybody holds an old transaction open, the index over what waits keeps an
 * entry for every delivery that ever did; a look that begins behind the last one does not meet them again.
 *
 * That can be known without a doubt of what has never been tried: it comes with an event, and the events of a team
 * become visible in the order of their sequence. What comes back for another attempt, and replays, are few.
 */
import { performance } from 'node:perf_hooks';
import type { Clock } from '../../std/clock.ts';
import type { LaneName } from '../webhook-operations.ts';
import { keyOf } from './lane-leases.ts';

/** Lanes that are remembered: those of more are looked into from the beginning. */
const MAX_LANES = 10_000;
/** Of these a look at what is known takes those that were looked into last: others may wait for the next at everything. */
const MAX_KNOWN = 1_000;
/** So often nothing is believed: a database that was restored may have gone back. */
const AFRESH_EVERY_MS = 30_000;
/** A look at everything that takes longer rests for this many times as long; until then a look is at what is known. */
const SLOW_MS = 25;
const REST = 20;

/** How the next look is to be taken. */
export interface NextLook {
  /** Nothing is left out, also not what seems to be dated far ahead. */
  afresh: boolean;
  /** Only those lanes, instead of all that wait. */
  known: readonly KnownLane[] | undefined;
}

export interface KnownLane extends LaneName {
  /** No delivery of an event up to this sequence waits for its first attempt. */
  seen: number;
}

/** What one process knows of lanes that it has looked into. */
export class LaneBounds {
  readonly #lanes = new Map<string, KnownLane>();
  readonly #elapsed: Clock;
  #afreshAtMs = Number.NEGATIVE_INFINITY;
  #lastMs = 0;
  #restUntilMs = 0;

  /** @param elapsed milliseconds by a clock that is never set back */
  constructor(elapsed: Clock = () => performance.now()) {
    this.#elapsed = elapsed;
  }

  seen(lane: LaneName): number {
    return this.#lanes.get(keyOf(lane))?.seen ?? 0;
  }

  /** The lane that was noted longest ago makes room. */
  note({ teamId, webhookId }: LaneName, seen = 0): void {
    const key = keyOf({ teamId, webhookId });
    const known = { teamId, webhookId, seen: Math.max(seen, this.#lanes.get(key)?.seen ?? 0) };
    this.#lanes.delete(key);
    this.#lanes.set(key, known);
    if (this.#lanes.size <= MAX_LANES) return;
    for (const first of this.#lanes.keys()) {
      this.#lanes.delete(first);
      return;
    }
  }

  next(nowMs: number): NextLook {
    const elapsedMs = this.#elapsed();
    const afresh = elapsedMs - this.#afreshAtMs >= AFRESH_EVERY_MS || nowMs < this.#lastMs;
    this.#lastMs = nowMs;
    if (afresh) {
      this.#afreshAtMs = elapsedMs;
      for (const [key, lane] of this.#lanes) this.#lanes.set(key, { ...lane, seen: 0 });
      this.#restUntilMs = 0;
    }
    const isResting = elapsedMs < this.#restUntilMs;
    return { afresh, known: isResting ? [...this.#lanes.values()].slice(-MAX_KNOWN) : undefined };
  }

  /** Notes how long a look at everything took; a small index is never what made it slow. */
  async rest(tookMs: number, isLarge: () => Promise<boolean>): Promise<void> {
    if (tookMs < SLOW_MS || !(await isLarge())) return;
    this.#restUntilMs = this.#elapsed() + REST * tookMs;
  }
}
