/**
 * Stages the records of a run in batches. They are stored under the next version, which readers do not see until it is
 * published.
 */
import { setImmediate } from 'node:timers/promises';
import type { AttemptLease } from '../model/job.ts';
import type { Definition, Mode } from '../model/workflow.ts';
import type { Store } from '../store/store.ts';
import type { SkippedRecord } from './ingest-batch.ts';
import type { Finished, PlannedBatch } from './ingest-thread.ts';
import type { Ingester } from './ingester.ts';

/** Maximum number of rows changed by one step of a sweep, or by one step that removes unseen records. */
const STEP = 500;

export interface IngestDeps {
  store: Store;
  ingester: Ingester;
  /** Called for the first ten invalid records that a run skips. */
  onSkipped(skipped: SkippedRecord): void;
}

/** The result of ingesting a run. */
export interface Ingested {
  /** Number of records that the run emitted. */
  records: number;
  /**
   * Number of records whose id the run had already emitted. The last record with an id counts, or in `append` mode the
   * first.
   */
  duplicates: number;
  /** In `append` mode: number of records whose id existed before the run. These records were left unchanged. */
  existing: number;
  /** Number of invalid records, with `onInvalid: skip`. */
  skipped: number;
  /** Number of records of suppressed people. */
  suppressed: number;
  /** What the records look like, and what they do not meet. */
  found: Finished;
  /** The names of the records' fields in order of first appearance, at most 1,000. */
  fields: string[];
  /** The `seq` of every record in the run. */
  seen: SeenSet;
}

/**
 * Reads all lines of a run and stages the records, after removing what an earlier attempt staged. One batch is planned
 * while the previous batch is written. Memory grows by only one bit per record.
 *
 * @param input.hasLeftovers, input.mayRelease see `ClaimedJob` (default: true)
 * @param input.lines batches of JSON texts, one record each
 * @throws InvalidRecordError with the record's position, TooManyRecordsError, FencedError; an Error if the ingest
 *   thread has died
 */
export async function ingest(
  { store, ingester, onSkipped }: IngestDeps,
  input: {
    held: AttemptLease;
    workflowId: string;
    definition: Definition;
    hasLeftovers?: boolean;
    mayRelease?: boolean;
    lines: AsyncIterable<readonly string[]>;
  },
): Promise<Ingested> {
  const { held, workflowId, definition, hasLeftovers = true, mayRelease = true } = input;
  if (hasLeftovers) await sweep(store, held);

  const total: Omit<Ingested, 'found'> = {
    records: 0,
    duplicates: 0,
    existing: 0,
    skipped: 0,
    suppressed: 0,
    fields: [],
    seen: new SeenSet(),
  };
  const { key, mode, onInvalid, compare, limits, expect } = definition;
  const suppression = await ingester.suppression({ teamId: held.teamId, workflowId });
  const run = ingester.begin({
    held,
    settings: { key, mode, onInvalid, compare, limits, expect, suppression, mayRelease },
  });
  /** Settles when the previous batch has been written. Meanwhile, the next batch is planned. */
  let staging = Promise.resolve();
  try {
    for await (const lines of input.lines) {
      let batch = await planNext(lines);
      while (batch.more) batch = await planNext([]);
    }
    await staging;
    return { ...total, found: await run.finish({ duplicates: total.duplicates }) };
  } finally {
    run.end();
    // This wait is necessary after an error too, so that no batch of the run is being written once this function
    // settles.
    await staging.catch(() => undefined);
  }

  async function planNext(lines: readonly string[]): Promise<PlannedBatch> {
    const batch = await run.plan(lines, staging);
    await staging;
    staging = stage(batch);
    // The next `await staging` handles a rejection. Until then, the rejection must not count as unhandled.
    staging.catch(() => undefined);
    return batch;
  }

  async function stage(batch: PlannedBatch): Promise<void> {
    for (const skipped of batch.named) onSkipped(skipped);
    const { writes } = batch;
    if (batch.setAside.length + batch.released.length > 0) await stageQuarantine(store, held, batch);
    const isEmpty = writes.inserts === null && writes.changes.length === 0;
    const { seqs } = isEmpty ? { seqs: [] } : await store.records.stage({ held, writes });
    add(total, batch, seqs, mode);
  }
}

/**
 * Marks records as removed if a run in `replace` mode did not contain them. Call this function once the run has
 * succeeded.
 */
export async function removeUnseen(store: Store, held: AttemptLease, seen: SeenSet): Promise<void> {
  // Most runs deliver every record. Reading all rows would take a tenth of such a run.
  if ((await store.records.currentTotal({ held })).total === seen.size) return;
  let afterSeq = 0;
  for (;;) {
    // The loop must yield, because reads of SQLite finish within one turn of the event loop, and there may be millions
    // of records.
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

function add(
  total: Omit<Ingested, 'found'>,
  batch: PlannedBatch,
  written: readonly number[],
  mode: Mode,
): void {
  total.records += batch.emitted;
  total.duplicates += batch.folded;
  total.skipped += batch.skipped;
  total.suppressed += batch.suppressed;
  total.fields.push(...batch.fields);
  // If a `seq` was already seen, its record also occurred in an earlier batch.
  for (const seq of written) {
    if (total.seen.has(seq)) total.duplicates += 1;
    total.seen.add(seq);
  }
  for (const seq of batch.kept) {
    if (total.seen.has(seq)) total.duplicates += 1;
    else if (mode === 'append') total.existing += 1;
    total.seen.add(seq);
  }
  for (const seq of batch.untouched) total.seen.add(seq);
}

/** Stages what a batch changes in the quarantine, in as many transactions as it takes. */
async function stageQuarantine(
  store: Store,
  held: AttemptLease,
  { first, released, setAside: added }: PlannedBatch,
): Promise<void> {
  for (let from = 0, isDone = false; !isDone; ) {
    const left = { first, released: released.slice(from), added };
    const { handled, done } = await store.quarantine.stage({ held, ...left });
    from += handled;
    isDone = done;
  }
}

async function sweep(store: Store, held: AttemptLease): Promise<void> {
  for (;;) {
    const { done } = await store.records.sweep({ held, limit: STEP });
    if (done) return;
  }
}

/** How many numbers a page of the bitmap covers. A page takes 1 KiB. */
const PAGE = 8_192;

/**
 * A set of non-negative integers that takes one bit per number where they are dense, and at most a page per number
 * where they are sparse: 5 million consecutive numbers take 625 kB, wherever they start.
 */
export class SeenSet {
  readonly #pages = new Map<number, Uint8Array>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(number: number): void {
    const at = Math.floor(number / PAGE);
    let page = this.#pages.get(at);
    if (page === undefined) {
      page = new Uint8Array(PAGE / 8);
      this.#pages.set(at, page);
    }
    const bit = number % PAGE;
    const before = page[bit >> 3] ?? 0;
    if ((before & (1 << (bit & 7))) !== 0) return;
    page[bit >> 3] = before | (1 << (bit & 7));
    this.#size += 1;
  }

  has(number: number): boolean {
    const bit = number % PAGE;
    return ((this.#pages.get(Math.floor(number / PAGE))?.[bit >> 3] ?? 0) & (1 << (bit & 7))) !== 0;
  }
}
