/**
 * Sends requests at a fixed rate, however long the responses take, as many clients do to an overloaded service. It uses bare
 * sockets, so that the load costs less than the service.
 */
import { connect, type Socket } from 'node:net';

/** One request: its bytes, and a name for the output. */
export interface RawRequest {
  kind: string;
  bytes: Buffer;
}

/** A response. */
export interface TimedResponse {
  kind: string;
  status: number;
  hasRetryAfter: boolean;
  /** Milliseconds since the request was due, including the wait for a connection (`ms`), and since it was sent (`sentMs`). */
  ms: number;
  sentMs: number;
}

export interface LoadOptions {
  url: string;
  next: () => RawRequest;
  onResponse: (response: TimedResponse) => void;
  maxConnections: number;
}

interface Connection {
  socket: Socket;
  kind: string;
  dueAt: number;
  sentAt: number;
  text: string;
}

export class OpenLoop {
  readonly #options: LoadOptions;
  readonly #idle: Connection[] = [];
  readonly #all = new Set<Connection>();
  /** The due times of requests without a connection, starting at `#first`. */
  #waiting: number[] = [];
  #first = 0;
  #isOver = false;
  /** Connections that were closed unexpectedly: there should be none. */
  broken = 0;

  constructor(options: LoadOptions) {
    this.#options = options;
  }

  /** Due requests without a response. */
  get open(): number {
    return this.#waiting.length - this.#first + this.#all.size - this.#idle.length;
  }

  /** Uses a fixed number of connections. Each sends its next request after a response. */
  async closed(connections: number, forMs: number): Promise<void> {
    const until = performance.now() + forMs;
    const { onResponse } = this.#options;
    const onEach = () => {
      if (performance.now() < until) this.#add(performance.now());
    };
    this.#options.onResponse = (response) => {
      onResponse(response);
      onEach();
    };
    for (let n = 0; n < connections; n += 1) this.#add(performance.now());
    while (performance.now() < until || this.open > 0) await later();
    this.#options.onResponse = onResponse;
  }

  /** Sends requests at an even rate for a time. Resolves at the end of that time, without waiting for responses. */
  async at(perSecond: number, forMs: number): Promise<void> {
    const from = performance.now();
    for (let sent = 0; ; ) {
      const sinceMs = performance.now() - from;
      if (sinceMs >= forMs) return;
      for (; sent < (sinceMs * perSecond) / 1_000; sent += 1) this.#add(from + (sent * 1_000) / perSecond);
      await later();
    }
  }

  /**
   * Opens all connections, a few at a time. libuv accepts one connection in each turn of the event loop, so the last of many
   * simultaneous connections would wait for many turns, which is not what we measure.
   */
  async warm(): Promise<void> {
    while (this.#all.size < this.#options.maxConnections) {
      for (let n = 0; n < 10; n += 1) this.#open();
      const isConnecting = ({ socket }: Connection) => socket.connecting;
      while ([...this.#all].some(isConnecting)) await later();
    }
  }

  /** Drops the due requests that wait for a connection. */
  forget(): void {
    this.#waiting = [];
    this.#first = 0;
  }

  /** Resolves when all requests have a response. */
  async drained(): Promise<void> {
    while (this.open > 0) await later();
  }

  end(): void {
    this.#isOver = true;
    for (const { socket } of this.#all) socket.destroy();
  }

  #add(dueAt: number): void {
    const connection = this.#idle.pop();
    if (connection !== undefined) this.#send(connection, dueAt);
    else {
      this.#waiting.push(dueAt);
      if (this.#all.size < this.#options.maxConnections) this.#open();
    }
  }

  #send(connection: Connection, dueAt: number): void {
    connection.dueAt = dueAt;
    const { kind, bytes } = this.#options.next();
    connection.kind = kind;
    connection.sentAt = performance.now();
    connection.socket.write(bytes);
  }

  #open(): void {
    const { hostname, port } = new URL(this.#options.url);
    const socket = connect({ host: hostname, port: Number(port), noDelay: true });
    const connection: Connection = { socket, kind: '', dueAt: 0, sentAt: 0, text: '' };
    this.#all.add(connection);
    socket.setEncoding('latin1');
    socket.on('connect', () => this.#rest(connection));
    socket.on('data', (text: string) => this.#receive(connection, text));
    socket.on('error', () => undefined);
    socket.on('close', () => {
      this.#all.delete(connection);
      const place = this.#idle.indexOf(connection);
      if (place >= 0) this.#idle.splice(place, 1);
      else if (!this.#isOver) this.broken += 1;
    });
  }

  #rest(connection: Connection): void {
    const dueAt = this.#waiting[this.#first];
    if (dueAt !== undefined) this.#first += 1;
    // Removing the first element of a long array moves all others.
    if (this.#first > 10_000) this.#waiting = this.#waiting.slice(this.#first);
    if (this.#first > 10_000) this.#first = 0;
    if (dueAt === undefined) this.#idle.push(connection);
    else this.#send(connection, dueAt);
  }

  #receive(connection: Connection, text: string): void {
    connection.text += text;
    const headEnd = connection.text.indexOf('\r\n\r\n');
    if (headEnd < 0) return;
    const head = connection.text.slice(0, headEnd).toLowerCase();
    const length = /\r\ncontent-length: (\d+)/.exec(head)?.[1];
    const isWhole =
      length === undefined
        ? connection.text.endsWith('0\r\n\r\n')
        : connection.text.length >= headEnd + 4 + Number(length);
    if (!isWhole) return;
    connection.text = '';
    const now = performance.now();
    const { kind, dueAt, sentAt } = connection;
    const status = Number(head.slice(9, 12));
    const hasRetryAfter = head.includes('\r\nretry-after: ');
    this.#options.onResponse({ kind, status, hasRetryAfter, ms: now - dueAt, sentMs: now - sentAt });
    this.#rest(connection);
  }
}

function later(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 1));
}
