/** One POST request and the start of its response, through undici's `dispatch`: no stream for a few bytes of response. */
import type { IncomingHttpHeaders } from 'node:http';
import { performance } from 'node:perf_hooks';
import type { Dispatcher } from 'undici';
import { type RequestTrace, traceRequest } from '../net/dispatcher.ts';
import { CutOffError, endedUnanswered } from './failure.ts';

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
