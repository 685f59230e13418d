/** Turns the lines of a run into batches of valid records. The new records of a batch fit into one transaction. */
import type { Expect, JobFinding } from '../model/quality/expect.ts';
import type { Profile } from '../model/quality/profile.ts';
import { isTooMuchAside, type SetAside } from '../model/quality/quarantine.ts';
import { InvalidRecordError, type ReadRecord, readRecord } from '../model/record.ts';
import type { Compare, Definition } from '../model/workflow.ts';
import { type Broken, FieldChecks } from './quality/field-checks.ts';
import { RunProfile } from './quality/run-profile.ts';
import { isSuppressed, type Suppression } from './suppress.ts';

/**
 * Limits for the new records that one transaction writes, and that the ingest thread processes in one turn, so that other
 * teams do not wait long.
 */
const MAX_BATCH_RECORDS = 2_000;
const MAX_BATCH_BYTES = 1_048_576;
/**
 * Maximum number of fields in a batch. Each field takes time in addition to its bytes: without this limit, a batch
 * could take ten times as long.
 */
const MAX_BATCH_FIELDS = 10_000;
/** Limits of the field names that a run collects: their number and length. Further and longer names are omitted. */
const MAX_FIELDS = 1_000;
const MAX_FIELD_NAME = 256;
/** Number of skipped records that a run reports in detail. Further skipped records are only counted. */
const MAX_NAMED_SKIPS = 10;

/** A run emitted more records than `limits.records`. */
export class TooManyRecordsError extends Error {
  override readonly name = 'TooManyRecordsError';
}

/** The settings of a definition that ingestion needs. */
export type IngestSettings = Pick<Definition, 'key' | 'mode' | 'onInvalid'> & {
  compare?: Compare | undefined;
  limits: Pick<Definition['limits'], 'records'>;
  /** Whether the quarantine of the workflow may have records (default: no). */
  mayRelease?: boolean;
  expect: Pick<Expect, 'fields' | 'otherwise'>;
  /** People whose records are dropped. */
  suppression?: Suppression | undefined;
};

/** A skipped record. `position` counts the run's records from 1; `field` is null if the whole record is invalid. */
export interface SkippedRecord {
  position: number;
  field: string | null;
  reason: string;
}

export interface RecordBatch {
  /** JSON texts of the records by id, in order of first appearance. */
  records: Map<string, string>;
  /** The UTF-8 length of each record's JSON text, by id. */
  sizes: Map<string, number>;
  /** Number of lines in the batch, including folded, skipped and suppressed records. */
  emitted: number;
  /**
   * Number of records whose id was already in the batch. The last record with an id counts, or in `append` mode the
   * first.
   */
  folded: number;
  skipped: number;
  /** Number of records of suppressed people: see `suppress.ts`. */
  suppressed: number;
  /** Skipped records of this batch, if they are among the run's first ten. */
  named: SkippedRecord[];
  /** The position of the batch's first record in the run. */
  first: number;
  /**
   * Records that are set aside instead of being published, by id: the last one with the id, unless a good one follows in
   * the batch. Empty if the run has more of them than `MOST_SET_ASIDE`.
   */
  setAside: Map<string, SetAside>;
  /** Field names that are new in the run, in order. */
  fields: string[];
  /** Whether lines remain for another batch. */
  more: boolean;
}

/**
 * The JSON texts of records, joined, and the length of each. One text is copied between threads in a third
 * of the time that a list takes.
 */
export interface Lines {
  text: string;
  lengths: readonly number[];
}

export function packLines(lines: readonly string[]): Lines {
  return { text: lines.join(''), lengths: lines.map(({ length }) => length) };
}

export function unpackLines({ text, lengths }: Lines): string[] {
  let end = 0;
  return lengths.map((length) => {
    end += length;
    return text.slice(end - length, end);
  });
}

export interface BatchReader {
  /** Adds lines. Each line is the JSON text of one record. */
  push(lines: readonly string[]): void;
  /**
   * Takes at most as many lines as one transaction may contain.
   *
   * @throws InvalidRecordError with the record's position, unless `onInvalid` is `skip`; TooManyRecordsError
   */
  next(): RecordBatch;
  /**
   * Looks at the records of the last batch, unless `next` needed to: with `otherwise: quarantine`. The next batch and the
   * end of the run would do it too, but while the batch is being written, this takes no additional time.
   */
  look(): void;
  /** What the records of all batches so far look like, and what they do not meet. */
  finish(input: { duplicates: number }): Found;
}

/** What the records of a run look like, and what they do not meet. */
export interface Found {
  profile: Profile;
  /** What the fields do not meet, in the order of the definition. */
  findings: JobFinding[];
  /** Fields with so many values that not all of them were compared for `unique`. */
  notCompared: string[];
  /** The records that do not meet the expectations of their fields, with `otherwise: quarantine`. */
  aside: { records: number; bytes: number };
}

/** `position` counts the run's records from 1. */
type PlacedRecord = ReadRecord & { position: number };

/** Creates a reader for one run. The memory of the reader is bounded, however long the run is. */
export function createBatchReader({
  key,
  mode,
  onInvalid,
  compare,
  limits,
  suppression,
  expect,
}: IngestSettings): BatchReader {
  let lines: readonly string[] = [];
  let taken = 0;
  let position = 0;
  let named = 0;
  const fields = new Set<string>();
  const checks = new FieldChecks(expect.fields);
  const profile = new RunProfile(checks.watches);
  const aside = { records: 0, bytes: 0 };
  let unseen: readonly PlacedRecord[] = [];
  let seen = 0;

  /** @returns what the records do not meet, by their place in the batch */
  function look(): (Broken[] | undefined)[] {
    // If this throws, the next call throws the same.
    for (; seen < unseen.length; seen += 1) {
      const { id, value, fields: names } = unseen[seen] as PlacedRecord;
      checks.begin(id);
      profile.add(value, names);
      checks.end();
    }
    unseen = [];
    seen = 0;
    return checks.endBatch();
  }

  /** Sets a record aside instead of adding it. */
  function putAside(batch: RecordBatch, record: PlacedRecord, reasons: Broken[]): void {
    const { id, position, body, bytes } = record;
    aside.records += 1;
    aside.bytes += bytes;
    // In `append` mode, the first record with an id counts.
    if (isTooMuchAside(aside) || (mode === 'append' && batch.records.has(id))) return;
    batch.setAside.delete(id);
    batch.setAside.set(id, { id, position, body, bytes, reasons });
  }

  function nameFields(batch: RecordBatch, { fields: names }: ReadRecord): void {
    for (const name of names) {
      if (fields.has(name) || fields.size === MAX_FIELDS || name.length > MAX_FIELD_NAME) continue;
      fields.add(name);
      batch.fields.push(name);
    }
  }

  function add(batch: RecordBatch, { id, body, bytes }: PlacedRecord): void {
    const isThere = batch.records.has(id);
    if (isThere) batch.folded += 1;
    // In `append` mode, the first record with an id counts across all batches, and so also within a batch.
    if (isThere && mode === 'append') return;
    batch.records.set(id, body);
    batch.sizes.set(id, bytes);
    batch.setAside.delete(id);
  }

  function skip(batch: RecordBatch, error: unknown): void {
    if (!(error instanceof InvalidRecordError)) throw error;
    if (onInvalid === 'fail') {
      throw new InvalidRecordError(`Record ${position} is invalid: ${error.message}`, error.field);
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
        first: position + 1,
        setAside: new Map(),
        fields: [],
        more: false,
      };
      const records: PlacedRecord[] = [];
      let bytes = 0;
      let fieldsOfAll = 0;
      for (; taken < lines.length; taken += 1) {
        const line = lines[taken] as string;
        const isFull =
          records.length >= MAX_BATCH_RECORDS ||
          bytes + line.length > MAX_BATCH_BYTES ||
          fieldsOfAll > MAX_BATCH_FIELDS;
        if (isFull && batch.emitted > 0) break;
        position += 1;
        if (position > limits.records) {
          throw new TooManyRecordsError(
            `The run emitted more than ${limits.records} records. If that is correct, raise \`limits.records\``,
          );
        }
        batch.emitted += 1;
        try {
          const record = readRecord(line, key, compare);
          fieldsOfAll += record.fields.length;
          if (suppression !== undefined && isSuppressed(suppression, record)) {
            batch.suppressed += 1;
            continue;
          }
          bytes += record.bytes;
          nameFields(batch, record);
          records.push({ ...record, position });
        } catch (error) {
          skip(batch, error);
        }
      }
      look();
      unseen = records;
      const broken = expect.otherwise === 'quarantine' ? look() : [];
      records.forEach((record, at) => {
        const reasons = broken[at];
        if (reasons === undefined) add(batch, record);
        else putAside(batch, record, reasons);
      });
      batch.more = taken < lines.length;
      return batch;
    },
    look,
    finish({ duplicates }) {
      look();
      return {
        profile: profile.result({ duplicates }),
        findings: checks.findings(),
        notCompared: checks.notCompared,
        aside,
      };
    },
  };
}
