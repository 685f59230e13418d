/** One response of server-sent events, with a bound on what the client may leave unread. */
import type { Reply } from '../server/exchange.ts';

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
