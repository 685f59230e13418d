/** The main side of the ingest thread: one for all runs, started with the first, and anew after it has died. */
import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { FencedError, Problem } from '../model/error.ts';
import type { Held } from '../model/job.ts';
import { InvalidRecordError } from '../model/record.ts';
import type { Logger } from '../observe/log.ts';
import { type IngestSettings, TooManyRecordsError } from './ingest-batch.ts';
import type { FromIngest, IngestThreadData, PlannedBatch, Refusal, ToIngest } from './ingest-thread.ts';
import type { Suppression } from './suppress.ts';

/** One run's way through the thread. */
export interface IngestRun {
  /**
   * Adds lines and plans one batch of those that are not planned yet: to be called without lines while the answer
   * says `more`. Plans while the batch before is being staged, but waits for that where both have an id in common;
   * all earlier ones must have been staged.
   *
   * @param before settles when the batch before has been staged; what it rejects with is passed on
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
  /** Whom the runs of a workflow must drop; nobody unless told. */
  suppression?: (at: { teamId: string; workflowId: string }) => Promise<Suppression | undefined>;
  /** Makes the thread; for tests that end it. */
  open?: () => Worker;
}

export class Ingester {
  /** Whom the runs of a workflow must drop: to be asked before each begins. */
  readonly suppression: NonNullable<IngesterOptions['suppression']>;
  readonly #open: () => Worker;
  readonly #log: Logger;
  #thread: Thread | undefined;
  #runs = 0;
  #closed = false;

  constructor({ databaseUrl, log, suppression, open }: IngesterOptions) {
    this.suppression = suppression ?? (async () => undefined);
    this.#open = open ?? (() => openThread(databaseUrl));
    this.#log = log;
  }

  /** Begins a run, on the thread that is there; a run whose thread dies cannot go on. */
  begin(input: { held: Held; settings: IngestSettings }): IngestRun {
    if (this.#closed) throw new Problem('stopping');
    const thread = this.#thread ?? this.#start();
    this.#runs += 1;
    const run = this.#runs;
    thread.send({ run, begin: input });
    return {
      plan: async (lines, before) => {
        const planned = await thread.ask(run, lines);
        if (planned !== 'wait') return planned;
        await before;
        return (await thread.ask(run, [])) as PlannedBatch;
      },
      end: () => thread.send({ run, end: true }),
    };
  }

  /** Ends the thread after what it is at; runs that go on are refused. Calling it twice is harmless. */
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
  // Derived from this file's own name, so that the compiled form finds the compiled thread.
  const script = new URL(`./ingest-thread${extname(import.meta.url)}`, import.meta.url);
  return new Worker(script, { workerData: { databaseUrl } satisfies IngestThreadData });
}

interface Asked {
  resolve(planned: PlannedBatch | 'wait'): void;
  reject(error: Error): void;
}

/** One thread for as long as it lives. */
class Thread {
  /** Resolves with the reason when it has ended. */
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
      // Before the runs hear of it: what they do next needs a thread that lives.
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
