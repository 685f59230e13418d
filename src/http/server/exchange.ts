/** A request and its reply: thin wrappers around the objects of `node:http`. */
import { randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { finished, type Readable } from 'node:stream';
import type { TrustedProxies } from '../../net/host.ts';

/** A request, and what trusted proxies report about its client. */
export class Request {
  readonly raw: IncomingMessage;
  /** The client's `x-request-id` if it is safe to log, otherwise a new id. */
  readonly id: string;
  readonly #proxies: TrustedProxies | false;

  constructor(raw: IncomingMessage, proxies: TrustedProxies | false) {
    this.raw = raw;
    this.#proxies = proxies;
    const sent = raw.headers['x-request-id'];
    this.id = typeof sent === 'string' && /^[A-Za-z0-9._-]{1,128}$/.test(sent) ? sent : randomUUID();
  }

  get headers(): IncomingHttpHeaders {
    return this.raw.headers;
  }

  get method(): string {
    return this.raw.method ?? '';
  }

  get socket(): Socket {
    return this.raw.socket;
  }

  /**
   * The address that the last trusted proxy reports in `x-forwarded-for`, unchanged; otherwise the peer's address.
   * Undefined if the connection was closed before the first read.
   */
  get ip(): string | undefined {
    const peer = this.socket.remoteAddress;
    const proxies = this.#proxies;
    if (!proxies || peer === undefined) return peer;
    const reported = String(this.headers['x-forwarded-for'] ?? '').split(',');
    const addresses = [peer, ...reported.map((one) => one.trim()).reverse()].filter(Boolean);
    return addresses.find((address, hop) => hop === addresses.length - 1 || !proxies.trusts(address, hop));
  }

  /** The protocol that the client used to reach this service or the proxy in front of it: `http` or `https`. */
  get protocol(): string {
    return this.#forwarded('x-forwarded-proto') ?? ('encrypted' in this.socket ? 'https' : 'http');
  }

  /** The host and port that the client requested; empty if the client named none. */
  get host(): string {
    return this.#forwarded('x-forwarded-host') ?? this.headers.host ?? '';
  }

  /** The last value of a header, if the peer is a trusted proxy and sent one. */
  #forwarded(name: string): string | undefined {
    const value = this.headers[name];
    const peer = this.socket.remoteAddress;
    const isTrusted = this.#proxies && peer !== undefined && this.#proxies.trusts(peer, 0);
    return value && isTrusted ? String(value).split(',').at(-1)?.trim() : undefined;
  }
}

/** Bodies that are sent unchanged. Anything else is sent as JSON. */
type Body = string | Uint8Array | Readable | undefined;

/**
 * The reply to a request: collects status, headers and body. Nothing is written before the operation has ended, so that
 * an error can still replace everything.
 */
export class Reply {
  readonly request: Request;
  readonly raw: ServerResponse;
  statusCode = 200;
  /** The argument of `send`. */
  body: unknown;
  /** Names and values in turns, as Node takes them. A reply has about ten headers. */
  readonly #headers: (string | number)[] = [];
  #isHijacked = false;

  constructor(request: Request, raw: ServerResponse) {
    this.request = request;
    this.raw = raw;
  }

  code(status: number): this {
    this.statusCode = status;
    return this;
  }

  /** Sets a header. Names are lower case everywhere. */
  header(name: string, value: string | number): this {
    const at = this.#find(name);
    if (at === -1) this.#headers.push(name, value);
    else this.#headers[at + 1] = value;
    return this;
  }

  headers(headers: Readonly<Record<string, string | number>>): this {
    for (const name in headers) this.header(name, headers[name] as string | number);
    return this;
  }

  type(contentType: string): this {
    return this.header('content-type', contentType);
  }

  /** Adds request headers to `vary`, because the response depends on them. */
  vary(...names: readonly string[]): this {
    const known = this.getHeader('vary');
    if (known === undefined) return this.header('vary', names.join(', '));
    const listed = String(known).split(', ');
    for (const name of names) if (!listed.includes(name)) listed.push(name);
    return this.header('vary', listed.join(', '));
  }

  getHeader(name: string): string | number | undefined {
    const at = this.#find(name);
    return at === -1 ? undefined : this.#headers[at + 1];
  }

  getHeaders(): Record<string, string | number> {
    const headers: Record<string, string | number> = {};
    for (let at = 0; at < this.#headers.length; at += 2) {
      headers[this.#headers[at] as string] = this.#headers[at + 1] as string | number;
    }
    return headers;
  }

  hasHeader(name: string): boolean {
    return this.#find(name) !== -1;
  }

  removeHeader(name: string): this {
    const at = this.#find(name);
    if (at !== -1) this.#headers.splice(at, 2);
    return this;
  }

  /** The place of a header; -1 if it is not set. */
  #find(name: string): number {
    const headers = this.#headers;
    for (let at = 0; at < headers.length; at += 2) if (headers[at] === name) return at;
    return -1;
  }

  /** Redirects the client temporarily. */
  redirect(location: string): this {
    return this.code(302).header('location', location);
  }

  /** Sets the body: text, bytes or a stream; any other value is sent as JSON. */
  send(body?: unknown): this {
    this.body = body;
    return this;
  }

  /** Lets the caller write to `raw` directly. */
  hijack(): void {
    this.#isHijacked = true;
  }

  /** Whether the response is written to `raw` directly. */
  get sent(): boolean {
    return this.#isHijacked;
  }

  /**
   * Writes the reply.
   *
   * @param body requires that `content-type` is set
   * @param failed called when a stream fails before its first byte. If a stream fails later, the connection is
   *   destroyed, so that an incomplete body never looks complete
   */
  write(body: Body, failed: (error: unknown) => void): void {
    const { raw, statusCode } = this;
    // Frees the body, because a connection keeps its latest reply until the next one.
    this.body = undefined;
    if (statusCode === 204) this.removeHeader('content-type');
    if (body === undefined || statusCode === 204) {
      const hasLength = statusCode !== 204 && statusCode !== 304 && this.request.method !== 'HEAD';
      if (hasLength) this.header('content-length', 0);
      raw.writeHead(statusCode, this.#headers).end();
    } else if (typeof body === 'string' || body instanceof Uint8Array) {
      this.header('content-length', Buffer.byteLength(body));
      raw.writeHead(statusCode, this.#headers).end(body);
    } else {
      this.#pipe(body, failed);
    }
  }

  /** Pauses the stream while the client is slow, and destroys it when the client disconnects. */
  #pipe(body: Readable, failed: (error: unknown) => void): void {
    const { raw } = this;
    body.once('readable', () => {
      if (!raw.headersSent) raw.writeHead(this.statusCode, this.#headers);
      body.pipe(raw);
    });
    finished(body, (error) => {
      if (error && !raw.headersSent && !raw.destroyed) failed(error);
      else if (error) raw.destroy();
    });
    if (raw.destroyed) body.destroy();
    else raw.once('close', () => body.destroy());
  }
}

/** Aborts with `reason` when the client disconnects or the response is complete. */
export function disconnectSignal({ reply }: { reply: Reply }, reason?: Error): AbortSignal {
  const gone = new AbortController();
  if (reply.raw.destroyed) gone.abort(reason);
  reply.raw.once('close', () => gone.abort(reason));
  return gone.signal;
}
