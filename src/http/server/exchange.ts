/** A request and the reply to it: thin wrappers around what `node:http` hands over. */
import { randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { finished, type Readable } from 'node:stream';
import type { TrustedProxies } from '../../net/host.ts';

/** A request, and what trusted proxies say about its client. */
export class Request {
  readonly raw: IncomingMessage;
  /** The client's own `x-request-id` if it is safe to log, else a new one. */
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
   * What the last trusted proxy reports as the address, as it stands in `x-forwarded-for`; else the peer's. Undefined when
   * the connection was closed before anybody asked.
   */
  get ip(): string | undefined {
    const peer = this.socket.remoteAddress;
    const proxies = this.#proxies;
    if (!proxies || peer === undefined) return peer;
    const reported = String(this.headers['x-forwarded-for'] ?? '').split(',');
    const addresses = [peer, ...reported.map((one) => one.trim()).reverse()].filter(Boolean);
    return addresses.find((address, hop) => hop === addresses.length - 1 || !proxies.trusts(address, hop));
  }

  /** How the client reached us, or the proxy in front of us: `http` or `https`. */
  get protocol(): string {
    return this.#forwarded('x-forwarded-proto') ?? ('encrypted' in this.socket ? 'https' : 'http');
  }

  /** The host, with its port, that the client asked for; empty when it named none. */
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

/** What is sent as it is. Anything else is sent as JSON. */
type Body = string | Uint8Array | Readable | undefined;

/**
 * The reply to a request. It collects status, headers and body; nothing is written before the operation has ended, so that
 * an error can still replace all of it.
 */
export class Reply {
  readonly request: Request;
  readonly raw: ServerResponse;
  statusCode = 200;
  /** What `send` was given. */
  body: unknown;
  #headers: Record<string, string | number> = {};
  #isHijacked = false;

  constructor(request: Request, raw: ServerResponse) {
    this.request = request;
    this.raw = raw;
  }

  code(status: number): this {
    this.statusCode = status;
    return this;
  }

  /** Sets a header. Names are in lower case everywhere. */
  header(name: string, value: string | number): this {
    this.#headers[name] = value;
    return this;
  }

  headers(headers: Readonly<Record<string, string | number>>): this {
    Object.assign(this.#headers, headers);
    return this;
  }

  type(contentType: string): this {
    return this.header('content-type', contentType);
  }

  /** Adds names to `vary`: the headers of a request on which the answer depends. */
  vary(...names: readonly string[]): this {
    const known = String(this.#headers.vary ?? '')
      .split(', ')
      .filter(Boolean);
    return this.header('vary', [...new Set([...known, ...names])].join(', '));
  }

  getHeader(name: string): string | number | undefined {
    return this.#headers[name];
  }

  getHeaders(): OutgoingHttpHeaders {
    return this.#headers;
  }

  hasHeader(name: string): boolean {
    return this.#headers[name] !== undefined;
  }

  removeHeader(name: string): this {
    delete this.#headers[name];
    return this;
  }

  /** Sends the client elsewhere, for this time. */
  redirect(location: string): this {
    return this.code(302).header('location', location);
  }

  /** Says what the body is, if there is one: JSON, unless it is text, bytes or a stream. */
  send(body?: unknown): this {
    this.body = body;
    return this;
  }

  /** From now on the caller writes to `raw` by itself. */
  hijack(): void {
    this.#isHijacked = true;
  }

  /** Whether somebody writes to `raw` by itself. */
  get sent(): boolean {
    return this.#isHijacked;
  }

  /**
   * Writes the reply.
   *
   * @param body as text, bytes or a stream, whose type is set
   * @param failed called when a stream fails before its first byte. After that the connection is cut off: an incomplete
   *   body never looks like a whole one
   */
  write(body: Body, failed: (error: unknown) => void): void {
    const { raw, statusCode } = this;
    const headers = this.#headers;
    // A connection keeps its latest reply until the next one.
    this.body = undefined;
    if (statusCode === 204) delete headers['content-type'];
    if (body === undefined || statusCode === 204) {
      const hasLength = statusCode !== 204 && statusCode !== 304 && this.request.method !== 'HEAD';
      if (hasLength) headers['content-length'] = 0;
      raw.writeHead(statusCode, headers).end();
    } else if (typeof body === 'string' || body instanceof Uint8Array) {
      headers['content-length'] = Buffer.byteLength(body);
      raw.writeHead(statusCode, headers).end(body);
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

/** Aborts when the connection closes, at the latest after the answer; with that reason, if there is one. */
export function disconnectSignal({ reply }: { reply: Reply }, reason?: Error): AbortSignal {
  const gone = new AbortController();
  if (reply.raw.destroyed) gone.abort(reason);
  reply.raw.once('close', () => gone.abort(reason));
  return gone.signal;
}
