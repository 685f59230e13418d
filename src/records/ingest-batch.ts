/** Turns the lines of one run into batches of valid records, each of which fits into one transaction. */
import { InvalidRecordError, type ReadRecord, readRecord } from '../model/record.ts';
import type { Definition } from '../model/workflow.ts';
import { isSuppressed, type Suppression } from './suppress.ts';

/** A transaction holds at most this much, so that the writer stays free for others. */
const MAX_BATCH_RECORDS = 250;
const MAX_BATCH_BYTES = 1_048_576;
/** Names of fields that a run collects; further ones, and longer ones, are left out. */
const MAX_FIELDS = 1_000;
const MAX_FIELD_NAME = 256;
/** Skipped records that a run names; the others are only counted. */
const MAX_NAMED_SKIPS = 10;

/** Raised when a run emits more records than `limits.records`. */
export class TooManyRecordsError extends Error {
  override readonly name = 'TooManyRecordsError';
}

/** The part of a definition that says what a record may be. */
export type IngestSettings = Pick<Definition, 'key' | 'mode' | 'onInvalid'> & {
  limits: Pick<Definition['limits'], 'records'>;
  /** Whose records are dropped. */
  suppression?: Suppression | undefined;
};

/** A record that was left out. `position` counts the run's records from 1; `field` is null for the whole record. */
export interface SkippedRecord {
  position: number;
  field: string | null;
  reason: string;
}

export interface RecordBatch {
  /** JSON text by id, in order of first appearance. */
  records: Map<string, string>;
  /** The length of each of those texts in UTF-8, by id. */
  sizes: Map<string, number>;
  /** How many records of the run went into it, those that were folded and skipped included. */
  emitted: number;
  /** Records whose id the batch already had: the last one won, or in `append` mode the first. */
  folded: number;
  skipped: number;
  /** Records of people who were erased for good: see `suppress.ts`. */
  suppressed: number;
  /** The first skipped records of the run, as far as they lie in this batch. */
  named: SkippedRecord[];
  /** Names of fields that the run had not had before, in order. */
  fields: string[];
  /** Whether lines are left for another batch. */
  more: boolean;
}

export interface BatchReader {
  /** Adds lines, one record's JSON text each. */
  push(lines: readonly string[]): void;
  /**
   * Takes as many of the lines as one transaction may hold.
   *
   * @throws InvalidRecordError with the record's position unless such are skipped, TooManyRecordsError
   */
  next(): RecordBatch;
}

/** Reads one run. What it remembers does not grow with the run. */
export function createBatchReader({
  key,
  mode,
  onInvalid,
  limits,
  suppression,
}: IngestSettings): BatchReader {
  let lines: readonly string[] = [];
  let taken = 0;
  let position = 0;
  let named = 0;
  const fields = new Set<string>();

  function add(batch: RecordBatch, { id, body, bytes, fields: names }: ReadRecord): void {
    for (const name of names) {
      if (fields.has(name) || fields.size === MAX_FIELDS || name.length > MAX_FIELD_NAME) continue;
      fields.add(name);
      batch.fields.push(name);
    }
    const isThere = batch.records.has(id);
    if (isThere) batch.folded += 1;
    // `append` never touches what is there: across batches the first one wins, so it must within one.
    if (isThere && mode === 'append') return;
    batch.records.set(id, body);
    batch.sizes.set(id, bytes);
  }

  function skip(batch: RecordBatch, error: unknown): void {
    if (!(error instanceof InvalidRecordError)) throw error;
    if (onInvalid === 'fail') {
      throw new InvalidRecordError(`Record ${position} is not valid: ${error.message}`, error.field);
    }
    batch.skipped += 1;
    if (named === MAX_NAMED_SKIPS) return;
    named += 1;
    batch.named.push({ position, field: error.field, reason: error.message });
  }

  return {
    push(more) {
      lines = taken < lines.length ? [...lines.slice(taken), ...more] : more;
      taken = 0;
    },
    next() {
      const batch: RecordBatch = {
        records: new Map(),
        sizes: new Map(),
        emitted: 0,
        folded: 0,
        skipped: 0,
        suppressed: 0,
        named: [],
        fields: [],
        more: false,
      };
      let bytes = 0;
      for (; taken < lines.length; taken += 1) {
        const line = lines[taken] as string;
        const isFull = batch.records.size === MAX_BATCH_RECORDS || bytes + line.length > MAX_BATCH_BYTES;
        if (isFull && batch.emitted > 0) break;
        position += 1;
        if (position > limits.records) {
          throw new TooManyRecordsError(
            `The run emitted more than ${limits.records} records. Raise \`limits.records\` if that is right`,
          );
        }
        batch.emitted += 1;
        try {
          const record = readRecord(line, key);
          if (suppression !== undefined && isSuppressed(suppression, record)) {
            batch.suppressed += 1;
            continue;
          }
          bytes += record.bytes;
          add(batch, record);
        } catch (error) {
          skip(batch, error);
        }
      }
      batch.more = taken < lines.length;
      return batch;
    },
  };
}
