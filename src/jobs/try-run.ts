/**
 * A trial run, which publishes nothing: the source of a definition runs to its end, and its records go through the same
 * checks, comparison and guards as those of a job, into a temporary database. The published records are copied there
 * first, so that the trial can tell what would change, and takes no more memory than a job.
 */
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FailureReason, LogLevel, RecordCounts } from '../model/job.ts';
import type { Definition } from '../model/workflow.ts';
import type { AddressPolicy } from '../net/address-policy.ts';
import { silentLogger } from '../observe/log.ts';
import { type Ingested, ingest, removeUnseen } from '../records/ingest.ts';
import { type SkippedRecord, TooManyRecordsError } from '../records/ingest-batch.ts';
import { Ingester } from '../records/ingester.ts';
import type { Place } from '../records/read.ts';
import type { Suppression } from '../records/suppress.ts';
import type { RunAs } from '../sources/process/environment.ts';
import type { RunEnd } from '../sources/run.ts';
import { startRun } from '../sources/start.ts';
import { openStore } from '../store/open.ts';
import type { ChangedRow, ChangesCursor } from '../store/operations/records.ts';
import type { Store } from '../store/store.ts';
import { beginJob, copyPublished, type Scratch } from './trial-copy.ts';
import { type SeenLines, stopwatch, watchLines } from './trial-lines.ts';

/** Differences that are shown, and rows read at once to find them. */
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
  current: { store: Store; place: Place; suppression: Suppression | undefined } | undefined;
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
  const held = await beginJob(scratch);
  // Starts the ingest thread now, so that its start does not count as the source's time.
  const nothing = ingester.begin({ held, settings: definition });
  await nothing.plan([], Promise.resolve());
  nothing.end();

  const seen: SeenLines = { records: [], emitted: 0, startingMs: 0, producingMs: 0, checkingMs: 0 };
  const ran = await runSource(scratch, input, held, seen);
  const { ingested, invalid } = ran;
  let failure = failureOf(ran, input);
  let changes: TriedRun['changes'] = null;
  watch.lap();
  if (failure === null && ingested !== undefined) {
    onProgress('comparing', ingested.records);
    if (definition.mode === 'replace') await removeUnseen(store, held, ingested.seen);
    const { guards } = definition;
    const published = await store.records.publish({ held, guards, state: null, fields: ingested.fields });
    if (published.outcome === 'guarded') failure = { reason: 'guard', error: published.error };
    else if (published.outcome !== 'canceled') {
      const { records } = published;
      const unchanged = records.total - records.added - records.changed;
      const first = await differences(store, place, since === 0 ? 0 : 1, published.version);
      changes = { ...records, unchanged, since, first };
    }
  }
  return {
    outcome: signal.aborted ? 'interrupted' : failure === null ? 'finished' : 'failed',
    reason: failure?.reason ?? null,
    error: failure?.error ?? null,
    records: seen.records,
    counts: {
      emitted: seen.emitted,
      bytes: ran.bytes,
      duplicates: ingested?.duplicates ?? 0,
      invalid: ingested?.skipped ?? invalid.length,
      suppressed: ingested?.suppressed ?? 0,
    },
    invalid,
    changes,
    state: ran.end.ok ? ran.end.state : undefined,
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

interface Ran {
  ingested: Ingested | undefined;
  invalid: SkippedRecord[];
  /** The error of ingestion; undefined when it succeeded. */
  refused: unknown;
  end: RunEnd;
  bytes: number;
  timedOut: boolean;
}

async function runSource(
  { store, ingester }: Scratch,
  input: TryRunInput,
  held: Awaited<ReturnType<typeof beginJob>>,
  seen: SeenLines,
): Promise<Ran> {
  const { definition, signal } = input;
  const watch = stopwatch();
  const { workflowsDirectory, team, workflowId, secrets, environment, fetchPolicy, runAs, onLog } = input;
  const source = await startRun({
    workflowsDirectory,
    definition,
    team,
    workflowId,
    jobId: held.jobId,
    attempt: held.attempt,
    state: null,
    secrets,
    environment,
    fetchPolicy,
    runAs,
    log: silentLogger,
    onLog,
    onProgress: () => {},
    killGraceMs: KILL_GRACE_MS,
  });
  const ran = { ingested: undefined as Ingested | undefined, refused: undefined as unknown, timedOut: false };
  const deadline = setTimeout(() => {
    ran.timedOut = true;
    source.stop();
  }, definition.limits.timeoutMs);
  signal.addEventListener('abort', source.stop, { once: true });
  if (signal.aborted) source.stop();
  const invalid: SkippedRecord[] = [];
  try {
    const { key } = definition;
    const tell = (records: number) => input.onProgress('running', records);
    const lines = watchLines(source.batches, seen, { key, watch, tell });
    // Skipped even if the definition says `fail`: a trial reports the first ten invalid records.
    const asked = { held, definition: { ...definition, onInvalid: 'skip' as const }, lines };
    const onSkipped = (skipped: SkippedRecord) => void invalid.push(skipped);
    ran.ingested = await ingest({ store, ingester, onSkipped }, asked);
    await source.end;
  } catch (error) {
    ran.refused = error;
  } finally {
    clearTimeout(deadline);
    signal.removeEventListener('abort', source.stop);
    source.kill();
  }
  return { ...ran, invalid, end: await source.end, bytes: source.bytes };
}

function failureOf(
  { refused, end, timedOut, invalid }: Ran,
  { definition, signal }: TryRunInput,
): { reason: FailureReason; error: string } | null {
  if (signal.aborted) return { reason: 'error', error: 'Interrupted' };
  if (timedOut) {
    const seconds = definition.limits.timeoutMs / 1_000;
    const error = `The run took longer than ${seconds} s and was ended. Raise \`limits.timeout\` if it needs more`;
    return { reason: 'timeout', error };
  }
  const [first] = invalid;
  if (first !== undefined && definition.onInvalid === 'fail') {
    return { reason: 'invalid_record', error: `Record ${first.position} is not valid: ${first.reason}` };
  }
  if (refused !== undefined) {
    const error = refused instanceof Error ? refused.message : String(refused);
    return { reason: refused instanceof TooManyRecordsError ? 'output' : 'error', error };
  }
  return end.ok ? null : { reason: end.reason, error: end.error };
}

/** The first differences between two versions; none when they are the same. */
async function differences(store: Store, place: Place, since: number, until: number): Promise<ChangedRow[]> {
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
