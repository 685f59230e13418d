/**
 * Load shedding: refuses requests, with `retry-after`, before memory or latency run away. Ten times a second it measures
 * how long work waits for the event loop and for the database, and once a second the memory; `model/load-limit.ts` has
 * the rules.
 *
 *     request ──▶ may its team have one more? ──no──▶ 503, counted but not logged
 *                   └─yes─▶ counts as work, except while its body arrives, until its answer is being sent
 */
import type { ServerResponse } from 'node:http';
import { totalmem } from 'node:os';
import { getHeapStatistics } from 'node:v8';
import { admits, INITIAL_LIMIT, isShort, nextLimit, placesFor, type Weight } from '../../model/load-limit.ts';
import type { Logger } from '../../observe/log.ts';
import type { InFlight } from './in-flight.ts';

const LOOK_MS = 100;
/** The memory is read at every tenth look. */
const MEMORY_EVERY = 10;
/** How long after a refusal the node counts as under pressure. */
const PRESSED_MS = 1_000;
/** An overload is over when nothing was refused for this long. While it lasts it is logged once a minute. */
const OVER_MS = 5_000;
const LOG_EVERY_MS = 60_000;

/** Jitter, so that clients that were refused together do not come back together. */
const MAX_RETRY_AFTER_S = 3;

/** Seconds, for the header `retry-after`. */
export function retryAfter(): string {
  return String(1 + Math.floor(Math.random() * MAX_RETRY_AFTER_S));
}

export class Overload {
  readonly #inFlight: InFlight;
  readonly #waitMs: () => number;
  readonly #usedMemory: () => number;
  readonly #log: Logger;
  readonly #onShed: ((weight: Weight) => void) | undefined;
  #limit = INITIAL_LIMIT;
  #late = 0;
  #most = 0;
  #looks = 0;
  #isShortOfMemory = false;
  #shed = 0;
  #loggedShed = 0;
  #beganAt: number | undefined;
  #loggedAt = 0;
  #shedAt = Number.NEGATIVE_INFINITY;
  /** When each team was refused something last; those of a second ago are forgotten. */
  readonly #shedOf = new Map<string, number>();
  /** When something was refused last while everything was in use. */
  #fullAt = Number.NEGATIVE_INFINITY;
  #dueAt = 0;
  #timer: NodeJS.Timeout | undefined;

  /**
   * @param input.waitMs the age of the oldest waiting call to the database
   * @param input.usedMemory the share of memory in use, in [0, 1]; by default of this process
   * @param input.onShed called for each request that is refused
   */
  constructor(input: {
    inFlight: InFlight;
    waitMs: () => number;
    log: Logger;
    usedMemory?: () => number;
    onShed?: (weight: Weight) => void;
  }) {
    this.#inFlight = input.inFlight;
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

  /** `working` requests of at most `limit`, and the number refused since the start. */
  get state(): { limit: number; working: number; shed: number; isShortOfMemory: boolean } {
    const { working } = this.#inFlight;
    return { limit: this.#limit, working, shed: this.#shed, isShortOfMemory: this.#isShortOfMemory };
  }

  /** Whether a request of a team is accepted. Refusals are counted. */
  admits(weight: Weight, team: string): boolean {
    const { working } = this.#inFlight;
    if (working > this.#most) this.#most = working;
    const nowMs = performance.now();
    const shedAt = Math.max(this.#fullAt, this.#shedOf.get(team) ?? Number.NEGATIVE_INFINITY);
    const load = {
      working: (mostOfTeam: number) => this.#inFlight.workingWithin(mostOfTeam),
      held: this.#inFlight.workingOf(team),
      limit: this.#limit,
      isPressed: nowMs - shedAt < PRESSED_MS,
      isShortOfMemory: this.#isShortOfMemory,
    };
    if (admits(weight, load)) return true;
    this.#shed += 1;
    // `long` requests are refused because others were: counting their refusals would prolong that without end.
    if (weight !== 'long') {
      this.#shedAt = nowMs;
      this.#shedOf.set(team, nowMs);
      if (load.working(this.#limit) >= placesFor(this.#limit)) this.#fullAt = nowMs;
    }
    this.#beganAt ??= nowMs;
    this.#onShed?.(weight);
    return false;
  }

  /** Counts a request in flight for the team of its caller, once that is known; false when it is refused. */
  count(answer: ServerResponse, weight: Weight, team: string): boolean {
    return this.#inFlight.move(answer, team, () => this.admits(weight, team));
  }

  /** Takes one look: adjusts the limit, and logs when an overload begins, lasts or ends. */
  look(): void {
    const nowMs = performance.now();
    const lateMs = Math.max(0, nowMs - this.#dueAt);
    this.#dueAt = nowMs + LOOK_MS;
    this.#inFlight.recount();
    if (this.#looks % MEMORY_EVERY === 0) {
      this.#isShortOfMemory = isShort(this.#usedMemory(), this.#isShortOfMemory);
    }
    this.#looks += 1;
    for (const [team, shedAt] of this.#shedOf) {
      if (nowMs - shedAt > PRESSED_MS) this.#shedOf.delete(team);
    }
    const waitMs = Math.max(lateMs, this.#waitMs());
    const seen = { limit: this.#limit, waitMs, late: this.#late, most: this.#most };
    ({ limit: this.#limit, late: this.#late } = nextLimit(seen));
    this.#most = this.#inFlight.working;
    this.#logOverload(nowMs, waitMs);
  }

  #logOverload(nowMs: number, waitMs: number): void {
    if (this.#beganAt === undefined) return;
    const isOver = nowMs - this.#shedAt > OVER_MS;
    const isNew = this.#loggedShed === 0;
    if (!isOver && !isNew && nowMs - this.#loggedAt < LOG_EVERY_MS) return;
    const { limit, working, isShortOfMemory } = this.state;
    const refused = this.#shed - this.#loggedShed;
    const fields = { refused, limit, working, waitMs: Math.round(waitMs), isShortOfMemory };
    if (isOver) {
      this.#log.info({ ...fields, ms: Math.round(nowMs - this.#beganAt) }, 'overload.over');
      this.#beganAt = undefined;
    } else {
      this.#log.warn(fields, 'overload.refuses: more is asked for than this node can answer in time');
      this.#loggedAt = nowMs;
    }
    this.#loggedShed = this.#shed;
  }
}

/**
 * The share of memory in use: resident memory of the container's or machine's, or V8's heap of its limit, whichever is
 * more.
 */
function usedMemory(): number {
  const constrained = process.constrainedMemory();
  const machine = totalmem();
  // Without a limit the kernel reports a number beyond all memory.
  const limit = constrained > 0 && constrained < machine ? constrained : machine;
  const { used_heap_size: used, heap_size_limit: most } = getHeapStatistics();
  return Math.max(process.memoryUsage.rss() / limit, used / most);
}
