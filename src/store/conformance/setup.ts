/** Shared by all conformance cases: an opened store, a clock, and ways to create and read things. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AfterFailure, AttemptLease, FailureReason, Job } from '../../model/job.ts';
import { planWrites } from '../../model/planned-writes.ts';
import { EXPECT_NOTHING, type Expect } from '../../model/quality/expect.ts';
import type { Definition, Mode } from '../../model/workflow.ts';
import type { StoredEvent } from '../operations/events.ts';
import type { ChangedRow, ChangesCursor } from '../operations/history/changes.ts';
import type { Store } from '../store.ts';
import type { TableCounts } from './table-counts.ts';

/** An empty store with a clock of its own. */
export interface Opened {
  store: Store;
  /** Moves the store's clock forward. */
  advance(ms: number): void;
  /** Closes the store and opens the same database again. The previous `store` must no longer be used. */
  reopen(): Promise<Store>;
  /** Reads values from the tables that no operation returns. */
  inspect(at: { teamId: string; workflowId: string }): Promise<TableCounts>;
  /** Runs a statement on the tables, for rows that only earlier versions of Flowhook could leave. */
  statement(text: string): Promise<Record<string, unknown>[]>;
  /** The number of rows in each table with rows of teams. */
  rows(): Promise<Record<string, number>>;
  /** Opens the same database once more, like another process. */
  another(): Promise<Store>;
  close(): Promise<void>;
}

/** Opens a store whose tables are empty. */
export type Open = () => Promise<Opened>;

/** The service's external URL in the events of the cases. */
export const PUBLIC_URL = 'https://flowhook.test';

const DAY_MS = 86_400_000;
const START_MS = Date.UTC(2026, 0, 1);
let nowMs = START_MS;
let latestMs = START_MS;

/**
 * The clock of all stores of a process. Each case starts at a midnight later than any time in an earlier case.
 * Otherwise the id of a row would not show when the row was created, because ids never decrease within a process.
 */
export const caseClock = {
  now: () => nowMs,
  advance(ms: number): void {
    nowMs += ms;
    latestMs = Math.max(latestMs, nowMs);
  },
  toNextMidnight(): void {
    nowMs = Math.floor(latestMs / DAY_MS + 1) * DAY_MS;
    latestMs = nowMs;
  },
};

/** Returns a function that registers a case with an opened store. */
export function caseWith(open: Open): (name: string, run: (opened: Opened) => Promise<void>) => void {
  return (name, run) => {
    test(name, async () => {
      const opened = await open();
      try {
        await run(opened);
      } finally {
        await opened.close();
      }
    });
  };
}

/** Expectations of the number of records. */
export function expecting(records: Partial<Expect['records']>): Expect {
  return { ...EXPECT_NOTHING, records: { ...EXPECT_NOTHING.records, ...records } };
}

export function definition(changes: Partial<Definition> = {}): Definition {
  return {
    name: 'People',
    source: { type: 'module', file: 'people.mts' },
    key: [],
    mode: 'replace',
    onInvalid: 'fail',
    overlap: 'reject',
    schedule: null,
    priority: 0,
    expect: expecting({ min: 0 }),
    limits: { timeoutMs: 60_000, records: 1_000, memoryBytes: 512_000_000, outputBytes: 2_000_000_000 },
    retries: { max: 2, backoffMs: 1_000 },
    ...changes,
  };
}

/** Creates a team, and a workflow of it whose jobs can be queued. */
export async function makeWorkflow(
  store: Store,
  input: { team?: string; id?: string; nextRunAt?: number | null } & Partial<Definition> = {},
): Promise<{ teamId: string; workflowId: string }> {
  const { team = 'default', id = 'people', nextRunAt = null, ...changes } = input;
  const { id: teamId } = await store.teams.ensure({ slug: team });
  const hash = JSON.stringify(changes);
  await store.workflows.apply({ teamId, id, definition: definition(changes), hash, nextRunAt });
  return { teamId, workflowId: id };
}

/** Queues a job; its slot must be free. */
export async function makeJob(store: Store, at: { teamId: string; workflowId: string }): Promise<Job> {
  const result = await store.jobs.enqueue({ ...at, origin: 'api', idempotencyKey: null });
  assert.equal(result.outcome, 'queued');
  return (result as { job: Job }).job;
}

/** Creates many things of a team, a hundred at a time, because the last ones of a single batch would time out. */
export async function makeMany<Made>(count: number, make: (n: number) => Promise<Made>): Promise<Made[]> {
  const made: Made[] = [];
  while (made.length < count) {
    const from = made.length;
    const part = Array.from({ length: Math.min(100, count - from) }, (_, n) => make(from + n));
    made.push(...(await Promise.all(part)));
  }
  return made;
}

/** The usual input of claims. */
export const CLAIM = { nodeId: 'node-a', limit: 10, leaseMs: 30_000, perTeam: 100 } as const;

/** Claims the only due job. */
export async function claimOne(store: Store): Promise<AttemptLease> {
  const claimed = await store.jobs.claim({ ...CLAIM, limit: 1 });
  assert.equal(claimed.length, 1);
  return heldOf(claimed[0]?.job as Job);
}

/** Queues a job and claims it. */
export async function makeRunning(
  store: Store,
  at: { teamId: string; workflowId: string },
): Promise<AttemptLease> {
  await makeJob(store, at);
  return claimOne(store);
}

/** Ends an attempt as failed, and its job as well by default. */
export function failAttempt(
  store: Store,
  held: AttemptLease,
  changes: { reason?: FailureReason; error?: string; failures?: number; follows?: AfterFailure } = {},
): Promise<void> {
  const { reason = 'error', error = 'It did not work', failures = 1 } = changes;
  const then: AfterFailure = changes.follows ?? { state: 'failed' };
  return store.jobs.fail({ held, reason, error, failures, then });
}

export function heldOf(job: Job): AttemptLease {
  return { teamId: job.teamId, jobId: job.id, attempt: job.attempt };
}

/** Records with these ids and names, in the form that ingest produces. */
export function people(names: Record<string, string>): { id: string; body: string }[] {
  return Object.entries(names).map(([id, name]) => ({ id, body: JSON.stringify({ id, name }) }));
}

/** Compares, decides and stages like ingest. Returns the `seq` of every record, unchanged ones first. */
export async function stageRecords(
  store: Store,
  held: AttemptLease,
  mode: Mode,
  records: readonly { id: string; body: string }[],
): Promise<number[]> {
  const bodies = new Map<string, string>();
  for (const { id, body } of records) {
    // The last body of an id counts; with `append` the first one does.
    if (mode !== 'append' || !bodies.has(id)) bodies.set(id, body);
  }
  const compared = await store.records.compare({
    held,
    ids: [...bodies.keys()],
    sizes: [...bodies.values()].map((body) => Buffer.byteLength(body)),
  });
  const { writes, kept } = planWrites({ ...compared, mode, records: bodies });
  const { seqs } = await store.records.stage({ held, writes });
  return [...kept, ...seqs];
}

/** Publishes what a run has staged, which need not meet anything by default. */
export function publish(
  store: Store,
  held: AttemptLease,
  changes: Partial<Omit<Parameters<Store['records']['publish']>[0], 'held'>> = {},
) {
  return store.records.publish({ held, state: undefined, fields: ['id', 'name'], ...changes });
}

/** Starts a push; its slot must be free. */
export async function beginPush(
  store: Store,
  at: { teamId: string; workflowId: string },
): Promise<AttemptLease> {
  const begun = await store.jobs.begin({ ...at, nodeId: 'node-a', leaseMs: 30_000, idempotencyKey: null });
  assert.equal(begun.outcome, 'begun');
  return heldOf((begun as { claimed: { job: Job } }).claimed.job);
}

/** Queues, runs and publishes a job. */
export async function publishRun(
  store: Store,
  at: { teamId: string; workflowId: string },
  names: Record<string, string>,
) {
  const held = await makeRunning(store, at);
  const seqs = await stageRecords(store, held, 'replace', people(names));
  const current = await store.records.currentSeqs({ held, afterSeq: 0, rows: 1_000 });
  await store.records.remove({ held, seqs: current.seqs.filter((seq) => !seqs.includes(seq)) });
  return publish(store, held);
}

/** The records of a version, read in pages of a few rows. */
export async function readVersion(
  store: Store,
  at: { teamId: string; workflowId: string; version: number },
  rows = 3,
): Promise<unknown[]> {
  const records: unknown[] = [];
  for (let afterSeq = 0; ; ) {
    const page = await store.records.page({ ...at, afterSeq, rows });
    const found = JSON.parse(`[${Buffer.from(page.json).toString()}]`) as unknown[];
    assert.equal(found.length, page.count);
    records.push(...found);
    if (page.done) return records;
    assert.ok(page.lastSeq > afterSeq);
    afterSeq = page.lastSeq;
  }
}

export async function jobOf(
  store: Store,
  { teamId, jobId }: { teamId: string; jobId: string },
): Promise<Job> {
  return (await store.jobs.get({ teamId, id: jobId })) as Job;
}

/** Every event of a team with its parsed body. */
export async function allEvents(
  store: Store,
  teamId: string,
): Promise<(StoredEvent & { parsed: Record<string, unknown> & { data: Record<string, unknown> } })[]> {
  const events = await store.events.list({ teamId, afterSequence: 0, limit: 1_000 });
  return events.map((event) => ({ ...event, parsed: JSON.parse(event.body) }));
}

/** All changes between two versions, read a few rows at a time. */
export async function readChanges(
  store: Store,
  range: { teamId: string; workflowId: string; since: number; until: number },
  limit: number,
): Promise<ChangedRow[]> {
  const found: ChangedRow[] = [];
  for (let after: ChangesCursor | null = null; ; ) {
    const { rows, next }: { rows: ChangedRow[]; next: ChangesCursor | null } = await store.records.changes({
      ...range,
      after,
      limit,
    });
    assert.ok(rows.length <= limit);
    found.push(...rows);
    if (next === null) return found;
    after = next;
  }
}

/** Repeats an operation of a chore from place to place until it is done. Returns the number of steps. */
export async function allSteps<Input, Step extends { done: boolean; next?: unknown }>(
  operation: (input: Input) => Promise<Step>,
  input: Omit<Input, 'after'>,
): Promise<number> {
  let after: unknown;
  for (let steps = 1; ; steps++) {
    const { done, next } = await operation({ ...input, after } as Input);
    if (done) return steps;
    after = next;
    assert.ok(steps < 1_000, 'the chore ends');
  }
}

/** Counts the usage of every team that has anything to count. */
export async function countUsage(store: Store, input: { graceMs: number; limit: number }): Promise<void> {
  const due = await store.agenda.due({ item: 'usage', until: store.now(), limit: 1_000 });
  for (const { teamId } of due) await allSteps(store.usage.count, { teamId, ...input });
}
