/**
 * The open streams of server-sent events: a bounded number, sent the news of their team, and ended when the service
 * stops.
 */
import { Problem } from '../../model/error.ts';
import type { Logger } from '../../observe/log.ts';
import { Poller } from '../../std/chore.ts';
import type { Store } from '../../store/store.ts';
import type { Caller } from '../../teams/keys.ts';
import type { EventStream } from './event-stream.ts';
import type { LongCalls } from './long-calls.ts';
import { type News, TeamNews } from './team-news.ts';

export const MAX_STREAMS_OF_TEAM = 100;
const MAX_STREAMS = 5 * MAX_STREAMS_OF_TEAM;
/** How often to look anyway: for changes by other processes, and for what is found by comparison. */
const LOOK_MS = 1_000;

/** A stream of team news, and the caller who must stay authorised. */
export interface Listener {
  caller: Caller;
  stream: EventStream;
}

/** However many streams a team has, its changes are read once. */
export class Streams {
  readonly #store: Store;
  readonly #longCalls: LongCalls;
  readonly #log: Logger;
  readonly #open = new Set<{ teamId: string; stream: EventStream }>();
  readonly #listeners = new Set<Listener>();
  /** By team that has listeners; a promise, because the first reading takes time. */
  readonly #news = new Map<string, Promise<TeamNews>>();
  readonly #poller: Poller;
  #unwatch: (() => void) | undefined;
  #closed = false;

  constructor({ store, longCalls, log }: { store: Store; longCalls: LongCalls; log: Logger }) {
    this.#store = store;
    this.#longCalls = longCalls;
    this.#log = log;
    this.#poller = new Poller({ everyMs: LOOK_MS, random: Math.random, look: () => this.#look() });
  }

  get size(): number {
    return this.#open.size;
  }

  /**
   * Opens a stream, which ends with the authorisation of its caller.
   *
   * @throws Problem `overloaded` when too many are open, `stopping` after `close`
   */
  open(caller: Caller, make: () => EventStream): EventStream {
    if (this.#closed) throw new Problem('stopping');
    const { teamId } = caller;
    const ofTeam = [...this.#open].filter((one) => one.teamId === teamId).length;
    if (ofTeam >= MAX_STREAMS_OF_TEAM || this.#open.size >= MAX_STREAMS) {
      throw new Problem('overloaded', {
        sentence: `As many streams are open as may be: ${MAX_STREAMS_OF_TEAM} of a team, ${MAX_STREAMS} in all. Close one of them`,
        headers: { 'retry-after': '10' },
      });
    }
    const one = { teamId, stream: make() };
    this.#open.add(one);
    const call = this.#longCalls.follow(caller);
    call.signal.addEventListener('abort', () => one.stream.end());
    void one.stream.closed.then(() => {
      this.#open.delete(one);
      call.end();
    });
    return one.stream;
  }

  /**
   * Sends a stream all changes from now on; one that resumes is first sent what it has missed.
   *
   * @param after the sequence of the last event that a resuming client knows
   */
  async listen(listener: Listener, after: number | undefined): Promise<void> {
    const { caller, stream } = listener;
    this.#listeners.add(listener);
    void stream.closed.then(() => this.#leave(listener));
    this.#unwatch ??= this.#store.watch(({ lanes }) => {
      for (const news of this.#news.values()) news.then((one) => one.noteLanes(lanes), ignore);
      this.#poller.nudge();
    });
    this.#poller.start();
    const news = await this.#newsOf(caller.teamId);
    const missed = after === undefined ? undefined : await news.missed(after);
    if (missed !== undefined) sendNews(stream, missed.news, missed.sequence);
    const sequence = missed?.sequence ?? news.sequence;
    stream.send({ event: 'hello', id: sequence, data: { sequence } });
    this.#poller.nudge();
  }

  /** Ends all streams, and refuses new ones. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const { stream } of this.#open) stream.end('The service is stopping. Come back');
    await this.#rest();
  }

  #newsOf(teamId: string): Promise<TeamNews> {
    const known = this.#news.get(teamId);
    if (known !== undefined) return known;
    const news = new TeamNews(this.#store, teamId);
    const begun = news.begin().then(() => news);
    this.#news.set(teamId, begun);
    begun.catch(() => {
      if (this.#news.get(teamId) === begun) this.#news.delete(teamId);
    });
    return begun;
  }

  async #look(): Promise<void> {
    // The commit that is told of may be later than the end of a key.
    await this.#longCalls.look();
    for (const [teamId, begun] of [...this.#news]) {
      try {
        const news = await begun;
        const found = await news.look();
        for (const { stream } of this.#of(teamId)) sendNews(stream, found, news.sequence);
      } catch (err) {
        // The next look finds the same changes.
        this.#log.warn({ err, teamId }, 'stream.not_told');
      }
    }
  }

  #of(teamId: string): Listener[] {
    return [...this.#listeners].filter(({ caller }) => caller.teamId === teamId);
  }

  #leave(listener: Listener): void {
    this.#listeners.delete(listener);
    const { teamId } = listener.caller;
    if (this.#of(teamId).length === 0) this.#news.delete(teamId);
    if (this.#listeners.size === 0) void this.#rest();
  }

  async #rest(): Promise<void> {
    this.#unwatch?.();
    this.#unwatch = undefined;
    await this.#poller.stop();
    // A listener may have come while the last look ended.
    if (this.#listeners.size > 0 && !this.#closed) this.#poller.start();
  }
}

/**
 * Only the last message carries the sequence: a client that received just some of them resumes from before them all.
 */
function sendNews(stream: EventStream, news: readonly News[], sequence: number): void {
  for (const [at, data] of news.entries()) {
    const isLast = at === news.length - 1;
    stream.send({ event: 'invalidate', ...(isLast ? { id: sequence } : {}), data });
  }
}

function ignore(): void {}
