/**
 * A trial run, which publishes nothing: the source of a definition runs to its end, and its records go through the same
 * checks, comparison and guards as those of a job, into a temporary database. The published records are copied there
 * first, so that the trial can tell what would change, and takes no more memory than a job.
 */

import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AttemptLease, FailureReason, LogLevel, RecordCounts } from '../model/job.ts';
import { InvalidRecordError, readRecord } from '../model/record.ts';
import type { Definition, WorkflowRef } from '../model/workflow.ts';
import type { AddressPolicy } from '../net/address-policy.ts';
import { silentLogger } from '../observe/log.ts';
import { type Ingested, ingest } from '../records/ingest.ts';
import type { SkippedRecord } from '../records/ingest-batch.ts';
import { Ingester } from '../records/ingester.ts';
import { PARSED_ROWS, pageRows } from '../records/read.ts';
import type { Suppression } from '../records/suppress.ts';
import type { RunAs } from '../sources/process/environment.ts';
import type { Run } from '../sources/run.ts';
import { createMask } from '../sources/secrets.ts';
import { startRun } from '../sources/start.ts';
import { openStore } from '../store/open.ts';
import type { ClaimedJob } from '../store/operations/attempts.ts';
import type { ChangedRow, ChangesCursor } from '../store/operations/records.ts';
import type { DataVersion } from '../store/operations/versions.ts';
import type { Store } from '../store/store.ts';
import { type AttemptEnd, type Producer, RunFailure, runAttempt } from './attempt.ts';
import { runTooSlow } from './run-source.ts';

/** Records and differences that are shown, and rows read at once to find the latter. */
const SHOWN = 10;
const LOOKED_AT = 500;
const KILL_GRACE_MS = 2_000;

interface TryRunInput {
  /** As `RunInput` of `sources/run.ts`. */
  workflowsDirectory: string;
  team: string;
  workflowId: string;
  definition: Definition;
  secrets: ReadonlyMap<string, string>;
  environment: ReadonlyMap<string, string>;
  fetchPolicy: AddressPolicy;
  /** The system user that it runs as; undefined: this one. */
  runAs: RunAs | undefined;
  /** The published records; undefined without a database, or if it has no such workflow. */
  current: { store: Store; place: WorkflowRef; suppression: Suppression | undefined } | undefined;
  onLog(line: { level: LogLevel; text: string }): void;
  /** Called with the current step and the number of records it has processed. */
  onProgress(step: 'copying' | 'running' | 'comparing', records: number): void;
  /** Ends the child. */
  signal: AbortSignal;
}

/** What a job would have done. Times in milliseconds. */
export interface TriedRun {
  outcome: 'finished' | 'failed' | 'interrupted';
  /** Why it would have failed, as the job would say. */
  reason: FailureReason | null;
  error: string | null;
  /** The first records, as they would be published. */
  records: Record<string, unknown>[];
  counts: { emitted: number; bytes: number; duplicates: number; invalid: number; suppressed: number };
  /** The first invalid records. */
  invalid: SkippedRecord[];
  /** Compared with version `since` (0: nothing was published); null when the run failed before the comparison. */
  changes: (RecordCounts & { unchanged: number; since: number; first: ChangedRow[] }) | null;
  /** The state it would store for the next run; undefined when it stays unchanged. */
  state: unknown;
  /** Where the time went: `starting` until the first line, `checking` while the source had to wait. */
  ms: Record<'copying' | 'starting' | 'producing' | 'checking' | 'comparing' | 'total', number>;
}

/**
 * Resolves also when the run fails: see `outcome`.
 *
 * @throws Error with a sentence when the source cannot be started
 */
export async function tryRun(input: TryRunInput): Promise<TriedRun> {
  await removeLeftTrials();
  const directory = await mkdtemp(join(tmpdir(), `${TRIAL}${process.pid}-`));
  try {
    const databaseUrl = `sqlite:${join(directory, 'trial.db')}`;
    const log = silentLogger;
    const store = await openStore(databaseUrl, { publicUrl: () => '', log, synchronous: 'OFF' });
    const suppression = async () => input.current?.suppression;
    const ingester = new Ingester({ databaseUrl, log, suppression });
    try {
      const { id: teamId } = await store.teams.ensure({ slug: 'trial' });
      const { workflowId: id, definition } = input;
      await store.workflows.apply({ teamId, id, definition, hash: '', nextRunAt: null });
      return await tryIn({ store, ingester, place: { teamId, workflowId: id } }, input);
    } finally {
      await ingester.close();
      await store.close();
    }
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

async function tryIn(scratch: Scratch, input: TryRunInput): Promise<TriedRun> {
  const { definition, current, signal, onProgress } = input;
  const { store, ingester, place } = scratch;
  const watch = stopwatch();
  const version = current && (await current.store.records.version(current.place));
  const since = version?.number ?? 0;
  if (current !== undefined && version !== undefined && since > 0) {
    const tell = (records: number) => onProgress('copying', records);
    await copyPublished(scratch, { ...current, version }, definition, { signal, tell });
  }
  const copying = watch.lap();
  const claimed = await beginJob(scratch);
  // Starts the ingest thread now, so that its start does not count as the source's time.
  const nothing = ingester.begin({ held: heldBy(claimed), settings: definition });
  await nothing.plan([], Promise.resolve());
  nothing.end();

  const seen: SeenLines = { records: [], emitted: 0, startingMs: 0, producingMs: 0, checkingMs: 0 };
  const tried = tryingProducer(input, claimed, { seen, onEnd: () => watch.lap() });
  const { found } = tried;
  const deps = { store, ingester, log: silentLogger, observer: {}, random: Math.random };
  // An interrupted source may use its grace.
  const end = await runAttempt(deps, claimed, tried.producer, {
    abort: new AbortController().signal,
    cancel: signal,
  });
  if (found.cannotStart !== undefined) throw found.cannotStart;
  const failure = signal.aborted ? INTERRUPTED : failureOf(end, tried.invalidRecord());
  let changes: TriedRun['changes'] = null;
  const published = end.outcome === 'finished' ? end.published : undefined;
  if (failure === null && published !== undefined && 'version' in published) {
    const { records } = published;
    const unchanged = records.total - records.added - records.changed;
    const first = await differences(store, place, since === 0 ? 0 : 1, published.version);
    changes = { ...records, unchanged, since, first };
  }
  const { ingested, invalid } = found;
  return {
    outcome: signal.aborted ? 'interrupted' : failure === null ? 'finished' : 'failed',
    reason: failure?.reason ?? null,
    error: failure?.error ?? null,
    records: seen.records,
    counts: {
      emitted: seen.emitted,
      bytes: found.run?.bytes ?? 0,
      duplicates: ingested?.duplicates ?? 0,
      invalid: ingested?.skipped ?? invalid.length,
      suppressed: ingested?.suppressed ?? 0,
    },
    invalid,
    changes,
    state: found.state,
    ms: {
      copying,
      starting: seen.startingMs,
      producing: seen.producingMs,
      checking: seen.checkingMs,
      comparing: watch.lap(),
      total: watch.total(),
    },
  };
}

type Failure = { reason: FailureReason; error: string };

const INTERRUPTED: Failure = { reason: 'error', error: 'Interrupted' };

/** The source of the definition, with its lines and its end observed in `found`. */
function tryingProducer(
  input: TryRunInput,
  { job }: ClaimedJob,
  { seen, onEnd }: { seen: SeenLines; onEnd(): void },
) {
  const { definition, secrets, onLog, onProgress } = input;
  const found = {
    run: undefined as Run | undefined,
    cannotStart: undefined as unknown,
    ingested: undefined as Ingested | undefined,
    invalid: [] as SkippedRecord[],
    state: undefined as unknown,
  };
  const invalidRecord = (): RunFailure | undefined => {
    const [first] = found.invalid;
    if (first === undefined || definition.onInvalid !== 'fail') return undefined;
    return new RunFailure('invalid_record', `Record ${first.position} is invalid: ${first.reason}`);
  };
  const producer: Producer = {
    what: 'run',
    // Skipped even if the definition says `fail`: a trial reports the first ten invalid records.
    definition: { ...definition, onInvalid: 'skip' },
    once: true,
    tooSlow: runTooSlow,
    onSkipped: (skipped) => void found.invalid.push(skipped),
    onIngested: (ingested) => {
      found.ingested = ingested;
    },
    async start(attempt) {
      const watch = stopwatch();
      attempt.clean = createMask(secrets).clean;
      const run = await startRun({
        ...input,
        jobId: job.id,
        attempt: job.attempt,
        state: null,
        log: silentLogger,
        onLog,
        onProgress: () => {},
        killGraceMs: KILL_GRACE_MS,
      }).catch((error: unknown) => {
        found.cannotStart = error;
        throw error;
      });
      found.run = run;
      const tell = (records: number) => onProgress('running', records);
      return {
        process: run.process,
        batches: watchLines(run.batches, seen, { key: definition.key, watch, tell }),
        get bytes() {
          return run.bytes;
        },
        end: run.end.then((end) => {
          if (end.ok) found.state = end.state;
          onProgress('comparing', seen.emitted);
          onEnd();
          return end;
        }),
        stop: run.stop,
        kill: run.kill,
      };
    },
    async confirm() {
      const failure = invalidRecord();
      if (failure !== undefined) throw failure;
    },
  };
  return { producer, found, invalidRecord };
}

function failureOf(end: AttemptEnd, invalidRecord: RunFailure | undefined): Failure | null {
  const failure = end.outcome === 'failed' || end.outcome === 'retrying' ? end.failure : undefined;
  // A job would have failed with the first of them, whatever came later.
  const first = failure?.reason === 'timeout' ? failure : (invalidRecord ?? failure);
  return first === undefined ? null : { reason: first.reason, error: first.message };
}

/** The first differences between two versions; none when they are the same. */
async function differences(
  store: Store,
  place: WorkflowRef,
  since: number,
  until: number,
): Promise<ChangedRow[]> {
  const found: ChangedRow[] = [];
  let after: ChangesCursor | null = null;
  do {
    if (since === until) break;
    const page: Awaited<ReturnType<Store['records']['changes']>> = await store.records.changes({
      ...place,
      since,
      until,
      after,
      limit: LOOKED_AT,
    });
    found.push(...page.rows);
    after = page.next;
  } while (after !== null && found.length < SHOWN);
  return found.slice(0, SHOWN);
}

/** The prefix of the directories of trials; the process id follows. */
const TRIAL = 'flowhook-trial-';

/** Removes the databases of killed trials, which contain published records. */
async function removeLeftTrials(): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    const pid = name.startsWith(TRIAL) ? Number.parseInt(name.slice(TRIAL.length), 10) : Number.NaN;
    if (pid > 0 && !isAlive(pid)) await rm(join(tmpdir(), name), { recursive: true, force: true });
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Nothing else claims jobs in that database, and nothing renews the lease. */
const LEASE_MS = 365 * 86_400_000;

/** The temporary database of a trial run, which holds one workflow. */
interface Scratch {
  store: Store;
  ingester: Ingester;
  place: WorkflowRef;
}

/** The published records to copy. */
interface PublishedRecords {
  store: Store;
  place: WorkflowRef;
  version: DataVersion;
}

/**
 * Publishes the records of a version in the trial's database, as its version 1.
 *
 * @throws the signal's reason
 */
async function copyPublished(
  scratch: Scratch,
  published: PublishedRecords,
  definition: Definition,
  { signal, tell }: { signal: AbortSignal; tell: (records: number) => void },
): Promise<void> {
  const held = heldBy(await beginJob(scratch));
  const ingested = await ingest(
    { ...scratch, onSkipped: () => {} },
    {
      held,
      // The records have ids, and were valid when they were published.
      definition: {
        ...definition,
        key: [],
        mode: 'upsert',
        limits: { ...definition.limits, records: Number.MAX_SAFE_INTEGER },
      },
      lines: linesOf(published, signal, tell),
    },
  );
  const guards = { minRecords: 0, maxDropPercent: null };
  await scratch.store.records.publish({ held, guards, state: null, fields: ingested.fields });
}

/** Begins a job of the trial's workflow. */
async function beginJob({ store, place }: Scratch): Promise<ClaimedJob> {
  await store.jobs.enqueue({ ...place, origin: 'cli', idempotencyKey: null });
  const [claimed] = await store.jobs.claim({ nodeId: 'trial', limit: 1, leaseMs: LEASE_MS, perTeam: 1 });
  if (claimed === undefined) throw new Error('The trial could not begin its job');
  return claimed;
}

function heldBy({ job }: ClaimedJob): AttemptLease {
  return { teamId: job.teamId, jobId: job.id, attempt: job.attempt };
}

async function* linesOf(
  { store, place, version }: PublishedRecords,
  signal: AbortSignal,
  tell: (records: number) => void,
): AsyncGenerator<string[]> {
  const rows = pageRows(version, PARSED_ROWS);
  let afterSeq = 0;
  for (let copied = 0; ; ) {
    signal.throwIfAborted();
    const page = await store.records.page({
      ...place,
      version: version.number,
      afterSeq,
      rows,
      separator: '\n',
    });
    if (page.count === 0) return;
    yield Buffer.from(page.json).toString().split('\n');
    afterSeq = page.lastSeq;
    copied += page.count;
    tell(copied);
  }
}

/** Lines of each batch that are parsed to find them: a run with only invalid records must not be parsed twice. */
const LINES_PARSED = 20;

/** What was observed; updated while the lines are read. */
interface SeenLines {
  records: Record<string, unknown>[];
  emitted: number;
  /** From the start to the first line, or to the end of a run without lines. */
  startingMs: number;
  /** Time spent waiting for the source after its first line. */
  producingMs: number;
  /** Time the source spent waiting for its lines to be checked. */
  checkingMs: number;
}

/**
 * @param options.watch must be started together with the source
 * @param options.tell called with the number of records so far
 */
async function* watchLines(
  batches: AsyncIterable<string[]>,
  seen: SeenLines,
  { key, watch, tell }: { key: readonly string[]; watch: Stopwatch; tell: (records: number) => void },
): AsyncGenerator<string[]> {
  for await (const batch of batches) {
    waited();
    if (seen.records.length < SHOWN) {
      const valid = batch.slice(0, LINES_PARSED).flatMap((line) => validRecord(line, key));
      seen.records.push(...valid.slice(0, SHOWN - seen.records.length));
    }
    seen.emitted += batch.length;
    tell(seen.emitted);
    yield batch;
    seen.checkingMs += watch.lap();
  }
  waited();

  function waited(): void {
    if (seen.emitted === 0) seen.startingMs += watch.lap();
    else seen.producingMs += watch.lap();
  }
}

interface Stopwatch {
  /** Milliseconds since the last lap, or the start. */
  lap(): number;
  /** Milliseconds since the start. */
  total(): number;
}

function stopwatch(): Stopwatch {
  const startedAt = performance.now();
  let lapAt = startedAt;
  return {
    lap() {
      const now = performance.now();
      const ms = now - lapAt;
      lapAt = now;
      return ms;
    },
    total: () => performance.now() - startedAt,
  };
}

function validRecord(line: string, key: readonly string[]): Record<string, unknown>[] {
  try {
    return [JSON.parse(readRecord(line, key).body)];
  } catch (error) {
    if (error instanceof InvalidRecordError) return [];
    throw error;
  }
}
