/**
 * Streams of server-sent events: a bounded number, with a bound on what each client may leave unread. They are sent the
 * news of their team, and ended when the service stops.
 */
import { Problem } from '../../model/error.ts';
import type { Logger } from '../../observe/log.ts';
import { Poller } from '../../std/chore.ts';
import type { Store } from '../../store/store.ts';
import type { Caller } from '../../teams/keys.ts';
import type { Reply } from '../server/exchange.ts';
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

/** Proxies close connections without traffic. */
const HEARTBEAT_MS = 15_000;
/** A browser reconnects after this long. */
const RETRY_MS = 2_000;

/** One message. The client sends the last `id` as `Last-Event-ID` when it reconnects. */
export interface StreamMessage {
  event: string;
  id?: string | number;
  data: unknown;
}

/**
 * Answers a request with a stream of messages. A client is disconnected, and may reconnect and resume, when it leaves
 * more than `maxBuffered` bytes unread, or has read nothing between two heartbeats.
 */
export class EventStream {
  /** Resolves when the client has disconnected, or the stream was ended or cut off. */
  readonly closed: Promise<void>;
  readonly #raw: Reply['raw'];
  readonly #maxBuffered: number;
  readonly #heartbeat: NodeJS.Timeout;
  /** Bytes unread at the last heartbeat. */
  #leftUnread = 0;

  constructor(reply: Reply, { maxBuffered, heartbeatMs = HEARTBEAT_MS }: StreamBounds) {
    reply.hijack();
    this.#raw = reply.raw;
    this.#maxBuffered = maxBuffered;
    this.#raw.writeHead(reply.statusCode, {
      ...reply.getHeaders(),
      'content-type': 'text/event-stream; charset=utf-8',
      // Otherwise nginx buffers what it should pass on.
      'x-accel-buffering': 'no',
    });
    this.#heartbeat = setInterval(() => this.#beat(), heartbeatMs);
    this.#heartbeat.unref();
    this.closed = new Promise((resolve) => {
      const end = () => {
        clearInterval(this.#heartbeat);
        resolve();
      };
      if (this.#raw.destroyed) end();
      else this.#raw.once('close', end);
    });
    this.#raw.write(`retry: ${RETRY_MS}\n\n`);
  }

  get isOpen(): boolean {
    return !this.#raw.destroyed && !this.#raw.writableEnded;
  }

  /** Bytes that the client has not read yet. */
  get unread(): number {
    return this.#raw.writableLength;
  }

  send({ event, id, data }: StreamMessage): void {
    // JSON contains no line breaks, so it fits one line of data.
    const name = id === undefined ? '' : `id: ${id}\n`;
    this.#write(`${name}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  }

  /** Resolves when the client has read what was sent, or the stream is closed. */
  async drained(): Promise<void> {
    if (!this.isOpen || !this.#raw.writableNeedDrain) return;
    await Promise.race([new Promise<void>((resolve) => this.#raw.once('drain', resolve)), this.closed]);
  }

  /** Ends the stream, with a last comment if there is a remark. Clients ignore comments. */
  end(remark?: string): void {
    clearInterval(this.#heartbeat);
    if (remark !== undefined) this.#write(`: ${remark}\n\n`);
    if (this.isOpen) this.#raw.end();
  }

  #beat(): void {
    const stalls = this.#leftUnread > 0 && this.#raw.writableLength >= this.#leftUnread;
    if (stalls) this.#raw.destroy();
    else this.#write(': \n\n');
    this.#leftUnread = this.#raw.writableLength;
  }

  #write(text: string): void {
    if (!this.isOpen) return;
    this.#raw.write(text);
    if (this.#raw.writableLength > this.#maxBuffered) this.#raw.destroy();
  }
}

interface StreamBounds {
  maxBuffered: number;
  /** For tests. */
  heartbeatMs?: number;
}
