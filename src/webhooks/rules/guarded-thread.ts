/** The main thread's side of a rule thread, which it ends if a single evaluation takes too long. */
import type { Worker } from 'node:worker_threads';
import { Problem } from '../../model/error.ts';
import type { Logger } from '../../observe/log.ts';
import { startThread } from '../../std/own-files.ts';
import { Thread, ThreadOnDemand } from '../../std/thread.ts';
import type { Place } from './decide.ts';
import type { FromRules, RuleCalls, RuleThreadData, ToRules } from './rule-thread.ts';
import { WATCHED } from './watched.ts';

/**
 * How much processor time one evaluation may take. Time on the clock would also count while the thread waits for a
 * processor, and an evaluation that was ended wrongly loses a match.
 */
const MAX_EVALUATION_MS = 1_000;
const LOOK_EVERY_MS = 100;
/** If the processor time cannot be read, an evaluation is ended after this time on the clock. */
const MAX_UNKNOWN_MS = 30_000;

/** Thrown if an evaluation was ended. `place` is its decision; undefined if a reader asked for it. */
export class TooSlowError extends Error {
  override readonly name = 'TooSlowError';
  readonly place: Place | undefined;
  /** The number of differences of the event that were examined before. */
  readonly examined: number;

  constructor(place: Place | undefined, examined: number) {
    super('The evaluation took too long');
    this.place = place;
    this.examined = examined;
  }
}

/** Starts the program of the rule thread. Tests pass their own function. */
export type StartRules = (data: RuleThreadData) => Worker;

/** A rule thread that runs while there are calls. Calls run one at a time: callers take turns. */
export class GuardedThread {
  readonly #threads: ThreadOnDemand<ToRules, FromRules>;
  readonly #workers = new WeakMap<Thread<ToRules, FromRules>, Worker>();
  readonly #watched = new Int32Array(new SharedArrayBuffer(WATCHED.length * Int32Array.BYTES_PER_ELEMENT));
  #calls = 0;
  #isEnding = false;

  constructor(input: { databaseUrl: string; log: Logger; start?: StartRules | undefined }) {
    const { databaseUrl, log, start = startRules } = input;
    this.#threads = new ThreadOnDemand<ToRules, FromRules>({
      start: () => {
        this.#watched.fill(0);
        const worker = start({ databaseUrl, watched: this.#watched });
        const thread = new Thread<ToRules, FromRules>(worker, 'The thread of the rules', ({ call }) => call);
        this.#workers.set(thread, worker);
        return thread;
      },
      closing: { close: true },
      onDied: (err) => {
        if (!this.#isEnding) log.error({ err }, 'rules.died');
      },
    });
  }

  /**
   * Calls the thread.
   *
   * @throws TooSlowError, ThreadEndedError, Problem `database_unavailable`, or an Error of the thread
   */
  async call<Name extends keyof RuleCalls>(
    name: Name,
    input: RuleCalls[Name][0],
  ): Promise<RuleCalls[Name][1]> {
    const thread = this.#threads.take();
    this.#calls += 1;
    const call = this.#calls;
    let place: Place | undefined;
    let tooSlow: TooSlowError | undefined;
    const guard = this.#watch(this.#workers.get(thread) as Worker, (examined) => {
      tooSlow = new TooSlowError(place, examined);
    });
    try {
      const message = { call, name, input } as ToRules;
      return await thread.call(call, message, (response) => {
        if ('at' in response) {
          place = response.at;
          return undefined;
        }
        if ('result' in response) return response.result as RuleCalls[Name][1];
        const { sentence, isAway } = response.failed;
        throw isAway ? new Problem('database_unavailable', { sentence }) : new Error(sentence);
      });
    } catch (error) {
      throw tooSlow ?? error;
    } finally {
      clearInterval(guard);
      this.#isEnding = false;
      this.#threads.done(thread);
    }
  }

  /** Ends the worker if an evaluation takes too long, after `onSlow` was called with its number. */
  #watch(worker: Worker, onSlow: (examined: number) => void): NodeJS.Timeout {
    const watched = this.#watched;
    let since: { begun: number; atMs: number; cpuMs: number | undefined } | undefined;
    const isStill = (begun: number) =>
      watched[WATCHED.begun] === begun && watched[WATCHED.isEvaluating] === 1;
    const look = async () => {
      const begun = watched[WATCHED.begun] as number;
      if (!isStill(begun)) {
        since = undefined;
        return;
      }
      if (since?.begun !== begun) {
        const found = { begun, atMs: performance.now(), cpuMs: undefined };
        since = found;
        Object.assign(found, { cpuMs: await cpuMs(worker) });
        return;
      }
      const { atMs, cpuMs: before } = since;
      const isLong = performance.now() - atMs > MAX_UNKNOWN_MS;
      const now = before === undefined ? undefined : await cpuMs(worker);
      const isOver = now !== undefined && before !== undefined && now - before >= MAX_EVALUATION_MS;
      if (!isStill(begun) || this.#isEnding || !(isOver || isLong)) return;
      this.#isEnding = true;
      onSlow(watched[WATCHED.examined] as number);
      await worker.terminate();
    };
    return setInterval(() => void look().catch(() => undefined), LOOK_EVERY_MS).unref();
  }

  /** Ends the thread after its current call. Calling it twice is harmless. */
  close(): Promise<void> {
    return this.#threads.close();
  }
}

function startRules(data: RuleThreadData): Worker {
  return startThread('rule-thread', { workerData: data });
}

/** The processor time of a thread in milliseconds; undefined if it has ended. */
async function cpuMs(worker: Worker): Promise<number | undefined> {
  const { user, system } = await worker.cpuUsage();
  return (user + system) / 1_000;
}
