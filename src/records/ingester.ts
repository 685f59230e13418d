/** The main thread's side of the ingest thread, which all runs share. The thread runs while there are runs. */
import type { Worker } from 'node:worker_threads';
import { FencedError, Problem } from '../model/error.ts';
import type { AttemptLease } from '../model/job.ts';
import { InvalidRecordError } from '../model/record.ts';
import type { Logger } from '../observe/log.ts';
import { FairPlaces } from '../std/fair-share.ts';
import { startThread } from '../std/own-files.ts';
import { Thread, ThreadOnDemand } from '../std/thread.ts';
import { type IngestSettings, packLines, TooManyRecordsError } from './ingest-batch.ts';
import type {
  Finished,
  FromIngest,
  IngestThreadData,
  PlannedBatch,
  Refusal,
  ToIngest,
} from './ingest-thread.ts';
import type { Suppression } from './suppress.ts';

/**
 * Maximum number of batches on the thread at a time. A team may have only one of them, so that the next batch is always
 * from another team.
 */
const MAX_PENDING = 2;

/** One run on the thread. */
export interface IngestRun {
  /**
   * Adds lines and plans one batch. Call this method again without lines while the result has `more`. Planning overlaps
   * with staging the previous batch, unless both batches have an id in common. All earlier batches must have been
   * staged.
   *
   * @param before settles when the previous batch has been staged; its rejection is passed on
   * @throws InvalidRecordError, TooManyRecordsError, FencedError, Problem `database_unavailable`, or an Error if the
   *   thread has died
   */
  plan(lines: readonly string[], before: Promise<unknown>): Promise<PlannedBatch>;
  /** What the records of the run look like. Call it after the last `plan`. @throws Error if the thread has died */
  finish(input: { duplicates: number }): Promise<Finished>;
  /** Discards the run's state. Calling it twice is harmless. */
  end(): void;
}

export interface IngesterOptions {
  databaseUrl: string;
  log: Logger;
  /** Loads the suppressed people, whose records the runs of a workflow must drop; by default, nobody is suppressed. */
  suppression?: (at: { teamId: string; workflowId: string }) => Promise<Suppression | undefined>;
  /** Starts the thread; tests pass their own function. */
  open?: () => Worker;
}

export class Ingester {
  /**
   * Loads the suppressed people, whose records the runs of a workflow must drop. Call this function before each run.
   */
  readonly suppression: NonNullable<IngesterOptions['suppression']>;
  readonly #threads: ThreadOnDemand<ToIngest, FromIngest>;
  readonly #turns = new FairPlaces({ places: MAX_PENDING });
  #runs = 0;
  #closed = false;

  constructor({ databaseUrl, log, suppression, open }: IngesterOptions) {
    this.suppression = suppression ?? (async () => undefined);
    const start = open ?? (() => openThread(databaseUrl));
    this.#threads = new ThreadOnDemand<ToIngest, FromIngest>({
      start: () => new Thread(start(), 'The thread that reads records', ({ run }) => run),
      closing: { close: true },
      onDied: (err) => log.error({ err }, 'ingest.died'),
    });
  }

  /** Starts a run on the current thread. A run whose thread dies cannot continue. */
  begin(input: { held: AttemptLease; settings: IngestSettings }): IngestRun {
    if (this.#closed) throw new Problem('stopping');
    const thread = this.#threads.take();
    this.#runs += 1;
    const run = this.#runs;
    let hasEnded = false;
    thread.send({ run, begin: input });
    const ask = (lines: readonly string[]) =>
      this.#turns.run(input.held.teamId, () => thread.call(run, { run, plan: packLines(lines) }, plannedOf));
    return {
      plan: async (lines, before) => {
        const planned = await ask(lines);
        if (planned !== 'wait') return planned;
        await before;
        return (await ask([])) as PlannedBatch;
      },
      finish: (input) => thread.call(run, { run, finish: input }, finishedOf),
      end: () => {
        if (hasEnded) return;
        hasEnded = true;
        thread.send({ run, end: true });
        this.#threads.done(thread);
      },
    };
  }

  /** Ends the thread after its current work; later calls of runs reject. Calling it twice is harmless. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#threads.close();
  }
}

function openThread(databaseUrl: string): Worker {
  const workerData = { databaseUrl } satisfies IngestThreadData;
  return startThread('ingest-thread', { workerData });
}

function finishedOf(reply: FromIngest): Finished {
  if ('finished' in reply) return reply.finished;
  if ('refused' in reply) throw errorOf(reply.refused);
  throw new Error('The ingest thread did not reply to `finish`');
}

function plannedOf(reply: FromIngest): PlannedBatch | 'wait' {
  if ('planned' in reply) return reply.planned;
  if ('refused' in reply) throw errorOf(reply.refused);
  throw new Error('The ingest thread did not reply to `plan`');
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
