/** One POST request and the start of its response, through undici's `dispatch`: no stream for a few bytes of response. */
import type { IncomingHttpHeaders } from 'node:http';
import { performance } from 'node:perf_hooks';
import type { Dispatcher } from 'undici';
import type { AttemptOutcome } from '../model/delivery.ts';
import { BlockedAddressError, connectionOf, type RequestTrace, traceRequest } from '../net/dispatcher.ts';
import { ResolveError } from '../net/resolver.ts';

/** Interim responses (1xx) accepted before the final one. */
const MAX_INTERIM = 32;
/** No more than this is read of a response, so that its sender does not decide how long an attempt takes. */
const MAX_READ_BYTES = 64 * 1024;
/** How much of a response is kept, for the log. */
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
  readonly #answered = Promise.withResolvers<string>();
  #controller: Dispatcher.DispatchController | undefined;
  #interim = 0;
  #isRetried = false;
  #isOver = false;
  /** The error with which undici is to abort a request that is over for us. */
  #endedWith: Error | undefined;

  /** Sends at once. There is no timeout: the caller ends it by `cutOff`. */
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

  /** The start of the response body as text. Rejects with undici's error, or with the one given to `cutOff`. */
  get answered(): Promise<string> {
    return this.#answered.promise;
  }

  /** Ends the exchange now, in any phase. */
  cutOff(error: Error): void {
    if (this.#isOver) return;
    this.#answered.reject(error);
    this.#end(error);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    // Called once the connection is established. If the exchange is over by then, nothing is sent.
    if (this.#endedWith === undefined) this.#controller = controller;
    else controller.abort(this.#endedWith);
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
    const sentence = `More than ${MAX_INTERIM} interim answers (1xx) came instead of an answer`;
    this.cutOff(new CutOffError('protocol', sentence));
  }

  onResponseData(_: unknown, chunk: Buffer): void {
    if (this.#isOver || this.#excerpt.add(chunk)) return;
    this.#answered.resolve(this.#excerpt.text(this.headers['content-encoding']));
    this.#end(new CutOffError('protocol', 'Enough of the answer was read'));
  }

  onResponseEnd(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#answered.resolve(this.#excerpt.text(this.headers['content-encoding']));
  }

  /**
   * An endpoint may close a kept-alive connection just as a request is written to it. That request was not read, so it
   * is sent once more instead of counting as a failed attempt.
   */
  onResponseError(_: unknown, error: Error): void {
    if (this.#isOver) return;
    const { reused } = this.trace;
    if (reused && this.status === null && !this.#isRetried && endedUnanswered(error)) {
      this.#isRetried = true;
      this.trace = traceRequest(this.#body);
      this.#controller = undefined;
      this.#dispatcher.dispatch(this.#options, this);
      return;
    }
    this.#isOver = true;
    this.#answered.reject(error);
  }

  /** Aborts the request, which destroys the connection. */
  #end(error: Error): void {
    this.#isOver = true;
    this.#endedWith = error;
    this.#controller?.abort(error);
  }
}

/** The start of a response body. */
class ResponseExcerpt {
  readonly #kept: Buffer[] = [];
  #bytes = 0;

  /** Returns whether more should be read. */
  add(chunk: Buffer): boolean {
    // Copied, because a slice would keep the whole chunk in memory.
    if (this.#bytes < KEPT_BYTES) this.#kept.push(Buffer.from(chunk.subarray(0, KEPT_BYTES - this.#bytes)));
    this.#bytes += chunk.length;
    return this.#bytes < MAX_READ_BYTES;
  }

  /** The first 2 KiB as text; of a compressed response only its size and encoding. */
  text(encoding: string | string[] | undefined): string {
    const bytes = this.#bytes;
    // Nothing is decompressed, so that a small response cannot become a huge one.
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

/** The error with which the service itself ends an attempt: it timed out, or the endpoint exceeds a limit. */
export class CutOffError extends Error {
  override readonly name = 'CutOffError';
  readonly outcome: 'timeout' | 'protocol';

  constructor(outcome: 'timeout' | 'protocol', sentence: string) {
    super(sentence);
    this.outcome = outcome;
  }
}

const TLS_CODES =
  /^(ERR_TLS_|ERR_SSL_|EPROTO$|CERT_|CRL_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|HOSTNAME_MISMATCH|INVALID_CA|INVALID_PURPOSE|PATH_LENGTH_|ERROR_IN_CERT)/;

/** Sentences for TLS errors; the code is appended, so that it can be looked up. */
const TLS_SENTENCES: readonly [RegExp, string][] = [
  [/^CERT_HAS_EXPIRED$/, "The endpoint's certificate has expired. It must be renewed there"],
  [/^CERT_NOT_YET_VALID$/, "The endpoint's certificate is not valid yet. Compare the clocks of both sides"],
  [
    /^(DEPTH_ZERO_)?SELF_SIGNED_CERT/,
    "The endpoint's certificate is signed by itself, not by an authority that is trusted here. If it is meant, start " +
      'the service with NODE_EXTRA_CA_CERTS naming a file that holds it',
  ],
  [
    /^UNABLE_TO_/,
    "The endpoint's certificate comes from an authority that is not known here, or the endpoint does not send the " +
      'certificates in between. An authority of your own goes into the file that NODE_EXTRA_CA_CERTS names',
  ],
  [/^CERT_REVOKED$/, "The endpoint's certificate was revoked"],
  [
    /WRONG_VERSION_NUMBER$|PACKET_LENGTH_TOO_LONG$|HTTP_REQUEST$|INVALID_RECORD|^EPROTO$/,
    'No secure connection could be made: the endpoint does not speak TLS at this port. Is the URL meant to be http://?',
  ],
];

const CONNECT_SENTENCES: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'The connection was refused: nothing listens at this address and port',
  ECONNRESET: 'The connection was reset while it was being made',
  EHOSTUNREACH: 'The host cannot be reached from here',
  ENETUNREACH: 'The network of this address cannot be reached from here',
  EADDRNOTAVAIL: 'No connection could be made: this machine has no free port or no address of that kind',
  EMFILE: 'No connection could be made: this process has too many files and connections open',
};

const MAX_CHARACTERS = 300;

/** @param error what the dispatcher threw, or what reading the response threw */
export function failureOf(error: unknown): Failure {
  const { outcome, error: sentence } = named(error);
  return {
    outcome,
    error: sentence.length > MAX_CHARACTERS ? `${sentence.slice(0, MAX_CHARACTERS)}…` : sentence,
  };
}

/**
 * Whether the connection ended before any byte of a response. On a kept-alive connection this usually means that the
 * endpoint closed it while the request was being written, so that the request was not read.
 */
function endedUnanswered(error: unknown): boolean {
  const { code = '', message } = error as NodeJS.ErrnoException;
  if (code === 'UND_ERR_SOCKET') return !isImproper(message);
  return code === 'ECONNRESET' || code === 'EPIPE';
}

function named(error: unknown): Failure {
  if (error instanceof BlockedAddressError) return { outcome: 'blocked', error: error.message };
  if (error instanceof ResolveError) return { outcome: 'dns', error: error.message };
  if (error instanceof CutOffError) return { outcome: error.outcome, error: error.message };
  const { code = '', message, name, syscall } = error as NodeJS.ErrnoException;
  // Set for a failed connection attempt that reached the endpoint: then TLS is what failed.
  const reached = connectionOf(error)?.connectedMs ?? null;
  if (reached !== null && code === 'UND_ERR_CONNECT_TIMEOUT') {
    return { outcome: 'timeout', error: 'The endpoint was reached, but did not agree upon TLS in time' };
  }
  if (reached !== null && (code === 'ECONNRESET' || code === 'EPIPE')) {
    return { outcome: 'tls', error: 'The endpoint closed the connection before TLS was agreed upon' };
  }
  if (code === 'UND_ERR_CONNECT_TIMEOUT' || (syscall === 'connect' && code === 'ETIMEDOUT')) {
    return {
      outcome: 'timeout',
      error: 'No connection could be made in time: nothing answers at this address, or a firewall drops it',
    };
  }
  if (TLS_CODES.test(code)) return { outcome: 'tls', error: tlsSentence(code, error) };
  if (code === 'ECONNREFUSED' || syscall === 'connect') {
    return { outcome: 'connect', error: CONNECT_SENTENCES[code] ?? `No connection could be made: ${code}` };
  }
  // For 101 undici throws no error of its own, only an assertion.
  if ((code === 'UND_ERR_SOCKET' && isImproper(message)) || code === 'ERR_ASSERTION') {
    return {
      outcome: 'protocol',
      error: 'The endpoint answered 100 or 101 (go on, or switch the protocol), which nobody had asked for',
    };
  }
  if (code === 'UND_ERR_SOCKET' || code === 'ECONNRESET' || code === 'EPIPE' || code === 'UND_ERR_ABORTED') {
    const how = code === 'ECONNRESET' ? 'reset' : 'closed';
    return { outcome: 'protocol', error: `The connection was ${how} before the answer was complete` };
  }
  if (name === 'HTTPParserError') {
    return { outcome: 'protocol', error: `The answer is not valid HTTP/1.1: ${message}` };
  }
  if (code === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH') {
    return { outcome: 'protocol', error: 'The answer is not as long as its content-length header says' };
  }
  if (code === 'UND_ERR_HEADERS_OVERFLOW') {
    return { outcome: 'protocol', error: 'The headers of the answer are larger than 16 KiB' };
  }
  return { outcome: 'protocol', error: `The request failed: ${message || code || String(error)}` };
}

function tlsSentence(code: string, error: unknown): string {
  const { reason } = error as { reason?: unknown };
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') {
    return `The endpoint's certificate is for another host: ${reason ?? code}`;
  }
  const sentence = TLS_SENTENCES.find(([form]) => form.test(code))?.[1];
  return sentence === undefined ? `No secure connection could be made: ${code}` : `${sentence} (${code})`;
}

/** Undici's messages for a response 100 or 101. */
function isImproper(message: string): boolean {
  return message === 'bad response' || message === 'bad upgrade';
}
