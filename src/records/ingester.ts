/** The main thread's side of the ingest thread: one for all runs, started by the first run and again after a crash. */
import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { FencedError, Problem } from '../model/error.ts';
import type { AttemptLease } from '../model/job.ts';
import { InvalidRecordError } from '../model/record.ts';
import type { Logger } from '../observe/log.ts';
import { FairPlaces } from '../std/fair-share.ts';
import { type IngestSettings, TooManyRecordsError } from './ingest-batch.ts';
import type { FromIngest, IngestThreadData, PlannedBatch, Refusal, ToIngest } from './ingest-thread.ts';
import type { Suppression } from './suppress.ts';

/** Batches that the thread works on or finds next: one team has one of them, so that another's is always next. */
const MAX_ASKED = 2;

/** One run on the thread. */
export interface IngestRun {
  /**
   * Adds lines and plans one batch; call it again without lines while the result says `more`. It plans while the
   * previous batch is being staged, and waits for that only when both share an id; all earlier batches must have been
   * staged.
   *
   * @param before settles when the previous batch has been staged; its rejection is passed on
   * @throws InvalidRecordError, TooManyRecordsError, FencedError, Problem `database_unavailable`, or an Error with
   *   a sentence when the thread has died
   */
  plan(lines: readonly string[], before: Promise<unknown>): Promise<PlannedBatch>;
  /** Forgets the run. Calling it twice is harmless. */
  end(): void;
}

export interface IngesterOptions {
  databaseUrl: string;
  log: Logger;
  /** Loads the people whose records a workflow's runs must drop; nobody by default. */
  suppression?: (at: { teamId: string; workflowId: string }) => Promise<Suppression | undefined>;
  /** Starts the thread; tests pass their own. */
  open?: () => Worker;
}

export class Ingester {
  /** Loads the people whose records a workflow's runs must drop; call it before each run. */
  readonly suppression: NonNullable<IngesterOptions['suppression']>;
  readonly #open: () => Worker;
  readonly #log: Logger;
  readonly #turns = new FairPlaces({ places: MAX_ASKED });
  #thread: Thread | undefined;
  #runs = 0;
  #closed = false;

  constructor({ databaseUrl, log, suppression, open }: IngesterOptions) {
    this.suppression = suppression ?? (async () => undefined);
    this.#open = open ?? (() => openThread(databaseUrl));
    this.#log = log;
  }

  /** Begins a run on the current thread. A run whose thread dies cannot continue. */
  begin(input: { held: AttemptLease; settings: IngestSettings }): IngestRun {
    if (this.#closed) throw new Problem('stopping');
    const thread = this.#thread ?? this.#start();
    this.#runs += 1;
    const run = this.#runs;
    thread.send({ run, begin: input });
    const ask = (lines: readonly string[]) =>
      this.#turns.run(input.held.teamId, () => thread.ask(run, lines));
    return {
      plan: async (lines, before) => {
        const planned = await ask(lines);
        if (planned !== 'wait') return planned;
        await before;
        return (await ask([])) as PlannedBatch;
      },
      end: () => thread.send({ run, end: true }),
    };
  }

  /** Ends the thread after its current work; later calls of runs are rejected. Calling it twice is harmless. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#thread?.send({ close: true });
    await this.#thread?.exited;
  }

  #start(): Thread {
    const thread = new Thread(this.#open());
    this.#thread = thread;
    thread.exited.then((cause) => {
      this.#thread = undefined;
      if (!this.#closed) this.#log.error({ err: cause }, 'ingest.died');
    });
    return thread;
  }
}

function openThread(databaseUrl: string): Worker {
  // The extension of this file, so that compiled code finds the compiled thread.
  const script = new URL(`./ingest-thread${extname(import.meta.url)}`, import.meta.url);
  return new Worker(script, { workerData: { databaseUrl } satisfies IngestThreadData });
}

interface Asked {
  resolve(planned: PlannedBatch | 'wait'): void;
  reject(error: Error): void;
}

/** One worker thread, and the requests that it has not answered. */
class Thread {
  /** Resolves with the reason when the thread has exited. */
  readonly exited: Promise<Error>;
  readonly #worker: Worker;
  readonly #asked = new Map<number, Asked>();
  #dead: Error | undefined;

  constructor(worker: Worker) {
    this.#worker = worker;
    let cause: Error | undefined;
    worker.on('error', (error) => {
      cause = error as Error;
    });
    worker.on('message', ({ run, ...answer }: FromIngest) => {
      const asked = this.#asked.get(run);
      this.#asked.delete(run);
      if ('planned' in answer) asked?.resolve(answer.planned);
      else asked?.reject(errorOf(answer.refused));
    });
    const exited = Promise.withResolvers<Error>();
    this.exited = exited.promise;
    worker.on('exit', () => {
      const why = cause === undefined ? '' : `: ${cause.message}`;
      this.#dead = new Error(`The thread that reads records has ended${why}`, { cause });
      // Before the runs are rejected: whatever they do next must find a new thread.
      exited.resolve(this.#dead);
      for (const asked of this.#asked.values()) asked.reject(this.#dead);
      this.#asked.clear();
    });
  }

  send(message: ToIngest): void {
    this.#worker.postMessage(message);
  }

  ask(run: number, lines: readonly string[]): Promise<PlannedBatch | 'wait'> {
    if (this.#dead !== undefined) return Promise.reject(this.#dead);
    return new Promise((resolve, reject) => {
      this.#asked.set(run, { resolve, reject });
      this.send({ run, plan: lines });
    });
  }
}

function errorOf({ kind, sentence, field }: Refusal): Error {
  switch (kind) {
    case 'invalid':
      return new InvalidRecordError(sentence, field);
    case 'too_many':
      return new TooManyRecordsError(sentence);
    case 'fenced':
      return new FencedError(sentence);
    case 'away':
      return new Problem('database_unavailable', { sentence });
    case 'other':
      return new Error(sentence);
  }
}
