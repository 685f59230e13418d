/**
 * Refuses requests before memory or latency run away: `overloaded`, with `retry-after`. Looks ten times a second at how
 * long work waits for the event loop and for the database, and once a second at the memory; the rules are
 * `model/load-limit.ts`.
 *
 *     request ──▶ admits? ──no──▶ 503, without a line in the log, counted
 *                   └─yes─▶ worked on until its answer is being sent
 */

import { totalmem } from 'node:os';
import { getHeapStatistics } from 'node:v8';
import { admits, FIRST, isShort, nextLimit, type Weight } from '../model/load-limit.ts';
import type { Logger } from '../observe/log.ts';
import type { UnderWay } from './under-way.ts';

const LOOK_MS = 100;
/** Looks between two at the memory. */
const MEMORY_EVERY = 10;
/** Others were refused a moment ago. */
const PRESSED_MS = 1_000;
/** An overload is over when nobody was refused for so long, and is told of so often while it lasts. */
const OVER_MS = 5_000;
const TOLD_EVERY_MS = 60_000;

export class Overload {
  readonly #underWay: UnderWay;
  readonly #waitMs: () => number;
  readonly #usedMemory: () => number;
  readonly #log: Logger;
  readonly #onShed: ((weight: Weight) => void) | undefined;
  #limit = FIRST;
  #late = 0;
  #most = 0;
  #looks = 0;
  #isShortOfMemory = false;
  #shed = 0;
  #toldOf = 0;
  #beganAt: number | undefined;
  #toldAt = 0;
  #shedAt = Number.NEGATIVE_INFINITY;
  #dueAt = 0;
  #timer: NodeJS.Timeout | undefined;

  /**
   * @param input.waitMs how long the call to the database has waited that waits longest
   * @param input.usedMemory the part of the memory that is used, in [0, 1]; this process's unless told
   * @param input.onShed hears of each request that is refused
   */
  constructor(input: {
    underWay: UnderWay;
    waitMs: () => number;
    log: Logger;
    usedMemory?: () => number;
    onShed?: (weight: Weight) => void;
  }) {
    this.#underWay = input.underWay;
    this.#waitMs = input.waitMs;
    this.#log = input.log;
    this.#usedMemory = input.usedMemory ?? usedMemory;
    this.#onShed = input.onShed;
  }

  start(): void {
    if (this.#timer !== undefined) return;
    this.#dueAt = performance.now() + LOOK_MS;
    this.#timer = setInterval(() => this.look(), LOOK_MS).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** How many requests are worked on at most, and how many were refused in all. */
  get state(): { limit: number; working: number; shed: number; isShortOfMemory: boolean } {
    const { working } = this.#underWay;
    return { limit: this.#limit, working, shed: this.#shed, isShortOfMemory: this.#isShortOfMemory };
  }

  /** Whether a request may be worked on. One that may not is counted. */
  admits(weight: Weight): boolean {
    const { working } = this.#underWay;
    if (working > this.#most) this.#most = working;
    const nowMs = performance.now();
    const isPressed = nowMs - this.#shedAt < PRESSED_MS;
    const load = { working, limit: this.#limit, isPressed, isShortOfMemory: this.#isShortOfMemory };
    if (admits(weight, load)) return true;
    this.#shed += 1;
    // What is refused because others were must not keep itself out.
    if (weight !== 'long') this.#shedAt = nowMs;
    this.#beganAt ??= nowMs;
    this.#onShed?.(weight);
    return false;
  }

  /** Takes one look: adjusts how many are worked on, and tells of an overload that begins, lasts or is over. */
  look(): void {
    const nowMs = performance.now();
    const lateMs = Math.max(0, nowMs - this.#dueAt);
    this.#dueAt = nowMs + LOOK_MS;
    this.#underWay.sift();
    if (this.#looks % MEMORY_EVERY === 0) {
      this.#isShortOfMemory = isShort(this.#usedMemory(), this.#isShortOfMemory);
    }
    this.#looks += 1;
    const waitMs = Math.max(lateMs, this.#waitMs());
    const seen = { limit: this.#limit, waitMs, late: this.#late, most: this.#most };
    ({ limit: this.#limit, late: this.#late } = nextLimit(seen));
    this.#most = this.#underWay.working;
    this.#tell(nowMs, waitMs);
  }

  #tell(nowMs: number, waitMs: number): void {
    if (this.#beganAt === undefined) return;
    const isOver = nowMs - this.#shedAt > OVER_MS;
    const isNew = this.#toldOf === 0;
    if (!isOver && !isNew && nowMs - this.#toldAt < TOLD_EVERY_MS) return;
    const { limit, working, isShortOfMemory } = this.state;
    const refused = this.#shed - this.#toldOf;
    const fields = { refused, limit, working, waitMs: Math.round(waitMs), isShortOfMemory };
    if (isOver) {
      this.#log.info({ ...fields, ms: Math.round(nowMs - this.#beganAt) }, 'overload.over');
      this.#beganAt = undefined;
    } else {
      this.#log.warn(fields, 'overload.refuses: more is asked for than this node can answer in time');
      this.#toldAt = nowMs;
    }
    this.#toldOf = this.#shed;
  }
}

/** Of the container or the machine by what is resident, and of V8's heap by its own limit: whichever is more. */
function usedMemory(): number {
  const constrained = process.constrainedMemory();
  const machine = totalmem();
  // Without a limit the kernel tells a number beyond all memory.
  const limit = constrained > 0 && constrained < machine ? constrained : machine;
  const { used_heap_size: used, heap_size_limit: most } = getHeapStatistics();
  return Math.max(process.memoryUsage.rss() / limit, used / most);
}
