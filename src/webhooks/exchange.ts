/** Sends one POST request and reads the start of its response. Uses undici's `dispatch`, without streams. */
import type { IncomingHttpHeaders } from 'node:http';
import { performance } from 'node:perf_hooks';
import type { Dispatcher } from 'undici';
import type { AttemptOutcome } from '../model/delivery.ts';
import { BlockedAddressError, connectionOf, type RequestTrace, traceRequest } from '../net/dispatcher.ts';
import { ResolveError } from '../net/resolver.ts';

/** Maximum number of interim responses (1xx) before the final response. */
const MAX_INTERIM = 32;
/**
 * Maximum number of bytes that are read from a response, so that an endpoint cannot prolong an attempt with an endless
 * response.
 */
const MAX_READ_BYTES = 64 * 1024;
/** Size of the excerpt of a response in the log. */
const KEPT_BYTES = 2 * 1024;

export class Exchange implements Dispatcher.DispatchHandler {
  trace: RequestTrace;
  status: number | null = null;
  headers: IncomingHttpHeaders = {};
  firstByteMs: number | null = null;
  readonly #dispatcher: Dispatcher;
  readonly #options: Dispatcher.DispatchOptions;
  readonly #body: Buffer;
  readonly #excerpt = new ResponseExcerpt();
  readonly #response = Promise.withResolvers<string>();
  #controller: Dispatcher.DispatchController | undefined;
  #interim = 0;
  #isRetried = false;
  #isOver = false;
  /** The error with which undici must abort the request, if the exchange ends before undici starts the request. */
  #abortError: Error | undefined;

  /** Sends the request immediately. There is no timeout; the caller ends an exchange that takes too long with `end`. */
  constructor(
    dispatcher: Dispatcher,
    request: { origin: string; path: string; headers: string[]; body: Buffer },
  ) {
    this.#dispatcher = dispatcher;
    this.#options = { ...request, method: 'POST', headersTimeout: 0, bodyTimeout: 0 };
    this.#body = request.body;
    this.trace = traceRequest(this.#body);
    dispatcher.dispatch(this.#options, this);
  }

  /** The start of the response body as text. Rejects with undici's error, or with the error passed to `end`. */
  get response(): Promise<string> {
    return this.#response.promise;
  }

  /** Ends the exchange immediately, in any phase. */
  end(error: Error): void {
    if (this.#isOver) return;
    this.#response.reject(error);
    this.#abort(error);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    // Undici calls this once the connection is established. If the exchange has ended by then, nothing is sent.
    if (this.#abortError === undefined) this.#controller = controller;
    else controller.abort(this.#abortError);
  }

  onResponseStart(_: unknown, status: number, headers: IncomingHttpHeaders): void {
    if (status >= 200) {
      this.firstByteMs = performance.now();
      this.status = status;
      this.headers = headers;
      return;
    }
    this.#interim += 1;
    if (this.#interim <= MAX_INTERIM) return;
    const sentence = `The endpoint sent more than ${MAX_INTERIM} interim responses (1xx) but no final response`;
    this.end(new EndedError('protocol', sentence));
  }

  onResponseData(_: unknown, chunk: Buffer): void {
    if (this.#isOver || this.#excerpt.add(chunk)) return;
    this.#response.resolve(this.#excerpt.text(this.headers['content-encoding']));
    this.#abort(new EndedError('protocol', 'The rest of the response is not needed'));
  }

  onResponseEnd(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#response.resolve(this.#excerpt.text(this.headers['content-encoding']));
  }

  /**
   * An endpoint may close a kept-alive connection just as a request is written to the connection. The endpoint has not
   * read this request, so the request is sent again instead of counting as a failed attempt.
   */
  onResponseError(_: unknown, error: Error): void {
    if (this.#isOver) return;
    const { reused } = this.trace;
    if (reused && this.status === null && !this.#isRetried && endedWithoutResponse(error)) {
      this.#isRetried = true;
      this.trace = traceRequest(this.#body);
      this.#controller = undefined;
      this.#dispatcher.dispatch(this.#options, this);
      return;
    }
    this.#isOver = true;
    this.#response.reject(error);
  }

  /** Aborts the request, which closes the connection. */
  #abort(error: Error): void {
    this.#isOver = true;
    this.#abortError = error;
    this.#controller?.abort(error);
  }
}

/** The start of a response body. */
class ResponseExcerpt {
  readonly #kept: Buffer[] = [];
  #bytes = 0;

  /** Returns whether to read more. */
  add(chunk: Buffer): boolean {
    // The chunk is copied, because a slice would keep the memory of the whole chunk.
    if (this.#bytes < KEPT_BYTES) this.#kept.push(Buffer.from(chunk.subarray(0, KEPT_BYTES - this.#bytes)));
    this.#bytes += chunk.length;
    return this.#bytes < MAX_READ_BYTES;
  }

  /** Returns the first 2 KiB of the body as text. For a compressed response, returns only its size and encoding. */
  text(encoding: string | string[] | undefined): string {
    const bytes = this.#bytes;
    // A compressed response is not decompressed, so that a small response cannot expand into a huge one.
    if (encoding !== undefined && encoding !== 'identity') {
      const size = bytes >= MAX_READ_BYTES ? `${MAX_READ_BYTES} bytes or more` : `${bytes} bytes`;
      return `(${size}, ${[encoding].flat().join(', ').slice(0, 100)})`;
    }
    if (bytes === 0) return '';
    const text = new TextDecoder().decode(Buffer.concat(this.#kept), { stream: true });
    // PostgreSQL does not allow NUL in text.
    return text.replaceAll('\0', '\ufffd');
  }
}

interface Failure {
  outcome: Exclude<AttemptOutcome, 'ok' | 'http'>;
  error: string;
}

/** The error with which the service itself ends an attempt: it timed out, or the endpoint exceeded a limit. */
export class EndedError extends Error {
  override readonly name = 'EndedError';
  readonly outcome: 'timeout' | 'protocol';

  constructor(outcome: 'timeout' | 'protocol', sentence: string) {
    super(sentence);
    this.outcome = outcome;
  }
}

const TLS_CODES =
  /^(ERR_TLS_|ERR_SSL_|EPROTO$|CERT_|CRL_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|HOSTNAME_MISMATCH|INVALID_CA|INVALID_PURPOSE|PATH_LENGTH_|ERROR_IN_CERT)/;

/** Sentences for TLS errors by error code. The code is appended to the sentence. */
const TLS_SENTENCES: readonly [RegExp, string][] = [
  [/^CERT_HAS_EXPIRED$/, "The endpoint's certificate has expired. Its operator must renew it"],
  [
    /^CERT_NOT_YET_VALID$/,
    "The endpoint's certificate is not valid yet. Compare the clocks of both machines",
  ],
  [
    /^(DEPTH_ZERO_)?SELF_SIGNED_CERT/,
    "The endpoint's certificate is self-signed. To trust it, start the service with NODE_EXTRA_CA_CERTS set to a file " +
      'that contains the certificate',
  ],
  [
    /^UNABLE_TO_/,
    "The endpoint's certificate was issued by an unknown authority, or the endpoint does not send its intermediate " +
      'certificates. To trust your own authority, start the service with NODE_EXTRA_CA_CERTS set to a file with its ' +
      'certificate',
  ],
  [/^CERT_REVOKED$/, "The endpoint's certificate has been revoked. Its operator must replace it"],
  [
    /WRONG_VERSION_NUMBER$|PACKET_LENGTH_TOO_LONG$|HTTP_REQUEST$|INVALID_RECORD|^EPROTO$/,
    'The endpoint does not use TLS on this port. Check the port, or whether the URL should start with http://',
  ],
];

const CONNECT_SENTENCES: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'The connection was refused: nothing listens on this address and port',
  ECONNRESET: 'The connection was reset while it was being established',
  EHOSTUNREACH: 'The host cannot be reached from this machine',
  ENETUNREACH: 'The network of this address cannot be reached from this machine',
  EADDRNOTAVAIL:
    'The connection failed: this machine has no free port, or no address of this kind (IPv4 or IPv6)',
  EMFILE:
    'The connection failed: the service has too many open files and connections. Raise its limit (`ulimit -n`)',
};

const MAX_CHARACTERS = 300;

/** @param error the error that the dispatcher or the reader of the response has thrown */
export function failureOf(error: unknown): Failure {
  const { outcome, error: sentence } = named(error);
  return {
    outcome,
    error: sentence.length > MAX_CHARACTERS ? `${sentence.slice(0, MAX_CHARACTERS)}…` : sentence,
  };
}

/**
 * Whether the connection ended before any byte of a response. On a kept-alive connection, this usually means that the
 * endpoint closed the connection while the request was being written, and has not read the request.
 */
function endedWithoutResponse(error: unknown): boolean {
  const { code = '', message } = error as NodeJS.ErrnoException;
  if (code === 'UND_ERR_SOCKET') return !isImproper(message);
  return code === 'ECONNRESET' || code === 'EPIPE';
}

function named(error: unknown): Failure {
  if (error instanceof BlockedAddressError) return { outcome: 'blocked', error: error.message };
  if (error instanceof ResolveError) return { outcome: 'dns', error: error.message };
  if (error instanceof EndedError) return { outcome: error.outcome, error: error.message };
  const { code = '', message, name, syscall } = error as NodeJS.ErrnoException;
  // If the connection attempt reached the endpoint, it was TLS that failed.
  const reached = connectionOf(error)?.connectedMs ?? null;
  if (reached !== null && code === 'UND_ERR_CONNECT_TIMEOUT') {
    return {
      outcome: 'timeout',
      error: 'The endpoint accepted the connection, but the TLS handshake timed out',
    };
  }
  if (reached !== null && (code === 'ECONNRESET' || code === 'EPIPE')) {
    return { outcome: 'tls', error: 'The endpoint closed the connection during the TLS handshake' };
  }
  if (code === 'UND_ERR_CONNECT_TIMEOUT' || (syscall === 'connect' && code === 'ETIMEDOUT')) {
    return {
      outcome: 'timeout',
      error: 'The connection timed out: nothing responds at this address, or a firewall blocks it',
    };
  }
  if (TLS_CODES.test(code)) return { outcome: 'tls', error: tlsSentence(code, error) };
  if (code === 'ECONNREFUSED' || syscall === 'connect') {
    return { outcome: 'connect', error: CONNECT_SENTENCES[code] ?? `The connection failed: ${code}` };
  }
  // After a response with status 101, undici throws no error of its own, only an assertion error.
  if ((code === 'UND_ERR_SOCKET' && isImproper(message)) || code === 'ERR_ASSERTION') {
    return {
      outcome: 'protocol',
      error:
        'The endpoint returned HTTP 100 (Continue) or 101 (Switching Protocols), which the request did not ask for',
    };
  }
  if (code === 'UND_ERR_SOCKET' || code === 'ECONNRESET' || code === 'EPIPE' || code === 'UND_ERR_ABORTED') {
    const how = code === 'ECONNRESET' ? 'reset' : 'closed';
    return { outcome: 'protocol', error: `The connection was ${how} before the response was complete` };
  }
  if (name === 'HTTPParserError') {
    return { outcome: 'protocol', error: `The response is not valid HTTP/1.1: ${message}` };
  }
  if (code === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH') {
    return {
      outcome: 'protocol',
      error: 'The length of the response differs from its content-length header',
    };
  }
  if (code === 'UND_ERR_HEADERS_OVERFLOW') {
    return { outcome: 'protocol', error: 'The response headers are larger than 16 KiB' };
  }
  return { outcome: 'protocol', error: `The request failed: ${message || code || String(error)}` };
}

function tlsSentence(code: string, error: unknown): string {
  const { reason } = error as { reason?: unknown };
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') {
    return `The endpoint's certificate is for another host: ${reason ?? code}`;
  }
  const sentence = TLS_SENTENCES.find(([form]) => form.test(code))?.[1];
  return sentence === undefined ? `The TLS handshake failed: ${code}` : `${sentence} (${code})`;
}

/** Matches undici's messages about the responses 100 and 101. */
function isImproper(message: string): boolean {
  return message === 'bad response' || message === 'bad upgrade';
}
