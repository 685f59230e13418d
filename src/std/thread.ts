/** The main thread's side of a worker thread that responds to numbered calls. */
import type { Worker } from 'node:worker_threads';

/** Thrown if the thread ended before it responded to a call. */
export class ThreadEndedError extends Error {
  override readonly name = 'ThreadEndedError';
}

/** Sends calls to a worker thread, and matches its messages with the calls by their numbers. */
export class Thread<To, From> {
  /** Resolves when the thread has ended, with the error that says why. */
  readonly ended: Promise<ThreadEndedError>;
  readonly #worker: Worker;
  readonly #calls = new Map<number, { receive(message: From): void; reject(error: Error): void }>();
  #end: ThreadEndedError | undefined;

  /**
   * @param what the name of the thread in the message of `ThreadEndedError`
   * @param numberOf returns the number of the call that a message belongs to
   */
  constructor(worker: Worker, what: string, numberOf: (message: From) => number) {
    this.#worker = worker;
    const ended = Promise.withResolvers<ThreadEndedError>();
    this.ended = ended.promise;
    let cause: Error | undefined;
    worker.on('error', (error) => {
      cause = error as Error;
    });
    worker.on('message', (message: From) => this.#calls.get(numberOf(message))?.receive(message));
    worker.on('exit', () => {
      const why = cause === undefined ? '' : `: ${cause.message}`;
      this.#end = new ThreadEndedError(`${what} has ended${why}`, { cause });
      // `ended` is resolved before the calls are rejected, so that their callers find a new thread.
      ended.resolve(this.#end);
      for (const call of this.#calls.values()) call.reject(this.#end);
      this.#calls.clear();
    });
  }

  /** Number of pending calls. */
  get calls(): number {
    return this.#calls.size;
  }

  send(message: To): void {
    this.#worker.postMessage(message);
  }

  /**
   * Sends a message. `read` is called with each response until it returns a result or throws.
   *
   * @throws ThreadEndedError, or the error of `read`
   */
  call<Result>(number: number, message: To, read: (response: From) => Result | undefined): Promise<Result> {
    if (this.#end !== undefined) return Promise.reject(this.#end);
    const { promise, resolve, reject } = Promise.withResolvers<Result>();
    const receive = (response: From) => {
      try {
        const result = read(response);
        if (result === undefined) return;
        resolve(result);
      } catch (error) {
        reject(error);
      }
      this.#calls.delete(number);
    };
    this.#calls.set(number, { receive, reject });
    this.send(message);
    return promise;
  }
}
