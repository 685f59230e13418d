/**
 * Limits how many requests are processed concurrently, and in which order they start. Load shedding refuses requests
 * with `retry-after` before memory use or latency grow too large.
 *
 *     request ──▶ may its team have one more? ──no──▶ 503, counted but not logged
 *                   └─yes─▶ counts as work until its response is being sent, except while its body arrives
 *                             └──▶ queue of its team ──▶ starts, 16 requests in each turn of the event loop
 */
import type { Server, ServerResponse } from 'node:http';
import { totalmem } from 'node:os';
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';
import { getHeapStatistics } from 'node:v8';
import { admits, INITIAL_LIMIT, isShort, nextLimit, placesFor, type Weight } from '../../model/load-limit.ts';
import type { Logger } from '../../observe/log.ts';
import { FairPlaces, Shares } from '../../std/fair-share.ts';
import { isBodyArriving } from '../input/body.ts';

/** The team of requests without a key or session. */
export const UNKNOWN_TEAM = '';
/**
 * The team of requests whose key or session this node has not seen before, until it is looked up. Separate from requests
 * without a key, which anybody can send.
 */
export const NEW_CALLERS = '?';

/** Maximum number of pending requests on one connection: Node can parse a thousand from one chunk of 64 KiB. */
const MAX_PIPELINED = 16;
/** A client that exceeds the limit this far is not reading responses: its connection is destroyed. */
const MAX_REFUSED = 10 * MAX_PIPELINED;
const pending = new WeakMap<object, Set<ServerResponse>>();

/** Whether a request may wait for the earlier requests on its connection. Call `leaveConnection` when it has ended. */
export function mayWaitOnConnection(response: ServerResponse): boolean {
  const { socket } = response.req;
  const waiting = pending.get(socket) ?? new Set();
  if (waiting.add(response).size === 1) pending.set(socket, waiting);
  if (waiting.size > MAX_REFUSED) socket.destroy();
  return waiting.size <= MAX_PIPELINED;
}

export function leaveConnection(response: ServerResponse): void {
  pending.get(response.req.socket)?.delete(response);
}

/** The unfinished responses on a connection, in order. */
export function pendingOn(socket: object): readonly ServerResponse[] {
  return [...(pending.get(socket) ?? [])];
}

interface Entry {
  team: string;
  /** Whether requests of this weight count as work. */
  canBeWork: boolean;
  /** Whether the request counts as work now: see `working`. */
  isWork: boolean;
}

const LOOK_MS = 100;
/** Memory use is read only once per this many calls of `look`. */
const MEMORY_EVERY = 10;
/** How long after a refusal the node counts as under pressure. */
const PRESSED_MS = 1_000;
/** An overload is over when nothing was refused for this long. Until then it is logged once a minute. */
const OVER_MS = 5_000;
const LOG_EVERY_MS = 60_000;

/** The requests in flight. Decides which requests are accepted, and adjusts the limit to the measured delays. */
export class InFlight {
  readonly #responses = new Map<ServerResponse, Entry>();
  readonly #working = new Shares();
  #isDraining = false;
  #onEmpty: (() => void) | undefined;
  readonly #waitMs: () => number;
  readonly #usedMemory: () => number;
  readonly #log: Logger;
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
  /** When a request of each team was last refused. Entries older than a second are deleted. */
  readonly #shedOf = new Map<string, number>();
  /** When a request was last refused while all places were in use. */
  #fullAt = Number.NEGATIVE_INFINITY;
  #dueAt = 0;
  #timer: NodeJS.Timeout | undefined;
  #isRunning = false;

  /**
   * @param input.waitMs the age of the oldest waiting database call
   * @param input.usedMemory the share of memory in use, in [0, 1]; default: memory of this process
   */
  constructor(input: { waitMs: () => number; log: Logger; usedMemory?: () => number }) {
    this.#waitMs = input.waitMs;
    this.#log = input.log;
    this.#usedMemory = input.usedMemory ?? usedMemory;
  }

  start(): void {
    this.#isRunning = true;
  }

  stop(): void {
    this.#isRunning = false;
    this.#pauseLooks();
  }

  /** Calls `look` regularly while there are requests: an idle node does not wake up for it. */
  #resumeLooks(): void {
    if (!this.#isRunning) return;
    // What the last look found may be hours old.
    this.#dueAt = performance.now();
    this.#looks = 0;
    this.#late = 0;
    this.look();
    this.#timer = setInterval(() => {
      this.look();
      if (this.#isAtRest) this.#pauseLooks();
    }, LOOK_MS).unref();
  }

  #pauseLooks(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  get #isAtRest(): boolean {
    const isWithoutLoad = this.#responses.size === 0 && this.#most === 0 && !this.#isShortOfMemory;
    return isWithoutLoad && this.#beganAt === undefined && this.#shedOf.size === 0;
  }

  /** `shed`: the number of requests refused since the start. */
  get state(): { limit: number; working: number; shed: number; isShortOfMemory: boolean } {
    return {
      limit: this.#limit,
      working: this.working,
      shed: this.#shed,
      isShortOfMemory: this.#isShortOfMemory,
    };
  }

  /** Whether a request of a team is accepted. Refusals are counted. */
  admits(weight: Weight, team: string): boolean {
    this.#most = Math.max(this.#most, this.working);
    const nowMs = performance.now();
    const shedAt = Math.max(this.#fullAt, this.#shedOf.get(team) ?? Number.NEGATIVE_INFINITY);
    const load = {
      working: (mostOfTeam: number) => this.#working.allWithin(mostOfTeam),
      held: this.workingOf(team),
      limit: this.#limit,
      isPressed: nowMs - shedAt < PRESSED_MS,
      isShortOfMemory: this.#isShortOfMemory,
    };
    if (admits(weight, load)) return true;
    this.#shed += 1;
    // A `long` request is refused if others were refused recently. Counting its refusal would prolong the overload
    // indefinitely.
    if (weight !== 'long') {
      this.#shedAt = nowMs;
      this.#shedOf.set(team, nowMs);
      if (load.working(this.#limit) >= placesFor(this.#limit)) this.#fullAt = nowMs;
    }
    this.#beganAt ??= nowMs;
    return false;
  }

  /** Adjusts the limit, and logs when an overload starts, lasts or ends. */
  look(): void {
    const nowMs = performance.now();
    const lateMs = Math.max(0, nowMs - this.#dueAt);
    this.#dueAt = nowMs + LOOK_MS;
    this.recount();
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
    this.#most = this.working;
    this.#logOverload(nowMs, waitMs);
  }

  get size(): number {
    return this.#responses.size;
  }

  /** Whether every connection is closed after its next response. */
  get isDraining(): boolean {
    return this.#isDraining;
  }

  /**
   * Number of requests that keep this process busy. Not counted: requests that mostly wait and, after the next `recount`,
   * requests whose body is arriving or whose response is being sent, because both depend on the speed of the client.
   * Otherwise a thousand slow clients, even without a key, would cause all other requests to be refused.
   */
  get working(): number {
    return this.#working.all;
  }

  /** Number of requests of a team that count as work. */
  workingOf(team: string): number {
    return this.#working.heldBy(team);
  }

  /** Counts a request as in flight until `remove`. */
  add(response: ServerResponse, weight: Weight, team: string): void {
    const canBeWork = weight !== 'light' && weight !== 'long';
    if (this.#timer === undefined) this.#resumeLooks();
    this.#responses.set(response, { team, canBeWork, isWork: canBeWork });
    if (canBeWork) this.#working.add(team);
    if (this.#isDraining) response.shouldKeepAlive = false;
  }

  /** To be called when the response is closed. Harmless for a request that was refused. */
  remove(response: ServerResponse): void {
    const entry = this.#responses.get(response);
    if (entry === undefined) return;
    this.#responses.delete(response);
    if (entry.isWork) this.#working.remove(entry.team);
    if (this.#isDraining) response.req.socket.end();
    if (this.#responses.size === 0) this.#onEmpty?.();
  }

  /**
   * Counts a request for the team of its caller, once the team is known. Returns false if the request is refused. The
   * decision does not count the request itself.
   */
  count(response: ServerResponse, weight: Weight, team: string): boolean {
    const entry = this.#responses.get(response);
    if (entry === undefined || entry.team === team) return true;
    if (entry.isWork) this.#working.remove(entry.team);
    const isAdmitted = this.admits(weight, team);
    if (isAdmitted) entry.team = team;
    if (entry.isWork) this.#working.add(entry.team);
    return isAdmitted;
  }

  /** Stops counting a request as work, because it only waits. */
  rest(response: ServerResponse): void {
    const entry = this.#responses.get(response);
    if (entry === undefined) return;
    if (entry.isWork) this.#working.remove(entry.team);
    entry.canBeWork = false;
    entry.isWork = false;
  }

  /** Counts again which requests are work: all except those that wait for their client. */
  recount(): void {
    for (const [response, entry] of this.#responses) {
      const isWork = entry.canBeWork && !response.headersSent && !isBodyArriving(response.req);
      if (isWork === entry.isWork) continue;
      entry.isWork = isWork;
      if (isWork) this.#working.add(entry.team);
      else this.#working.remove(entry.team);
    }
  }

  /** Closes each connection after its current response. Responses that have not started get `connection: close`. */
  drain(): void {
    this.#isDraining = true;
    for (const response of this.#responses.keys()) response.shouldKeepAlive = false;
  }

  /** Destroys the connections of all requests in flight, and returns how many responses this aborted. */
  cut(): number {
    const responses = [...this.#responses.keys()];
    for (const { socket } of responses) socket?.destroy();
    return responses.length;
  }

  /** Resolves when nothing is in flight. Only one caller may wait at a time. */
  async empty(): Promise<void> {
    if (this.#responses.size === 0) return;
    await new Promise<void>((resolve) => {
      this.#onEmpty = resolve;
    });
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
      this.#log.warn(
        fields,
        'overload.refuses: this node receives more requests than it can process in time',
      );
      this.#loggedAt = nowMs;
    }
    this.#loggedShed = this.#shed;
  }
}

/** Upper bound of the random delay, so that clients that were refused together do not retry together. */
const MAX_RETRY_AFTER_S = 3;

/** A value for the header `retry-after`, in seconds. */
export function retryAfter(): string {
  return String(1 + Math.floor(Math.random() * MAX_RETRY_AFTER_S));
}

/**
 * The share of memory in use: resident memory relative to the memory of the container or machine, or V8's heap relative
 * to its limit. The larger share counts.
 */
function usedMemory(): number {
  const constrained = process.constrainedMemory();
  const machine = totalmem();
  // Without a limit the kernel reports a number larger than the machine's memory.
  const limit = constrained > 0 && constrained < machine ? constrained : machine;
  const { used_heap_size: used, heap_size_limit: most } = getHeapStatistics();
  return Math.max(residentMemory() / limit, used / most);
}

/** Resident memory in bytes. 0 if it cannot be read, for example because connections use all file descriptors. */
function residentMemory(): number {
  try {
    return process.memoryUsage.rss();
  } catch {
    return 0;
  }
}

/** How long a client has to complete a half-sent request when nothing else is in flight. */
const HALF_SENT_MS = 750;
/** Idle connections are closed after this many turns of the event loop. Each turn reads the input that has arrived. */
const TURNS = 4;

/**
 * Closes the application: the listener and idle connections as soon as all input that has arrived is read.
 *
 * @param input.withinMs how long requests in flight may take
 * @returns how many requests were aborted
 */
export async function drain(input: {
  app: { server: Server; close(): Promise<void> };
  inFlight: InFlight;
  withinMs: number;
}): Promise<{ cut: number }> {
  const { app, inFlight, withinMs } = input;
  const over = new AbortController();
  const { signal } = over;
  const resting = async () => {
    do {
      await inFlight.empty();
      await pause(HALF_SENT_MS, undefined, { signal });
    } while (inFlight.size > 0);
  };
  inFlight.drain();
  // A connection looks idle while its next request has arrived but has not been read. On a busy node, most connections
  // look idle.
  for (let turn = 0; turn < TURNS; turn += 1) await nextTurn();
  const closed = app.close().finally(() => over.abort());
  const late = pause(withinMs, true, { signal }).catch(() => false);
  const isLate = await Promise.race([closed.then(() => false), late, resting().then(no, no)]);
  const cut = isLate ? inFlight.cut() : 0;
  app.server.closeAllConnections();
  await closed;
  return { cut };
}

const no = () => false;

/**
 * At most this many requests start per turn of the event loop, so that a turn stays short. A single team gets at most
 * three quarters of them.
 */
const PER_TURN = 16;

/**
 * Starts requests in turns of the event loop, fairly between teams. Places are freed only when a request has to wait. A
 * node that is not busy therefore does no work for this.
 */
export class RequestTurns {
  readonly #places = new FairPlaces({ places: PER_TURN });
  /** Functions that release the places of this turn. */
  #started: (() => void)[] = [];
  #isEnding = false;

  /** Resolves when a request of the team may start. Returns undefined if it may start now. */
  take(team: string): Promise<void> | undefined {
    const leave = this.#places.takeNow(team);
    if (leave !== undefined) {
      this.#started.push(leave);
      return undefined;
    }
    this.#endTurn();
    return this.#places.take(team).then((later) => {
      this.#started.push(later);
      this.#endTurn();
    });
  }

  #endTurn(): void {
    if (this.#isEnding) return;
    this.#isEnding = true;
    setImmediate(() => {
      this.#isEnding = false;
      const started = this.#started;
      this.#started = [];
      for (const release of started) release();
    });
  }
}
