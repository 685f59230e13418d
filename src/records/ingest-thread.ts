/**
 * The ingest thread: parses, validates and serializes records, compares them with the stored ones on its own
 * read-only connection, and plans what to write, so that this work blocks neither the event loop nor the writer.
 * Batches are processed in the order of their requests; `ingester.ts` makes teams take turns.
 */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { FencedError, Problem } from '../model/error.ts';
import type { AttemptLease } from '../model/job.ts';
import { planWrites, type StagedWrites } from '../model/planned-writes.ts';
import { COMPARED_PROFILES, judgeDrift } from '../model/quality/drift.ts';
import type { JobFinding } from '../model/quality/expect.ts';
import type { SetAside } from '../model/quality/quarantine.ts';
import { InvalidRecordError } from '../model/record.ts';
import type { Compare, Mode } from '../model/workflow.ts';
import { openReader } from '../store/open.ts';
import { recordKey } from '../store/operations/record-indexes.ts';
import type { StoreReader } from '../store/store.ts';
import {
  type BatchReader,
  createBatchReader,
  type Found,
  type IngestSettings,
  type Lines,
  type RecordBatch,
  TooManyRecordsError,
  unpackLines,
} from './ingest-batch.ts';

/** Keys of the quarantine per statement. */
const KEYS_AT_ONCE = 2_000;

export interface IngestThreadData {
  databaseUrl: string;
}

/**
 * Messages to the ingest thread. Only `plan` and `finish` get a reply; `finish` follows the last `plan`. The lines of `plan` are added to
 * the lines that remain from earlier calls. When `plan` is sent, the previous batch may still be on its way to the database, but all earlier batches must
 * have been staged.
 */
export type ToIngest =
  | { run: number; begin: { held: AttemptLease; settings: IngestSettings } }
  | { run: number; plan: Lines }
  | { run: number; finish: { duplicates: number } }
  | { run: number; end: true }
  | { close: true };

/**
 * The reply to `plan`. `wait` means that the batch has an id in common with the previous batch, which must be staged
 * before the records can be compared. The next `plan` of the run confirms that the previous batch has been staged.
 */
export type FromIngest = { run: number } & (
  | { planned: PlannedBatch | 'wait' }
  | { finished: Finished }
  | { refused: Refusal }
);

/** A planned batch: its writes, and the `seq` of each unchanged record. */
export interface PlannedBatch extends Omit<RecordBatch, 'records' | 'sizes' | 'setAside'> {
  writes: StagedWrites;
  kept: number[];
  setAside: SetAside[];
  /** Ids that the batch delivered again although they are in the quarantine. */
  released: string[];
  /** The `seq` of each record that stays as it is, because the one of the run is set aside. */
  untouched: number[];
}

/** What a run has found, also compared with earlier runs. */
export interface Finished extends Found {
  drifts: JobFinding[];
}

/** An error as plain data, because error classes are lost when an error is sent between threads. */
export interface Refusal {
  kind: 'invalid' | 'too_many' | 'fenced' | 'away' | 'other';
  sentence: string;
  field: string | null;
}

interface Run {
  held: AttemptLease;
  mode: Mode;
  compare: Compare | undefined;
  reader: BatchReader;
  /** The records of the previous batch, which may not be staged yet. */
  before: ReadonlyMap<string, string>;
  /** A batch that waits until the previous batch has been staged. */
  waiting: RecordBatch | undefined;
  /** The keys of the quarantine, including what this run has set aside. Undefined until they are read. */
  quarantine: Set<string> | undefined;
}

if (parentPort !== null) serve(parentPort);

async function serve(port: MessagePort): Promise<void> {
  const store = await openReader((workerData as IngestThreadData).databaseUrl);
  const runs = new Map<number, Run>();

  port.on('message', async (message: ToIngest) => {
    if ('close' in message) {
      await store.close();
      port.close();
    } else if ('begin' in message) {
      const { held, settings } = message.begin;
      runs.set(message.run, {
        held,
        mode: settings.mode,
        compare: settings.compare,
        reader: createBatchReader(settings),
        before: new Map(),
        waiting: undefined,
        quarantine: settings.mayRelease === true ? undefined : new Set(),
      });
    } else if ('end' in message) {
      runs.delete(message.run);
    } else if ('finish' in message) {
      port.postMessage(await finished(message.run, runs.get(message.run) as Run, message.finish));
    } else {
      const run = runs.get(message.run) as Run;
      port.postMessage(await reply(message.run, run, message.plan));
      lookAhead(run);
    }
  });

  async function finished(number: number, run: Run, counts: { duplicates: number }): Promise<FromIngest> {
    try {
      return { run: number, finished: await judged(store, run, run.reader.finish(counts)) };
    } catch (error) {
      return { run: number, refused: refusal(error) };
    }
  }

  async function reply(number: number, run: Run, lines: Lines): Promise<FromIngest> {
    try {
      run.reader.push(unpackLines(lines));
      return { run: number, planned: await plan(store, run) };
    } catch (error) {
      return { run: number, refused: refusal(error) };
    }
  }
}

/** Compares the run with earlier ones. The profiles are read and parsed here, because 20 of them may have 1 MiB. */
async function judged(store: StoreReader, { held, mode }: Run, found: Found): Promise<Finished> {
  const earlier = await store.profiles.earlier({ held, mode, limit: COMPARED_PROFILES });
  return { ...found, drifts: judgeDrift({ mode, profile: found.profile, earlier }) };
}

/** Does in advance what the run needs at the latest when it ends. */
function lookAhead({ reader }: Run): void {
  try {
    reader.look();
  } catch {
    // The next call for this run throws the same.
  }
}

async function plan(store: StoreReader, run: Run): Promise<PlannedBatch | 'wait'> {
  const { held, mode, compare } = run;
  const next = run.waiting ?? run.reader.next();
  const isShared = hasAny(run.before, next.records) || hasAny(run.before, next.setAside);
  if (run.waiting === undefined && isShared) {
    run.waiting = next;
    return 'wait';
  }
  run.waiting = undefined;
  run.before = next.records;
  const { records, sizes, setAside, ...of } = next;
  const batch = { ...of, ...(await planQuarantine(store, run, { records, setAside })) };
  if (records.size === 0) return { ...batch, writes: { inserts: null, changes: [] }, kept: [] };
  const { version, rows } = await store.records.compare({
    held,
    ids: [...records.keys()],
    sizes: [...sizes.values()],
  });
  return { ...batch, ...planWrites({ version, mode, compare, rows, records }) };
}

/** Decides what the batch changes in the quarantine. */
async function planQuarantine(
  store: StoreReader,
  run: Run,
  { records, setAside }: Pick<RecordBatch, 'records' | 'setAside'>,
): Promise<Pick<PlannedBatch, 'setAside' | 'released' | 'untouched'>> {
  run.quarantine ??= await readKeys(store, run.held);
  const { mode, held, quarantine } = run;
  const released: string[] = [];
  if (quarantine.size > 0) {
    for (const id of records.keys()) if (quarantine.delete(recordKey(id))) released.push(id);
  }
  if (setAside.size === 0) return { setAside: [], released, untouched: [] };
  const ids = [...setAside.keys()];
  const { rows } = await store.records.compare({ held, ids, sizes: ids.map(() => 0) });
  // In `append` mode, every record whose id exists is left out.
  if (mode === 'append') for (const { id } of rows) setAside.delete(id);
  for (const id of setAside.keys()) {
    const key = recordKey(id);
    if (quarantine.has(key)) released.push(id);
    quarantine.add(key);
  }
  return { setAside: [...setAside.values()], released, untouched: rows.map(({ seq }) => seq) };
}

async function readKeys(store: StoreReader, held: AttemptLease): Promise<Set<string>> {
  const all = new Set<string>();
  for (let after: string | null = ''; after !== null; ) {
    const page: { keys: string[]; next: string | null } = await store.quarantine.keys({
      held,
      after,
      limit: KEYS_AT_ONCE,
    });
    for (const key of page.keys) all.add(key);
    after = page.next;
  }
  return all;
}

function hasAny(before: ReadonlyMap<string, string>, records: ReadonlyMap<string, unknown>): boolean {
  for (const id of records.keys()) if (before.has(id)) return true;
  return false;
}

function refusal(error: unknown): Refusal {
  const sentence = error instanceof Error ? error.message : String(error);
  if (error instanceof InvalidRecordError) return { kind: 'invalid', sentence, field: error.field };
  if (error instanceof TooManyRecordsError) return { kind: 'too_many', sentence, field: null };
  if (error instanceof FencedError) return { kind: 'fenced', sentence, field: null };
  if (error instanceof Problem) return { kind: 'away', sentence, field: null };
  return { kind: 'other', sentence, field: null };
}
