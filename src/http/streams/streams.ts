/** The open streams of server-sent events, which report what happens in a team. Their number is limited. */
import { Problem } from '../../model/error.ts';
import type { Logger } from '../../observe/log.ts';
import { Poller } from '../../std/chore.ts';
import type { Store } from '../../store/store.ts';
import type { Caller } from '../../teams/keys.ts';
import type { Examiner } from '../../webhooks/rules/examiner.ts';
import type { EventStream } from './event-stream.ts';
import type { LongCalls } from './long-calls.ts';
import { MatchStream } from './matching-events.ts';
import { type News, TeamNews } from './team-news.ts';

export const MAX_STREAMS_OF_TEAM = 100;
const MAX_STREAMS = 5 * MAX_STREAMS_OF_TEAM;
/** How often to look without a nudge: for changes by other processes, and for changes found by comparison. */
const LOOK_MS = 1_000;

/** A stream of team news, and the caller who must stay authorized. */
export interface Listener {
  caller: Caller;
  stream: EventStream;
}

/** All open streams. The changes in a team are read once for all of its streams. */
export class Streams {
  readonly #store: Store;
  readonly #longCalls: LongCalls;
  readonly #log: Logger;
  readonly #open = new Set<{ teamId: string; stream: EventStream }>();
  readonly #listeners = new Set<Listener>();
  /** Streams that report events that match a filter, instead of changes. */
  readonly #matching = new Set<MatchStream>();
  /** By team id; only teams with listeners. */
  readonly #news = new Map<string, Promise<TeamNews>>();
  readonly #poller: Poller;
  #closed = false;

  constructor({ store, longCalls, log }: { store: Store; longCalls: LongCalls; log: Logger }) {
    this.#store = store;
    this.#longCalls = longCalls;
    this.#log = log;
    this.#poller = new Poller({
      everyMs: LOOK_MS,
      random: Math.random,
      look: () => this.#look(),
      watch: (poller) =>
        store.watch(({ lanes }) => {
          for (const news of this.#news.values()) news.then((one) => one.noteLanes(lanes), ignore);
          poller.nudge();
        }),
    });
  }

  get size(): number {
    return this.#open.size;
  }

  /**
   * Opens a stream. It ends when its caller's key or session ends.
   *
   * @throws Problem `overloaded` if too many are open, `stopping` after `close`
   */
  open(caller: Caller, make: () => EventStream): EventStream {
    if (this.#closed) throw new Problem('stopping');
    const { teamId } = caller;
    const ofTeam = [...this.#open].filter((one) => one.teamId === teamId).length;
    if (ofTeam >= MAX_STREAMS_OF_TEAM || this.#open.size >= MAX_STREAMS) {
      throw new Problem('overloaded', {
        sentence: `Too many streams are open: at most ${MAX_STREAMS_OF_TEAM} per team and ${MAX_STREAMS} in total. Close one of them`,
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
   * Sends all further changes to a stream. If the stream resumes, the changes that it has missed are sent first.
   *
   * @param after the sequence of the last event that a resuming client has received
   */
  async listen(listener: Listener, after: number | undefined): Promise<void> {
    const { caller, stream } = listener;
    this.#listeners.add(listener);
    void stream.closed.then(() => this.#leave(listener));
    this.#poller.start();
    const news = await this.#newsOf(caller.teamId);
    const missed = after === undefined ? undefined : await news.missed(after);
    if (missed !== undefined) sendNews(stream, missed.news, missed.sequence);
    const sequence = missed?.sequence ?? news.sequence;
    stream.send({ event: 'hello', id: sequence, data: { sequence } });
    this.#poller.nudge();
  }

  /**
   * Sends the events that match a filter to a stream.
   *
   * @param after the sequence of the last event that a resuming client has received
   */
  async listenTo(
    { caller, stream }: Listener,
    { filter, examiner }: { filter: string; examiner: Examiner },
    after: number | undefined,
  ): Promise<void> {
    const { teamId } = caller;
    const sequence = after ?? (await this.#store.events.newestSequence({ teamId }));
    const of = { store: this.#store, log: this.#log, teamId, filter, examiner, stream };
    const matching = new MatchStream(of, sequence);
    this.#matching.add(matching);
    void stream.closed.then(() => {
      this.#matching.delete(matching);
      this.#rest();
    });
    stream.send({ event: 'hello', id: sequence, data: { sequence } });
    this.#poller.start();
    this.#poller.nudge();
  }

  /** Ends all streams, and refuses new ones. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const { stream } of this.#open) stream.end('The service is stopping. Reconnect');
    await this.#poller.stop();
  }

  #newsOf(teamId: string): Promise<TeamNews> {
    const known = this.#news.get(teamId);
    if (known !== undefined) return known;
    const news = new TeamNews(this.#store, teamId);
    const started = news.start().then(() => news);
    this.#news.set(teamId, started);
    started.catch(() => {
      if (this.#news.get(teamId) === started) this.#news.delete(teamId);
    });
    return started;
  }

  async #look(): Promise<void> {
    // A key may have ended before the commit that is reported.
    await this.#longCalls.look();
    for (const [teamId, streams] of Map.groupBy(this.#matching, (one) => one.teamId)) {
      // If the read fails, the next look reads again.
      const newest = await this.#store.events.newestSequence({ teamId }).catch(() => 0);
      for (const one of streams) one.look(newest);
    }
    for (const [teamId, started] of [...this.#news]) {
      try {
        const news = await started;
        const found = await news.look();
        for (const { stream } of this.#of(teamId)) sendNews(stream, found, news.sequence);
      } catch (err) {
        // The next look finds the same changes.
        this.#log.warn({ err, teamId }, 'stream.not_sent');
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
    this.#rest();
  }

  #rest(): void {
    if (this.#listeners.size + this.#matching.size === 0) void this.#poller.stop();
  }
}

/**
 * Only the last message has the sequence, so that a client that received only some of them resumes from before the
 * first.
 */
function sendNews(stream: EventStream, news: readonly News[], sequence: number): void {
  for (const [at, data] of news.entries()) {
    const isLast = at === news.length - 1;
    stream.send({ event: 'invalidate', ...(isLast ? { id: sequence } : {}), data });
  }
}

function ignore(): void {}
