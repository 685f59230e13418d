/** The main thread's side of the body thread, which starts with the first body and ends after a minute without one. */
import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { Logger } from '../observe/log.ts';
import { FairPlaces } from '../std/fair-share.ts';
import { onAbort } from '../std/stop-order.ts';
import type { BodyThreadData, FromBodies, ToBodies } from './body-thread.ts';
import { type Body, VersionGoneError } from './read.ts';

/** Bodies written at a time: a team alone has three of them written. In the thread teams take turns page by page. */
const MAX_WRITING = 4;
/** The thread costs some 10 MB, and 50 ms to start. */
const IDLE_MS = 60_000;

interface Asked {
  onLength(length: number): void;
  resolve(ended: 'complete' | 'not_written'): void;
  reject(error: Error): void;
}

interface Writing {
  fd: number;
  body: Body;
  onLength(length: number): void;
  signal: AbortSignal;
}

export class BodyWriter {
  readonly #open: () => Worker;
  readonly #log: Logger;
  #thread: { worker: Worker; bodies: Map<number, Asked>; exited: Promise<unknown> } | undefined;
  readonly #places = new FairPlaces({ places: MAX_WRITING });
  #count = 0;
  #idle: NodeJS.Timeout | undefined;

  /** @param options.open starts the thread; tests pass their own */
  constructor({ databaseUrl, log, open }: { databaseUrl: string; log: Logger; open?: () => Worker }) {
    this.#open = open ?? (() => openThread(databaseUrl));
    this.#log = log;
  }

  /**
   * Writes a body into an open file, which stays open, when it is its team's turn; `onLength` is called with its length
   * so far. Settles when nothing writes to the file any more: `not_written` when the signal ended it, writing failed, or
   * the thread died.
   *
   * @throws VersionGoneError, or an Error when the records could not be read
   */
  async write(input: Writing): Promise<'complete' | 'not_written'> {
    const { promise: aborted, resolve } = Promise.withResolvers<undefined>();
    const forget = onAbort(input.signal, () => resolve(undefined));
    const turn = this.#places.take(input.body.place.teamId);
    const leave = await Promise.race([turn, aborted]);
    forget();
    if (leave === undefined) {
      void turn.then((late) => late());
      return 'not_written';
    }
    return this.#write(input).finally(leave);
  }

  #write(input: Writing): Promise<'complete' | 'not_written'> {
    clearTimeout(this.#idle);
    const thread = this.#thread ?? this.#start();
    this.#count += 1;
    const number = this.#count;
    const { promise, resolve, reject } = Promise.withResolvers<'complete' | 'not_written'>();
    thread.bodies.set(number, { onLength: input.onLength, resolve, reject });
    const tell = (message: ToBodies) => thread.worker.postMessage(message);
    tell({ body: number, begin: input.body, fd: input.fd });
    const stop = () => tell({ body: number, stop: true });
    input.signal.addEventListener('abort', stop, { once: true });
    if (input.signal.aborted) stop();
    return promise.finally(() => {
      input.signal.removeEventListener('abort', stop);
      clearTimeout(this.#idle);
      this.#idle = setTimeout(() => {
        if (this.#thread?.bodies.size === 0) void this.close();
      }, IDLE_MS).unref();
    });
  }

  /** Ends the thread; call it when nothing is being written. Calling it twice is harmless. */
  async close(): Promise<void> {
    clearTimeout(this.#idle);
    const thread = this.#thread;
    this.#thread = undefined;
    thread?.worker.postMessage({ close: true } satisfies ToBodies);
    await thread?.exited;
  }

  #start() {
    const worker = this.#open();
    const bodies = new Map<number, Asked>();
    worker.on('message', (message: FromBodies) => hear(bodies, message));
    worker.on('error', (err) => this.#log.error({ err }, 'bodies.died'));
    const exited = new Promise<void>((resolve) => worker.once('exit', () => resolve()));
    const thread = { worker, bodies, exited };
    exited.then(() => {
      if (this.#thread === thread) this.#thread = undefined;
      for (const body of bodies.values()) body.resolve('not_written');
      bodies.clear();
    });
    this.#thread = thread;
    return thread;
  }
}

/** Starts the body thread on a database. */
export function openThread(databaseUrl: string): Worker {
  // The extension of this file, so that compiled code finds the compiled thread.
  const script = new URL(`./body-thread${extname(import.meta.url)}`, import.meta.url);
  return new Worker(script, { workerData: { databaseUrl } satisfies BodyThreadData });
}

function hear(bodies: Map<number, Asked>, message: FromBodies): void {
  const body = bodies.get(message.body);
  if ('length' in message) {
    body?.onLength(message.length);
    return;
  }
  bodies.delete(message.body);
  if ('ended' in message) body?.resolve(message.ended);
  else {
    const { gone, sentence } = message.failed;
    body?.reject(gone ? new VersionGoneError(sentence) : new Error(sentence));
  }
}
