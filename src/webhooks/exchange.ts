/** One request and the start of its answer, as undici tells of them: no stream is made for an answer of a few bytes. */
import type { IncomingHttpHeaders } from 'node:http';
import { performance } from 'node:perf_hooks';
import type { Dispatcher } from 'undici';
import { type RequestTrace, traceRequest } from '../net/connection.ts';
import { Answer } from './answer.ts';
import { CutOffError, endedUnanswered } from './failure.ts';

/** Answers 1xx before the real one; more are a flood that would only cost time. */
const MAX_INTERIM = 32;

export class Exchange implements Dispatcher.DispatchHandler {
  trace: RequestTrace;
  status: number | null = null;
  headers: IncomingHttpHeaders = {};
  firstByteMs: number | null = null;
  readonly #dispatcher: Dispatcher;
  readonly #options: Dispatcher.DispatchOptions;
  readonly #body: Buffer;
  readonly #answer = new Answer();
  readonly #answered = Promise.withResolvers<string>();
  #controller: Dispatcher.DispatchController | undefined;
  #interim = 0;
  #isOnceMore = false;
  #isOver = false;
  /** With what undici is to end a request that is over for us. */
  #endedWith: Error | undefined;

  /** Sends at once. There is no limit of time but `cutOff`. */
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

  /** The start of the answer's body as text. Rejects with what undici throws, or with what it was cut off with. */
  get answered(): Promise<string> {
    return this.#answered.promise;
  }

  /** Ends it now, wherever it is. */
  cutOff(error: Error): void {
    if (this.#isOver) return;
    this.#answered.reject(error);
    this.#end(error);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    // Undici asks only once the connection is made. What is over by then is not sent.
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
    if (this.#isOver || this.#answer.add(chunk)) return;
    this.#answered.resolve(this.#answer.text(this.headers['content-encoding']));
    this.#end(new CutOffError('protocol', 'Enough of the answer was read'));
  }

  onResponseEnd(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#answered.resolve(this.#answer.text(this.headers['content-encoding']));
  }

  /**
   * An endpoint may close a connection that was kept open just as a request is written to it: that one was never
   * read, so it goes once more instead of becoming a failed attempt.
   */
  onResponseError(_: unknown, error: Error): void {
    if (this.#isOver) return;
    const { reused } = this.trace;
    if (reused && this.status === null && !this.#isOnceMore && endedUnanswered(error)) {
      this.#isOnceMore = true;
      this.trace = traceRequest(this.#body);
      this.#controller = undefined;
      this.#dispatcher.dispatch(this.#options, this);
      return;
    }
    this.#isOver = true;
    this.#answered.reject(error);
  }

  /** Destroys the connection, for its sender must not decide how long an attempt takes. */
  #end(error: Error): void {
    this.#isOver = true;
    this.#endedWith = error;
    this.#controller?.abort(error);
  }
}
