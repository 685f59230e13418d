/**
 * Runs a workflow without publishing. The records go through the same checks, comparison and expectations as in a job, but
 * they are written to a temporary database. The published records are copied there first, so that the trial can show
 * what would change. A trial needs no more memory than a job.
 */
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AttemptLease, FailureReason, LogLevel, RecordCounts } from '../model/job.ts';
import { absentFields } from '../model/quality/absent-fields.ts';
import { EXPECT_NOTHING, type JobFinding } from '../model/quality/expect.ts';
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
import { parseAsWritten } from '../std/exact-json.ts';
import { openStore } from '../store/open.ts';
import type { ClaimedJob } from '../store/operations/attempts.ts';
import type { ChangedRow, ChangesCursor } from '../store/operations/history/changes.ts';
import type { DataVersion } from '../store/operations/versions.ts';
import type { Store } from '../store/store.ts';
import { type AttemptEnd, type Producer, RunFailure, runAttempt } from './attempt.ts';
import { runTooSlow } from './run-source.ts';

/** Maximum number of records to return, and of differences. */
const SHOWN = 10;
/** Page size for reading the differences. */
const PAGE = 500;
const KILL_GRACE_MS = 2_000;

interface TryRunInput {
  workflowsDirectory: string;
  team: string;
  workflowId: string;
  definition: Definition;
  secrets: ReadonlyMap<string, string>;
  environment: ReadonlyMap<string, string>;
  fetchPolicy: AddressPolicy;
  /** The system user that the source runs as (default: the current user). */
  runAs: RunAs | undefined;
  /** Where to read the published records. Undefined if there is no database or no such workflow. */
  current: { store: Store; place: WorkflowRef; suppression: Suppression | undefined } | undefined;
  onLog(line: { level: LogLevel; text: string }): void;
  /** Called with the current step, and the number of records that this step has processed. */
  onProgress(step: 'copying' | 'running' | 'comparing', records: number): void;
  /** Stops the child process. */
  signal: AbortSignal;
}

/** The result that a job of this workflow would have had. */
export interface TriedRun {
  outcome: 'finished' | 'failed' | 'interrupted';
  /** Why the job would have failed. */
  reason: FailureReason | null;
  error: string | null;
  /** The first ten records, in the form in which they would be published. */
  records: Record<string, unknown>[];
  counts: { emitted: number; bytes: number; duplicates: number; invalid: number; suppressed: number };
  /** The first ten invalid records. */
  invalid: SkippedRecord[];
  /**
   * The differences from version `since` (0 if nothing was published). Null if the run failed before the comparison.
   */
  changes: (RecordCounts & { unchanged: number; since: number; first: ChangedRow[] }) | null;
  /** What the records do not meet of the expectations of the workflow. */
  findings: JobFinding[];
  /** Sentences about fields that were not checked, because no record has them. */
  unchecked: string[];
  /** The state that would be stored for the next run. Undefined if the state has not changed. */
  state: unknown;
  /**
   * The duration of each step in ms. `starting` ends when the source prints its first line. `checking` is the time that
   * the source waited for its lines to be checked and staged.
   */
  ms: Record<'copying' | 'starting' | 'producing' | 'checking' | 'comparing' | 'total', number>;
}

/**
 * Runs a trial. A run that fails is not thrown but reported in `outcome`.
 *
 * @throws Error if the source cannot be started
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
  const startedAt = performance.now();
  const lap = stopwatch();
  const version = current && (await current.store.records.version(current.place));
  const since = version?.number ?? 0;
  if (current !== undefined && version !== undefined && since > 0) {
    const report = (records: number) => onProgress('copying', records);
    await copyPublished(scratch, { ...current, version }, definition, { signal, report });
  }
  const copying = lap();
  const claimed = await beginJob(scratch);
  // The ingest thread is started here, so that its startup does not count as time of the source.
  const nothing = ingester.begin({ held: heldBy(claimed), settings: definition });
  await nothing.plan([], Promise.resolve());
  nothing.end();

  const { producer, seen } = trialProducer(input, claimed, lap);
  const deps = { store, ingester, log: silentLogger, observer: {}, random: Math.random };
  // A source that is interrupted still has its grace period, so the run is canceled and not aborted.
  const end = await runAttempt(deps, claimed, producer, {
    abort: new AbortController().signal,
    cancel: signal,
  });
  if (seen.cannotStart !== undefined) throw seen.cannotStart;
  const failure = signal.aborted
    ? new RunFailure('error', 'The trial was interrupted')
    : failureOf(end, invalidRecord(definition, seen));
  let changes: TriedRun['changes'] = null;
  const published = end.outcome === 'finished' ? end.published : undefined;
  if (failure === undefined && published !== undefined && 'version' in published) {
    const { records } = published;
    const unchanged = records.total - records.added - records.changed;
    const first = await differences(store, place, since === 0 ? 0 : 1, published.version);
    changes = { ...records, unchanged, since, first };
  }
  const { ingested, invalid } = seen;
  return {
    outcome: signal.aborted ? 'interrupted' : failure === undefined ? 'finished' : 'failed',
    reason: failure?.reason ?? null,
    error: failure?.message ?? null,
    records: seen.records,
    counts: {
      emitted: seen.emitted,
      bytes: seen.run?.bytes ?? 0,
      duplicates: ingested?.duplicates ?? 0,
      invalid: ingested?.skipped ?? invalid.length,
      suppressed: ingested?.suppressed ?? 0,
    },
    invalid,
    changes,
    findings: (await store.jobs.get({ teamId: place.teamId, id: claimed.job.id }))?.findings ?? [],
    unchecked: ingested === undefined ? [] : absentFields(definition.expect.fields, ingested.found.profile),
    state: seen.state === undefined ? undefined : parseAsWritten(seen.state),
    ms: { copying, ...seen.ms, comparing: lap(), total: performance.now() - startedAt },
  };
}

/** What a trial records while the source runs. */
interface Seen {
  run?: Run;
  /** The reason why the source could not be started. */
  cannotStart?: unknown;
  /** The first valid records. */
  records: Record<string, unknown>[];
  emitted: number;
  ingested?: Ingested;
  invalid: SkippedRecord[];
  state: string | undefined;
  ms: { starting: number; producing: number; checking: number };
}

/** Runs the source of the definition. @param lap called when the source has ended */
function trialProducer(input: TryRunInput, { job }: ClaimedJob, lap: () => void) {
  const { definition, secrets, onLog, onProgress } = input;
  const seen: Seen = {
    records: [],
    emitted: 0,
    invalid: [],
    state: undefined,
    ms: { starting: 0, producing: 0, checking: 0 },
  };
  const producer: Producer = {
    what: 'run',
    // The trial skips invalid records even if the definition says `fail`, so that it can report the first ten of them.
    definition: { ...definition, onInvalid: 'skip' },
    once: true,
    tooSlow: runTooSlow,
    onSkipped: (skipped) => void seen.invalid.push(skipped),
    onIngested: (ingested) => {
      seen.ingested = ingested;
    },
    async start(attempt) {
      const lapOfSource = stopwatch();
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
        seen.cannotStart = error;
        throw error;
      });
      seen.run = run;
      const report = (records: number) => onProgress('running', records);
      return {
        process: run.process,
        batches: watchLines(run.batches, seen, { key: definition.key, lap: lapOfSource, report }),
        get bytes() {
          return run.bytes;
        },
        end: run.end.then((end) => {
          if (end.ok) seen.state = end.state;
          onProgress('comparing', seen.emitted);
          lap();
          return end;
        }),
        stop: run.stop,
        kill: run.kill,
      };
    },
    async confirm() {
      const failure = invalidRecord(definition, seen);
      if (failure !== undefined) throw failure;
    },
  };
  return { producer, seen };
}

/** Returns the failure that the first invalid record would have caused in a job. */
function invalidRecord({ onInvalid }: Definition, { invalid: [first] }: Seen): RunFailure | undefined {
  if (first === undefined || onInvalid !== 'fail') return undefined;
  return new RunFailure('invalid_record', `Record ${first.position} is invalid: ${first.reason}`);
}

function failureOf(end: AttemptEnd, invalid: RunFailure | undefined): RunFailure | undefined {
  const failure = end.outcome === 'failed' || end.outcome === 'retrying' ? end.failure : undefined;
  // A job would have failed at the first invalid record, before any failure that came later.
  return failure?.reason === 'timeout' ? failure : (invalid ?? failure);
}

/** The first differences between two versions. */
async function differences(
  store: Store,
  place: WorkflowRef,
  since: number,
  until: number,
): Promise<ChangedRow[]> {
  const found: ChangedRow[] = [];
  let after: ChangesCursor | null = null;
  while (since !== until && found.length < SHOWN) {
    const page: Awaited<ReturnType<Store['records']['changes']>> = await store.records.changes({
      ...place,
      since,
      until,
      after,
      limit: PAGE,
    });
    found.push(...page.rows);
    after = page.next;
    if (after === null) break;
  }
  return found.slice(0, SHOWN);
}

/** The name prefix of the temporary directories of trials. The process id follows the prefix. */
const TRIAL = 'flowhook-trial-';

/** Removes the databases of trials that were killed, because these databases contain published records. */
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

/**
 * The lease is longer than any trial, because nothing renews it. No other process claims jobs in the temporary
 * database.
 */
const LEASE_MS = 365 * 86_400_000;

/** The temporary database of a trial, which holds one workflow. */
interface Scratch {
  store: Store;
  ingester: Ingester;
  place: WorkflowRef;
}

interface PublishedRecords {
  store: Store;
  place: WorkflowRef;
  version: DataVersion;
}

/** Called with the number of records copied so far. */
type ReportCount = (records: number) => void;

/**
 * Copies the records of a version to the temporary database, as version 1.
 *
 * @throws the signal's reason
 */
async function copyPublished(
  scratch: Scratch,
  published: PublishedRecords,
  definition: Definition,
  { signal, report }: { signal: AbortSignal; report: ReportCount },
): Promise<void> {
  const held = heldBy(await beginJob(scratch));
  const ingested = await ingest(
    { ...scratch, onSkipped: () => {} },
    {
      held,
      workflowId: scratch.place.workflowId,
      // The published records already have ids, and they were valid when they were published.
      definition: {
        ...definition,
        key: [],
        expect: EXPECT_NOTHING,
        mode: 'upsert',
        limits: { ...definition.limits, records: Number.MAX_SAFE_INTEGER },
      },
      lines: linesOf(published, signal, report),
    },
  );
  await scratch.store.records.publish({ held, state: undefined, fields: ingested.fields });
}

async function beginJob({ store, place }: Scratch): Promise<ClaimedJob> {
  await store.jobs.enqueue({ ...place, origin: 'cli', idempotencyKey: null });
  const [claimed] = await store.jobs.claim({ nodeId: 'trial', limit: 1, leaseMs: LEASE_MS, perTeam: 1 });
  if (claimed === undefined) throw new Error('The job of the trial could not be claimed');
  return claimed;
}

function heldBy({ job }: ClaimedJob): AttemptLease {
  return { teamId: job.teamId, jobId: job.id, attempt: job.attempt };
}

async function* linesOf(
  { store, place, version }: PublishedRecords,
  signal: AbortSignal,
  report: ReportCount,
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
    report(copied);
  }
}

/**
 * Maximum number of lines per batch that are parsed for `Seen.records`. Without a limit, many invalid records in a row
 * would all be parsed twice.
 */
const LINES_PARSED = 20;

/**
 * Yields the batches. Also notes the first valid records, and how long the source and the checks take.
 *
 * @param options.lap a stopwatch that was started with the source
 */
async function* watchLines(
  batches: AsyncIterable<string[]>,
  seen: Seen,
  { key, lap, report }: { key: readonly string[]; lap: () => number; report: ReportCount },
): AsyncGenerator<string[]> {
  for await (const batch of batches) {
    waited();
    if (seen.records.length < SHOWN) {
      const valid = batch.slice(0, LINES_PARSED).flatMap((line) => validRecord(line, key));
      seen.records.push(...valid.slice(0, SHOWN - seen.records.length));
    }
    seen.emitted += batch.length;
    report(seen.emitted);
    yield batch;
    seen.ms.checking += lap();
  }
  waited();

  function waited(): void {
    seen.ms[seen.emitted === 0 ? 'starting' : 'producing'] += lap();
  }
}

/** Starts a stopwatch. Each call of the returned function returns the milliseconds since the previous call. */
function stopwatch(): () => number {
  let lapAt = performance.now();
  return () => {
    const before = lapAt;
    lapAt = performance.now();
    return lapAt - before;
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
