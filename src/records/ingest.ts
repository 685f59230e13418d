/** A stream of records in, batches staged under the next version: unseen by readers until they are published. */
import { setImmediate } from 'node:timers/promises';
import type { Held } from '../model/job.ts';
import { InvalidRecordError, readRecord } from '../model/record.ts';
import type { Definition } from '../model/workflow.ts';
import type { StagedRecord, Store } from '../store/store.ts';
import { SeenSet } from './seen-set.ts';

/** A transaction holds at most this much, so that the writer stays free for others. */
const MAX_BATCH_RECORDS = 500;
const MAX_BATCH_BYTES = 1_048_576;
/** Rows that one step of sweeping or of looking for removed records touches. */
const STEP = 500;

/** Raised when a run emits more records than `limits.records`. */
export class TooManyRecordsError extends Error {
  override readonly name = 'TooManyRecordsError';
}

/** What a run brought. */
export interface Ingested {
  records: number;
  /** Records whose id the run had already emitted: the last one won. */
  duplicates: number;
  /** The `seq` of every record that the run brought. */
  seen: SeenSet;
}

/**
 * Reads a run's lines to their end and stages them, after sweeping what an earlier attempt left behind. The
 * source waits while a batch is written.
 *
 * @param lines batches of JSON texts, one record each
 * @throws InvalidRecordError with the record's position, TooManyRecordsError, FencedError
 */
export async function ingest(
  store: Store,
  input: { held: Held; definition: Definition; lines: AsyncIterable<string[]> },
): Promise<Ingested> {
  const { held, definition } = input;
  await sweep(store, held);

  const total: Ingested = { records: 0, duplicates: 0, seen: new SeenSet() };
  let batch: StagedRecord[] = [];
  let bytes = 0;
  const flush = async () => {
    if (batch.length === 0) return;
    const staged = await store.records.stage({ held, mode: definition.mode, records: batch });
    for (const seq of staged.seqs) total.seen.add(seq);
    total.duplicates += staged.duplicates;
    batch = [];
    bytes = 0;
  };

  for await (const lines of input.lines) {
    for (const line of lines) {
      total.records += 1;
      if (total.records > definition.limits.records) {
        throw new TooManyRecordsError(
          `The run emitted more than ${definition.limits.records} records. Raise \`limits.records\` if that is right`,
        );
      }
      const record = readAt(total.records, line, definition.key);
      if (batch.length >= MAX_BATCH_RECORDS || bytes + line.length > MAX_BATCH_BYTES) await flush();
      batch.push(record);
      bytes += line.length;
    }
  }
  await flush();
  return total;
}

/** Marks as removed what a run in `replace` mode did not bring. To be called once it is known to have ended well. */
export async function removeUnseen(store: Store, held: Held, seen: SeenSet): Promise<void> {
  let afterSeq = 0;
  for (;;) {
    // A read answers without a turn of the event loop, and there may be millions of records.
    await setImmediate();
    const seqs = await store.records.currentSeqs({ held, afterSeq, limit: 2 * STEP });
    const last = seqs.at(-1);
    if (last === undefined) return;
    afterSeq = last;
    const unseen = seqs.filter((seq) => !seen.has(seq));
    for (let start = 0; start < unseen.length; start += STEP) {
      await store.records.remove({ held, seqs: unseen.slice(start, start + STEP) });
    }
  }
}

function readAt(position: number, line: string, key: readonly string[]): StagedRecord {
  try {
    return readRecord(line, key);
  } catch (error) {
    if (!(error instanceof InvalidRecordError)) throw error;
    throw new InvalidRecordError(`Record ${position} is not valid: ${error.message}`);
  }
}

async function sweep(store: Store, held: Held): Promise<void> {
  for (;;) {
    const { done } = await store.records.sweep({ held, limit: STEP });
    if (done) return;
  }
}
