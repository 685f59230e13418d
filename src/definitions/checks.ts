/**
 * Checks definitions in a thread, within a time limit, by turns of the teams. What a definition holds decides how long its
 * check takes: patterns and selectors of its author are compiled, and a text of 64 KiB can be made of thousands of each.
 * On the event loop one request kept every team waiting for seconds.
 *
 * The thread is started by the first check and ends when none has come for a while. A check that takes too long or too
 * much memory ends it, and is refused with a sentence; the next one starts another.
 */
import { once } from 'node:events';
import type { Worker } from 'node:worker_threads';
import { Problem } from '../model/error.ts';
import { within } from '../std/clock.ts';
import { FairPlaces, NoPlaceError } from '../std/fair-share.ts';
import { startWorker } from '../std/thread.ts';
import type { Checked, FromCheck, ToCheck } from './check-thread.ts';

/** For what people write, a check takes some milliseconds. */
const LIMIT_MS = 2_000;
/** Files are the operator's own, and of any length. */
const FILE_LIMIT_MS = 30_000;
const MEMORY_MB = 256;
const IDLE_MS = 60_000;
/** Of all teams. Each holds at most 64 KiB. */
const MOST_WAITING = 256;

export interface CheckOptions {
  limitMs?: number;
  /** Starts the thread; tests pass their own. */
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
   * @param team whose turn it takes
   * @throws Problem `overloaded` when too many definitions of this team wait; Error when the thread failed
   */
  async check(team: string, given: ToCheck): Promise<Checked> {
    try {
      return await this.#turns.run(team, () => this.#ask(given, this.#limitMs));
    } catch (error) {
      if (!(error instanceof NoPlaceError)) throw error;
      throw new Problem('overloaded', {
        sentence: 'Too many definitions of this team are waiting to be checked. Send this one again shortly',
      });
    }
  }

  /** Checks a file of the operator, in a turn of its own, as if that were a team. */
  checkFile(given: Extract<ToCheck, { yaml: string }>): Promise<Checked> {
    return this.#turns.run('', () => this.#ask(given, FILE_LIMIT_MS));
  }

  /** Ends the thread; a check under way fails. The next check starts another. */
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
      // So that the limit counts the check alone.
      await Promise.race([ready, ended]);
      worker.postMessage(given);
      const answered = once(worker, 'message').then(([message]) => message as FromCheck);
      const answer = await within(limitMs, Promise.race([answered, ended]), () => 'tooLong' as const);
      if (answer === 'tooLong') return await this.#refuse(given, `takes more than ${limitMs / 1_000} s`);
      if ('checked' in answer) return answer.checked;
      const why = 'failed' in answer ? answer.failed : 'it was not asked';
      throw new Error(`A definition was not checked: ${why}`);
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
    const message = `The check of this definition ${why}: make its patterns, paths and lists shorter`;
    return { mistakes: [{ file, line: null, message }], untold: 0 };
  }

  #start(): Thread {
    const worker = this.#open();
    const ready = once(worker, 'message');
    const ended = Promise.withResolvers<never>();
    worker.once('error', ended.reject);
    worker.once('exit', () => ended.reject(new Error('The thread that checks definitions has ended')));
    const thread = { worker, ready, ended: ended.promise };
    // Whoever waits for an answer is told; nobody may be waiting.
    ready.catch(() => undefined);
    ended.promise.catch(() => {
      if (this.#thread === thread) this.#thread = undefined;
    });
    return thread;
  }
}

interface Thread {
  worker: Worker;
  /** Settles with its first message. */
  ready: Promise<unknown>;
  /** Rejects when it has ended, with the cause. */
  ended: Promise<never>;
}

function openThread(): Worker {
  const resourceLimits = { maxOldGenerationSizeMb: MEMORY_MB };
  return startWorker(import.meta.url, 'check-thread', { resourceLimits });
}
