/** A stream of server-sent events to one client. Its unread bytes are limited. */
import type { Reply } from '../server/exchange.ts';

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

  /** Sets the `Last-Event-ID` of the client without a message. */
  mark(id: number): void {
    this.#write(`id: ${id}\n\n`);
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
