/** Streams of server-sent events, which report the changes in a team. Their number and their unread bytes are limited. */
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
    if (this.#listeners.size === 0) void this.#poller.stop();
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

/** Proxies close idle connections. */
const HEARTBEAT_MS = 15_000;
/** How long a browser waits before it reconnects. */
const RETRY_MS = 2_000;

/** One message. The client sends the last `id` as `Last-Event-ID` when it reconnects. */
export interface StreamMessage {
  event: string;
  id?: string | number;
  data: unknown;
}

/**
 * Responds to a request with a stream of messages. A client is disconnected, and may reconnect and resume, if more than
 * `maxBuffered` bytes are unread or it reads nothing between two heartbeats.
 */
export class EventStream {
  /** Resolves when the client has disconnected, or the stream has ended. */
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
      // Without this header nginx buffers the stream.
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

  /** Ends the stream. A remark is sent as a comment, which clients ignore. */
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
