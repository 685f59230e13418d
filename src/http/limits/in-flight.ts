/** The requests in flight: counted for overload, and ended when the service stops. */
import type { ServerResponse } from 'node:http';
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';
import type { Weight } from '../../model/load-limit.ts';
import { Shares } from '../../std/fair-share.ts';
import { isBodyArriving } from '../input/body.ts';
import type { App } from '../server/app.ts';

/** The team of requests without a key or session. */
export const UNKNOWN_TEAM = '';
/**
 * The team of requests with a key or session that this node has not seen before, until it has been looked up: apart from
 * those without one, which anybody may send.
 */
export const NEW_CALLERS = '?';

interface Entry {
  team: string;
  /** Whether its weight makes it work at all. */
  canBeWork: boolean;
  /** Whether it counts at the moment: see `working`. */
  isWork: boolean;
}

export class InFlight {
  readonly #answers = new Map<ServerResponse, Entry>();
  readonly #working = new Shares();
  #isDraining = false;
  #onEmpty: (() => void) | undefined;

  get size(): number {
    return this.#answers.size;
  }

  /**
   * How many keep this process busy. Not counted: those that mostly wait and, from the next `recount` on, those whose
   * body is arriving or whose answer is being sent, both at the pace of the client. Otherwise a thousand slow clients,
   * without a key even, would have everybody else refused.
   */
  get working(): number {
    return this.#working.all;
  }

  /** The same, where no team is counted with more than so many. */
  workingWithin(mostOfTeam: number): number {
    return this.#working.allWithin(mostOfTeam);
  }

  /** How many of those belong to a team. */
  workingOf(team: string): number {
    return this.#working.heldBy(team);
  }

  add(answer: ServerResponse, weight: Weight, team: string): void {
    const canBeWork = weight !== 'light' && weight !== 'long';
    this.#answers.set(answer, { team, canBeWork, isWork: canBeWork });
    if (canBeWork) this.#working.add(team);
    if (this.#isDraining) answer.shouldKeepAlive = false;
    // `close` follows `finish`, and also comes when the connection broke.
    answer.once('close', () => this.#remove(answer));
  }

  /**
   * Counts a request for the team that turned out to be its caller's, if that may have one more. Its own place is free
   * while this is decided.
   */
  move(answer: ServerResponse, team: string, mayHaveOneMore: () => boolean): boolean {
    const entry = this.#answers.get(answer);
    if (entry === undefined || entry.team === team) return true;
    if (entry.isWork) this.#working.remove(entry.team);
    const moves = mayHaveOneMore();
    if (moves) entry.team = team;
    if (entry.isWork) this.#working.add(entry.team);
    return moves;
  }

  /** From now on a request only waits, for time to pass: it is no work any more. */
  rest(answer: ServerResponse): void {
    const entry = this.#answers.get(answer);
    if (entry === undefined) return;
    if (entry.isWork) this.#working.remove(entry.team);
    entry.canBeWork = false;
    entry.isWork = false;
  }

  /** Counts anew which requests are work: those whose client is not the one that is waited for. */
  recount(): void {
    for (const [answer, entry] of this.#answers) {
      const isWork = entry.canBeWork && !answer.headersSent && !isBodyArriving(answer.req);
      if (isWork === entry.isWork) continue;
      entry.isWork = isWork;
      if (isWork) this.#working.add(entry.team);
      else this.#working.remove(entry.team);
    }
  }

  /** From now on each connection ends with its answer, and answers not yet begun say `connection: close`. */
  drain(): void {
    this.#isDraining = true;
    for (const answer of this.#answers.keys()) answer.shouldKeepAlive = false;
  }

  /** Destroys the connections of all that is left; returns how many answers that cut off. */
  cut(): number {
    const answers = [...this.#answers.keys()];
    for (const { socket } of answers) socket?.destroy();
    return answers.length;
  }

  /** Resolves as soon as nothing is in flight. For one caller at a time. */
  async empty(): Promise<void> {
    if (this.#answers.size === 0) return;
    await new Promise<void>((resolve) => {
      this.#onEmpty = resolve;
    });
  }

  #remove(answer: ServerResponse): void {
    const entry = this.#answers.get(answer);
    if (entry?.isWork === true) this.#working.remove(entry.team);
    this.#answers.delete(answer);
    if (this.#isDraining) answer.req.socket.end();
    if (this.#answers.size === 0) this.#onEmpty?.();
  }
}

/** How long, once nothing is in flight, a client that has sent half a request has for the other half. */
const HALF_SENT_MS = 750;
/**
 * Turns of the event loop before idle connections are closed: each reads all that has arrived, but the first may be
 * past that.
 */
const TURNS = 4;

/**
 * Closes the application: the listener and idle connections as soon as all input that has arrived is read.
 *
 * @param input.withinMs how long requests in flight may take
 * @returns how many were cut off
 */
export async function drain(input: {
  app: Pick<App, 'close' | 'server'>;
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
  // A connection whose next request has arrived but is not read yet looks idle; on a busy node most of them do.
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
