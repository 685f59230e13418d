/**
 * The main thread's side of the body thread. The thread runs while bodies are written.
 */
import type { Worker } from 'node:worker_threads';
import type { Logger } from '../observe/log.ts';
import { FairPlaces } from '../std/fair-share.ts';
import { startThread } from '../std/own-files.ts';
import { onAbort } from '../std/stop-order.ts';
import { Thread, ThreadEndedError, ThreadOnDemand } from '../std/thread.ts';
import type { BodyThreadData, FromBodies, ToBodies } from './body-thread.ts';
import { type Body, VersionGoneError } from './read.ts';

/**
 * Maximum number of bodies written at the same time. A single team may have three of them. In the thread, teams take
 * turns page by page.
 */
const MAX_WRITING = 4;

interface Writing {
  fd: number;
  body: Body;
  onLength(length: number): void;
  signal: AbortSignal;
}

export class BodyWriter {
  readonly #threads: ThreadOnDemand<ToBodies, FromBodies>;
  readonly #places = new FairPlaces({ places: MAX_WRITING });
  #count = 0;

  /** @param options.open starts the thread; tests pass their own function */
  constructor({ databaseUrl, log, open }: { databaseUrl: string; log: Logger; open?: () => Worker }) {
    const start = open ?? (() => openThread(databaseUrl));
    this.#threads = new ThreadOnDemand<ToBodies, FromBodies>({
      start: () => new Thread(start(), 'The thread that writes bodies', ({ body }) => body),
      closing: { close: true },
      onDied: (err) => log.error({ err }, 'bodies.died'),
    });
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
    const thread = this.#threads.take();
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
      this.#threads.done(thread);
    }
  }

  /** Ends the thread. Call this method only while no body is being written. Calling it twice is harmless. */
  close(): Promise<void> {
    return this.#threads.close();
  }
}

/** Starts a body thread that reads from a database. */
export function openThread(databaseUrl: string): Worker {
  return startThread('body-thread', {
    workerData: { databaseUrl } satisfies BodyThreadData,
  });
}
