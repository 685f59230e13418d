/**
 * Checks definitions in a thread with a time limit. Teams take turns. The author of a definition decides how long its
 * check takes, because the patterns and selectors are compiled, and 64 KiB of text can contain thousands of them. When
 * definitions were checked on the event loop, one such request blocked all teams for seconds.
 *
 * The first check starts the thread, which ends after a minute without checks. A check that takes too much time or
 * memory terminates the thread, and its definition is refused. The next check then starts a new thread.
 */
import { once } from 'node:events';
import type { Worker } from 'node:worker_threads';
import { Problem } from '../model/error.ts';
import { within } from '../std/clock.ts';
import { FairPlaces, NoPlaceError } from '../std/fair-share.ts';
import { startThread } from '../std/own-files.ts';
import type { Checked, FromCheck, ToCheck } from './check-thread.ts';

/** The time limit of a check is generous, because an ordinary definition takes only a few milliseconds. */
const LIMIT_MS = 2_000;
/** The time limit for files is higher, because files belong to the operator and may be long. */
const FILE_LIMIT_MS = 30_000;
const MEMORY_MB = 256;
const IDLE_MS = 60_000;
/** Maximum number of waiting definitions of all teams together. Each definition has at most 64 KiB. */
const MOST_WAITING = 256;

export interface CheckOptions {
  limitMs?: number;
  /** Starts the thread. Tests replace this function to start a different thread. */
  open?: () => Worker;
}

export class DefinitionChecks {
  readonly #limitMs: number;
  readonly #open: () => Worker;
  readonly #turns = new FairPlaces({ places: 1, mostWaiting: MOST_WAITING });
  #thread: Thread | undefined;
  #idle: NodeJS.Timeout | undefined;

  constructor({ limitMs = LIMIT_MS, open = openThread }: CheckOptions = {}) {
    this.#limitMs = limitMs;
    this.#open = open;
  }

  /**
   * @param team the check uses a turn of this team
   * @throws Problem `overloaded` if too many definitions of this team are waiting; Error if the thread failed
   */
  async check(team: string, given: ToCheck): Promise<Checked> {
    try {
      return await this.#turns.run(team, () => this.#ask(given, this.#limitMs));
    } catch (error) {
      if (!(error instanceof NoPlaceError)) throw error;
      throw new Problem('overloaded', {
        sentence: 'Too many definitions of this team are waiting to be checked. Try again in a few seconds',
      });
    }
  }

  /**
   * Checks a workflow file of the operator. All files share one queue, which takes turns with the queues of the teams.
   */
  checkFile(given: Extract<ToCheck, { yaml: string }>): Promise<Checked> {
    return this.#turns.run('', () => this.#ask(given, FILE_LIMIT_MS));
  }

  /** Ends the thread. A check in progress fails, and the next check starts a new thread. */
  async stop(): Promise<void> {
    clearTimeout(this.#idle);
    const thread = this.#thread;
    this.#thread = undefined;
    await thread?.worker.terminate();
  }

  async #ask(given: ToCheck, limitMs: number): Promise<Checked> {
    clearTimeout(this.#idle);
    this.#thread ??= this.#start();
    const { worker, ready, ended } = this.#thread;
    worker.ref();
    try {
      // The startup of the thread does not count towards the time limit.
      await Promise.race([ready, ended]);
      worker.postMessage(given);
      const response = once(worker, 'message').then(([message]) => message as FromCheck);
      const result = await within(limitMs, Promise.race([response, ended]), () => 'tooLong' as const);
      if (result === 'tooLong') return await this.#refuse(given, `takes more than ${limitMs / 1_000} s`);
      if ('checked' in result) return result.checked;
      const why = 'failed' in result ? result.failed : 'unexpected message';
      throw new Error(`A definition could not be checked: ${why}`);
    } catch (error) {
      if ((error as { code?: string }).code !== 'ERR_WORKER_OUT_OF_MEMORY') throw error;
      return await this.#refuse(given, `needs more than ${MEMORY_MB} MB of memory`);
    } finally {
      worker.unref();
      this.#idle = setTimeout(() => void this.stop(), IDLE_MS).unref();
    }
  }

  async #refuse({ file }: ToCheck, why: string): Promise<Checked> {
    await this.stop();
    const message = `Checking this definition ${why}. Shorten its patterns, paths and lists`;
    return { mistakes: [{ file, line: null, message }], omitted: 0 };
  }

  #start(): Thread {
    const worker = this.#open();
    const ready = once(worker, 'message');
    const ended = Promise.withResolvers<never>();
    worker.once('error', ended.reject);
    worker.once('exit', () => ended.reject(new Error('The thread that checks definitions has ended')));
    const thread = { worker, ready, ended: ended.promise };
    // `#ask` handles these rejections while a check is in progress. At other times, Node must not report them as
    // unhandled.
    ready.catch(() => undefined);
    ended.promise.catch(() => {
      if (this.#thread === thread) this.#thread = undefined;
    });
    return thread;
  }
}

interface Thread {
  worker: Worker;
  /** Resolves with the first message. */
  ready: Promise<unknown>;
  /** A promise that rejects with the cause when the thread has ended. */
  ended: Promise<never>;
}

function openThread(): Worker {
  const resourceLimits = { maxOldGenerationSizeMb: MEMORY_MB };
  return startThread('check-thread', { resourceLimits });
}
