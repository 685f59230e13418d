/** The main side of a worker thread that answers calls by their numbers. */
import { extname } from 'node:path';
import { Worker, type WorkerOptions } from 'node:worker_threads';

/**
 * Starts the thread of a file beside the caller's, with its ending, so that compiled code finds the compiled thread.
 *
 * @param caller `import.meta.url`
 */
export function startWorker(caller: string, name: string, options: WorkerOptions): Worker {
  return new Worker(new URL(`./${name}${extname(caller)}`, caller), options);
}

/** The thread has ended, so that a call gets no answer. */
export class ThreadEndedError extends Error {
  override readonly name = 'ThreadEndedError';
}

export class Thread<To, From> {
  /** Resolves with the reason when the thread has ended. */
  readonly ended: Promise<ThreadEndedError>;
  readonly #worker: Worker;
  readonly #calls = new Map<number, { hear(message: From): void; reject(error: Error): void }>();
  #end: ThreadEndedError | undefined;

  /**
   * @param what begins the sentence that it has ended
   * @param numberOf the call that a message answers
   */
  constructor(worker: Worker, what: string, numberOf: (message: From) => number) {
    this.#worker = worker;
    const ended = Promise.withResolvers<ThreadEndedError>();
    this.ended = ended.promise;
    let cause: Error | undefined;
    worker.on('error', (error) => {
      cause = error as Error;
    });
    worker.on('message', (message: From) => this.#calls.get(numberOf(message))?.hear(message));
    worker.on('exit', () => {
      const why = cause === undefined ? '' : `: ${cause.message}`;
      this.#end = new ThreadEndedError(`${what} has ended${why}`, { cause });
      // Before the calls are rejected: whatever their callers do next must find a new thread.
      ended.resolve(this.#end);
      for (const call of this.#calls.values()) call.reject(this.#end);
      this.#calls.clear();
    });
  }

  /** How many calls are not answered yet. */
  get calls(): number {
    return this.#calls.size;
  }

  send(message: To): void {
    this.#worker.postMessage(message);
  }

  /**
   * Sends a message, and settles with what `read` makes of the answers: it is given one after the other until it
   * returns something or throws.
   *
   * @throws ThreadEndedError
   */
  call<Result>(number: number, message: To, read: (answer: From) => Result | undefined): Promise<Result> {
    if (this.#end !== undefined) return Promise.reject(this.#end);
    const { promise, resolve, reject } = Promise.withResolvers<Result>();
    const hear = (answer: From) => {
      try {
        const result = read(answer);
        if (result === undefined) return;
        resolve(result);
      } catch (error) {
        reject(error);
      }
      this.#calls.delete(number);
    };
    this.#calls.set(number, { hear, reject });
    this.send(message);
    return promise;
  }
}
