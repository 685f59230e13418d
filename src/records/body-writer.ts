/**
 * The main thread's side of the body thread. The thread starts with the first body and ends after a minute without
 * bodies.
 */
import type { Worker } from 'node:worker_threads';
import type { Logger } from '../observe/log.ts';
import { FairPlaces } from '../std/fair-share.ts';
import { startThread } from '../std/own-files.ts';
import { onAbort } from '../std/stop-order.ts';
import { Thread, ThreadEndedError } from '../std/thread.ts';
import type { BodyThreadData, FromBodies, ToBodies } from './body-thread.ts';
import { type Body, VersionGoneError } from './read.ts';

/**
 * Maximum number of bodies written at the same time. A single team may have three of them. In the thread, teams take
 * turns page by page.
 */
const MAX_WRITING = 4;
/** The thread ends after it was idle for this long, because it uses about 10 MB and takes only 50 ms to start. */
const IDLE_MS = 60_000;

interface Writing {
  fd: number;
  body: Body;
  onLength(length: number): void;
  signal: AbortSignal;
}

export class BodyWriter {
  readonly #open: () => Worker;
  readonly #log: Logger;
  #thread: Thread<ToBodies, FromBodies> | undefined;
  readonly #places = new FairPlaces({ places: MAX_WRITING });
  #count = 0;
  #idle: NodeJS.Timeout | undefined;

  /** @param options.open starts the thread; tests pass their own function */
  constructor({ databaseUrl, log, open }: { databaseUrl: string; log: Logger; open?: () => Worker }) {
    this.#open = open ?? (() => openThread(databaseUrl));
    this.#log = log;
  }

  /**
   * Writes a body to an open file when it is the team's turn, without closing the file. Calls `onLength` with the
   * number of bytes so far. Settles when nothing writes to the file anymore. Resolves with `not_written` if the signal
   * was aborted, writing failed, or the thread died.
   *
   * @throws VersionGoneError, or an Error if the records could not be read
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

  async #write({ fd, body, onLength, signal }: Writing): Promise<'complete' | 'not_written'> {
    clearTimeout(this.#idle);
    const thread = this.#thread ?? this.#start();
    this.#count += 1;
    const number = this.#count;
    const written = thread.call(number, { body: number, begin: body, fd }, (message) => {
      if ('ended' in message) return message.ended;
      if ('failed' in message) {
        const { gone, sentence } = message.failed;
        throw gone ? new VersionGoneError(sentence) : new Error(sentence);
      }
      onLength(message.length);
      return undefined;
    });
    const forget = onAbort(signal, () => thread.send({ body: number, stop: true }));
    try {
      return await written;
    } catch (error) {
      if (error instanceof ThreadEndedError) return 'not_written';
      throw error;
    } finally {
      forget();
      clearTimeout(this.#idle);
      this.#idle = setTimeout(() => {
        if (this.#thread?.calls === 0) void this.close();
      }, IDLE_MS).unref();
    }
  }

  /** Ends the thread. Call this method only while no body is being written. Calling it twice is harmless. */
  async close(): Promise<void> {
    clearTimeout(this.#idle);
    const thread = this.#thread;
    this.#thread = undefined;
    thread?.send({ close: true });
    await thread?.ended;
  }

  #start(): Thread<ToBodies, FromBodies> {
    const what = 'The thread that writes bodies';
    const thread = new Thread<ToBodies, FromBodies>(this.#open(), what, ({ body }) => body);
    thread.ended.then(({ cause: err }) => {
      if (this.#thread === thread) this.#thread = undefined;
      if (err !== undefined) this.#log.error({ err }, 'bodies.died');
    });
    this.#thread = thread;
    return thread;
  }
}

/** Starts a body thread that reads from a database. */
export function openThread(databaseUrl: string): Worker {
  return startThread('body-thread', {
    workerData: { databaseUrl } satisfies BodyThreadData,
  });
}
