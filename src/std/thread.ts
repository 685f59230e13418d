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

/** How long a thread is kept without work. A new one takes 50 ms to start; each keeps 25 to 75 MB. */
const IDLE_MS = 15_000;

/** Starts a thread when there is work for it, and ends it when there was none for a while. */
export class ThreadOnDemand<To, From> {
  readonly #start: () => Thread<To, From>;
  readonly #closing: To;
  readonly #onDied: (cause: Error) => void;
  #thread: Thread<To, From> | undefined;
  /** Pending work by thread, because work may end after its thread. */
  readonly #work = new Map<Thread<To, From>, number>();
  #idle: NodeJS.Timeout | undefined;

  /**
   * @param options.closing the message after which the thread ends
   * @param options.onDied called when a thread ends without having been asked to
   */
  constructor(options: { start: () => Thread<To, From>; closing: To; onDied: (cause: Error) => void }) {
    this.#start = options.start;
    this.#closing = options.closing;
    this.#onDied = options.onDied;
  }

  /** Returns the thread, which stays until `done` is called with it. */
  take(): Thread<To, From> {
    clearTimeout(this.#idle);
    const thread = this.#thread ?? this.#open();
    this.#work.set(thread, (this.#work.get(thread) ?? 0) + 1);
    return thread;
  }

  done(thread: Thread<To, From>): void {
    const left = (this.#work.get(thread) ?? 0) - 1;
    if (left > 0) this.#work.set(thread, left);
    else this.#work.delete(thread);
    if (left > 0 || thread !== this.#thread) return;
    this.#idle = setTimeout(() => void this.close(), IDLE_MS).unref();
  }

  /** Ends the thread after its current work. Calling it twice is harmless. */
  async close(): Promise<void> {
    clearTimeout(this.#idle);
    const thread = this.#thread;
    this.#thread = undefined;
    thread?.send(this.#closing);
    await thread?.ended;
  }

  #open(): Thread<To, From> {
    const thread = this.#start();
    this.#thread = thread;
    thread.ended.then((cause) => {
      if (this.#thread !== thread) return;
      this.#thread = undefined;
      this.#onDied(cause);
    });
    return thread;
  }
}
