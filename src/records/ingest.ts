/** A stream of records in, batches staged under the next version: unseen by readers until they are published. */
import { setImmediate } from 'node:timers/promises';
import type { Held } from '../model/job.ts';
import type { Definition, Mode } from '../model/workflow.ts';
import type { Logger } from '../observe/log.ts';
import type { Store } from '../store/store.ts';
import type { PlannedBatch } from './ingest-thread.ts';
import type { Ingester } from './ingester.ts';
import { SeenSet } from './seen-set.ts';

/** Rows that one step of sweeping or of looking for removed records touches. */
const STEP = 500;

export interface IngestDeps {
  store: Store;
  ingester: Ingester;
  log: Logger;
}

/** What a run brought. */
export interface Ingested {
  /** Every record that the run emitted. */
  records: number;
  /** Records whose id the run had already emitted: the last one won, or in `append` mode the first. */
  duplicates: number;
  /** In `append` mode: records whose id was there before the run. They were left as they are. */
  existing: number;
  /** Records that were not valid, with `onInvalid: skip`. */
  skipped: number;
  /** Records of people who were erased for good. */
  suppressed: number;
  /** The names of the records' fields in order of first appearance, at most 1,000. */
  fields: string[];
  /** The `seq` of every record that the run brought. */
  seen: SeenSet;
}

/**
 * Reads a run's lines to their end and stages them, after sweeping what an earlier attempt left behind. The
 * source is one batch ahead of what is written. Memory does not grow with the run, but for a bit per record.
 *
 * @param input.lines batches of JSON texts, one record each
 * @throws InvalidRecordError with the record's position, TooManyRecordsError, FencedError; an Error with a
 *   sentence when the ingest thread has died
 */
export async function ingest(
  { store, ingester, log }: IngestDeps,
  input: { held: Held; definition: Definition; lines: AsyncIterable<readonly string[]> },
): Promise<Ingested> {
  const { held, definition } = input;
  await sweep(store, held);

  const total: Ingested = {
    records: 0,
    duplicates: 0,
    existing: 0,
    skipped: 0,
    suppressed: 0,
    fields: [],
    seen: new SeenSet(),
  };
  const { key, mode, onInvalid, limits } = definition;
  const job = await store.jobs.get({ teamId: held.teamId, id: held.jobId });
  const suppression = job && (await ingester.suppression(job));
  const run = ingester.begin({ held, settings: { key, mode, onInvalid, limits, suppression } });
  /** The one batch that is being written, while the next one is planned. */
  let staging = Promise.resolve();
  try {
    for await (const lines of input.lines) {
      let batch = await planNext(lines);
      while (batch.more) batch = await planNext([]);
    }
    await staging;
  } finally {
    run.end();
    // Whatever went wrong: nothing of this run is being written any more once it is known to have ended.
    await staging.catch(() => undefined);
  }
  return total;

  async function planNext(lines: readonly string[]): Promise<PlannedBatch> {
    const batch = await run.plan(lines, staging);
    await staging;
    staging = stage(batch);
    // Heard of by whoever awaits it next; until then it must not count as unhandled.
    staging.catch(() => undefined);
    return batch;
  }

  async function stage(batch: PlannedBatch): Promise<void> {
    for (const skipped of batch.named) log.warn({ ...skipped }, 'record.skipped');
    const { writes } = batch;
    const { seqs } = writes.length === 0 ? { seqs: [] } : await store.records.stage({ held, writes });
    add(total, batch, seqs, mode);
  }
}

/** Marks as removed what a run in `replace` mode did not bring. To be called once it is known to have ended well. */
export async function removeUnseen(store: Store, held: Held, seen: SeenSet): Promise<void> {
  let afterSeq = 0;
  for (;;) {
    // A read answers without a turn of the event loop, and there may be millions of records.
    await setImmediate();
    const { seqs, lastSeq, done } = await store.records.currentSeqs({ held, afterSeq, rows: 2 * STEP });
    afterSeq = lastSeq;
    const unseen = seqs.filter((seq) => !seen.has(seq));
    for (let start = 0; start < unseen.length; start += STEP) {
      await store.records.remove({ held, seqs: unseen.slice(start, start + STEP) });
    }
    if (done) return;
  }
}

function add(total: Ingested, batch: PlannedBatch, written: readonly number[], mode: Mode): void {
  total.records += batch.emitted;
  total.duplicates += batch.folded;
  total.skipped += batch.skipped;
  total.suppressed += batch.suppressed;
  total.fields.push(...batch.fields);
  // A record that the run emitted before has a `seq` since then, whether it was written or left as it was.
  for (const seq of written) {
    if (total.seen.has(seq)) total.duplicates += 1;
    total.seen.add(seq);
  }
  for (const seq of batch.kept) {
    if (total.seen.has(seq)) total.duplicates += 1;
    else if (mode === 'append') total.existing += 1;
    total.seen.add(seq);
  }
}

async function sweep(store: Store, held: Held): Promise<void> {
  for (;;) {
    const { done } = await store.records.sweep({ held, limit: STEP });
    if (done) return;
  }
}
