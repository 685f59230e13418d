/** Turns the lines of one run into batches of valid records, each of which fits into one transaction. */
import { InvalidRecordError, type ReadRecord, readRecord } from '../model/record.ts';
import type { Definition } from '../model/workflow.ts';
import { isSuppressed, type Suppression } from './suppress.ts';

/** Limits for one transaction, and for one turn at the ingest thread, so that others do not wait for long. */
const MAX_BATCH_RECORDS = 250;
const MAX_BATCH_BYTES = 1_048_576;
/** Fields cost more than their bytes do: without this a batch could keep the others waiting ten times as long. */
const MAX_BATCH_FIELDS = 5_000;
/** Field names that a run collects; further and longer ones are left out. */
const MAX_FIELDS = 1_000;
const MAX_FIELD_NAME = 256;
/** Skipped records that a run reports in detail; the others are only counted. */
const MAX_NAMED_SKIPS = 10;

/** A run emitted more records than `limits.records`. */
export class TooManyRecordsError extends Error {
  override readonly name = 'TooManyRecordsError';
}

/** The settings of a definition that ingestion needs. */
export type IngestSettings = Pick<Definition, 'key' | 'mode' | 'onInvalid'> & {
  limits: Pick<Definition['limits'], 'records'>;
  /** The people whose records are dropped. */
  suppression?: Suppression | undefined;
};

/**
 * An invalid record that was skipped. `position` counts the run's records from 1; `field` is null when the problem is
 * the record as a whole.
 */
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
  /** How many lines went into it, including folded, skipped and suppressed records. */
  emitted: number;
  /** Records whose id the batch already had: the last one won, or in `append` mode the first. */
  folded: number;
  skipped: number;
  /** Records of people whose return is suppressed: see `suppress.ts`. */
  suppressed: number;
  /** Those among the run's first ten skipped records that are in this batch. */
  named: SkippedRecord[];
  /** Field names that are new in the run, in order. */
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

/** Reads one run, with bounded memory however long the run is. */
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
    // In `append` mode the first record of an id wins across batches, so it must win within a batch too.
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
      let fieldsOfAll = 0;
      for (; taken < lines.length; taken += 1) {
        const line = lines[taken] as string;
        const isFull =
          batch.records.size === MAX_BATCH_RECORDS ||
          bytes + line.length > MAX_BATCH_BYTES ||
          fieldsOfAll > MAX_BATCH_FIELDS;
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
          fieldsOfAll += record.fields.length;
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
