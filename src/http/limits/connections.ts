/**
 * Limits connections: how many are open in total and per address, and how long clients may take.
 *
 *     connection ──▶ too many in total? ──▶ closed unread; idle connections are closed to make room for the next
 *         └────────▶ too many from its address? ──▶ 503
 */
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { Problem } from '../../model/error.ts';
import { subscriberOf, type TrustedProxies } from '../../net/host.ts';
import type { Logger } from '../../observe/log.ts';
import { refusalBytes } from '../server/client-error.ts';

const MAKE_ROOM_EVERY_MS = 1_000;
const LOG_EVERY_MS = 60_000;

export class ConnectionLimits {
  readonly #most: number;
  readonly #perAddress: number;
  readonly #trustProxy: TrustedProxies | false;
  readonly #log: Logger;
  /** Open connections by address. */
  readonly #open = new Map<string, number>();
  #madeRoomAtMs = Number.NEGATIVE_INFINITY;
  #loggedAtMs = Number.NEGATIVE_INFINITY;
  #refused = 0;

  /** @param input.perAddress does not apply to trusted proxies, which forward requests of many clients */
  constructor(input: { most: number; perAddress: number; trustProxy: TrustedProxies | false; log: Logger }) {
    this.#most = input.most;
    this.#perAddress = input.perAddress;
    this.#trustProxy = input.trustProxy;
    this.#log = input.log;
  }

  /** Limits the connections of a server. */
  follow(server: Server): void {
    server.maxConnections = this.#most;
    // 0 means no limit. The size of headers is limited already, and Node would silently drop headers after the 2,000th,
    // even the key.
    server.maxHeadersCount = 0;
    server.on('connection', (socket: Socket) => this.#begin(socket));
    server.on('drop', () => {
      this.#note('in total');
      const nowMs = performance.now();
      if (nowMs - this.#madeRoomAtMs < MAKE_ROOM_EVERY_MS) return;
      this.#madeRoomAtMs = nowMs;
      server.closeIdleConnections();
    });
  }

  #begin(socket: Socket): void {
    const { remoteAddress } = socket;
    // The connection is already closed.
    if (remoteAddress === undefined) return;
    if (this.#trustProxy !== false && this.#trustProxy.trusts(remoteAddress, 0)) return;
    const address = subscriberOf(remoteAddress);
    const open = (this.#open.get(address) ?? 0) + 1;
    this.#open.set(address, open);
    socket.once('close', () => this.#end(address));
    if (open <= this.#perAddress) return;
    this.#note('from one address');
    // A TLS client cannot read this: it only sees that the connection is closed.
    socket.write(REFUSAL);
    socket.destroySoon();
  }

  #end(address: string): void {
    const open = (this.#open.get(address) ?? 1) - 1;
    if (open === 0) this.#open.delete(address);
    else this.#open.set(address, open);
  }

  #note(where: string): void {
    this.#refused += 1;
    const nowMs = performance.now();
    if (nowMs - this.#loggedAtMs < LOG_EVERY_MS) return;
    this.#loggedAtMs = nowMs;
    this.#log.warn({ refused: this.#refused }, `connections.refused: too many are open ${where}`);
  }
}

const REFUSAL = refusalBytes(
  new Problem('overloaded', {
    sentence:
      'Too many connections are open from this address. Close some, or send several requests over one connection',
  }),
);

/** In milliseconds. */
export interface Timeouts {
  /** Maximum time for the headers of a request, and between the opening of a connection and its first request. */
  headersMs: number;
  /** Maximum time for a request with its body, unless its operation sets `streamsBody`. */
  requestMs: number;
  /** Maximum time between two requests on one connection. */
  keepAliveMs: number;
}

/** How often Node checks for slow requests. A slow request may exceed its timeout by this interval. */
const LOOK_MS = { least: 200, most: 5_000 };

/** The options of Node's server. */
export function serverTimeouts({ headersMs, requestMs }: Timeouts) {
  const headersTimeout = Math.min(headersMs, requestMs);
  return {
    headersTimeout,
    requestTimeout: requestMs,
    connectionsCheckingInterval: Math.max(
      LOOK_MS.least,
      Math.min(LOOK_MS.most, Math.ceil(headersTimeout / 3)),
    ),
    // For the TLS handshake.
    handshakeTimeout: headersTimeout,
  };
}
