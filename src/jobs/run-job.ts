/** One attempt of one job: its source is started, its records are staged and published, its end is written. */
import { FencedError } from '../model/error.ts';
import { afterFailure, type FailureReason, type Held } from '../model/job.ts';
import { InvalidRecordError } from '../model/record.ts';
import type { Logger } from '../observe/log.ts';
import { type Ingested, ingest, removeUnseen } from '../records/ingest.ts';
import { TooManyRecordsError } from '../records/ingest-batch.ts';
import type { Ingester } from '../records/ingester.ts';
import type { ClaimedJob, Published, Store } from '../store/store.ts';
import { type Run, startRun } from '../workflows/sources/run.ts';
import { patientStore } from './patient-store.ts';

/** What running jobs need from their surroundings. */
export interface RunJobDeps {
  store: Store;
  ingester: Ingester;
  log: Logger;
  /** Where definition files lie on this node. */
  workflowsDirectory: string;
  /** The server's environment, of which children inherit a few variables. */
  environment: ReadonlyMap<string, string>;
  /** The secrets of a team, by its slug. */
  secrets(team: string): Promise<ReadonlyMap<string, string>>;
  /** In [0, 1): spreads retries. */
  random(): number;
}

/** Why the engine wants a run to end: the job stays this node's to release, or belongs to somebody else by now. */
export type Interruption = 'release' | 'fenced';

/** Raised inside a run, with the reason that the job's row will carry. */
class RunFailure extends Error {
  readonly reason: FailureReason;
  constructor(reason: FailureReason, message: string) {
    super(message);
    this.reason = reason;
  }
}

/**
 * Runs one claimed attempt to its end and writes that end.
 *
 * @param signal aborted with an `Interruption`: the children are then ended and nothing more is written
 * @returns how it ended; `interrupted` leaves the row to whoever interrupted
 */
export async function runJob(
  deps: RunJobDeps,
  claimed: ClaimedJob,
  signal: AbortSignal,
): Promise<'finished' | 'failed' | 'retrying' | 'interrupted'> {
  const store = patientStore(deps.store, signal, deps.random);
  const { job, workflow } = claimed;
  const held: Held = { teamId: job.teamId, jobId: job.id, attempt: job.attempt };
  const startedAt = store.now();
  const log = deps.log.child({ workflowId: workflow.id, jobId: job.id, attempt: job.attempt });

  try {
    const { published, ingested } = await attempt({ ...deps, store }, claimed, held, signal, log);
    if (published.outcome === 'guarded') throw new RunFailure('guard', published.error);
    log.info({ ms: store.now() - startedAt, ...countsOf(ingested), ...published }, 'job.finished');
    return 'finished';
  } catch (error) {
    if (signal.aborted || error instanceof FencedError) {
      log.warn(
        { ms: store.now() - startedAt, why: signal.aborted ? signal.reason : 'fenced' },
        'job.interrupted',
      );
      return 'interrupted';
    }
    const failure = asFailure(error);
    const counts = failure.reason === 'error' || failure.reason === 'source' ? 1 : 0;
    const failures = job.failures + counts;
    const then = afterFailure({
      reason: failure.reason,
      failures,
      retries: workflow.definition.retries,
      nowMs: store.now(),
      random: deps.random(),
    });
    await store.jobs.fail({ held, reason: failure.reason, error: failure.message, failures, then });
    log.warn(
      { ms: store.now() - startedAt, reason: failure.reason, error: failure.message, ...then },
      'job.failed',
    );
    return then.state;
  }
}

async function attempt(
  deps: RunJobDeps,
  claimed: ClaimedJob,
  held: Held,
  signal: AbortSignal,
  log: Logger,
): Promise<{ published: Published; ingested: Ingested }> {
  const { store } = deps;
  const { job, workflow } = claimed;
  const team = await store.teams.get({ teamId: job.teamId });
  if (team === undefined) throw new RunFailure('error', `The team ${job.teamId} of this job is gone`);

  signal.throwIfAborted();
  const run = await startRun({
    workflowsDirectory: deps.workflowsDirectory,
    definition: workflow.definition,
    team: team.slug,
    workflowId: workflow.id,
    jobId: job.id,
    attempt: job.attempt,
    state: claimed.state,
    secrets: await deps.secrets(team.slug),
    environment: deps.environment,
    log,
  });
  const interrupt = () => run.kill();
  signal.addEventListener('abort', interrupt, { once: true });
  if (signal.aborted) run.kill();
  const deadline = new Deadline(run, workflow.definition.limits.timeoutMs);
  try {
    await store.jobs.setProcess({ held, process: run.process });
    const ingested = await ingest(
      { store, ingester: deps.ingester, log },
      { held, definition: workflow.definition, lines: run.batches },
    );
    const end = await run.end;
    signal.throwIfAborted();
    if (deadline.passed) throw new RunFailure('timeout', deadline.sentence);
    if (!end.ok) throw new RunFailure(end.reason, end.error);
    if (workflow.definition.mode === 'replace') await removeUnseen(store, held, ingested.seen);
    const published = await store.records.publish({
      held,
      guards: workflow.definition.guards,
      state: end.state === undefined ? claimed.state : end.state,
      fields: ingested.fields,
    });
    return { published, ingested };
  } catch (error) {
    // A run that was cut off may have left half a record: the time limit is the cause, the half only its trace.
    const fenced = error instanceof FencedError;
    if (deadline.passed && !fenced) throw new RunFailure('timeout', deadline.sentence);
    throw error;
  } finally {
    // Whatever went wrong: nothing of this attempt may run on once its end is written.
    deadline.clear();
    signal.removeEventListener('abort', interrupt);
    run.kill();
    await run.end;
  }
}

/** Asks a run to stop when its time is over, and remembers that it did. */
class Deadline {
  passed = false;
  readonly sentence: string;
  readonly #timer: NodeJS.Timeout;

  constructor(run: Run, timeoutMs: number) {
    this.sentence = `The run took longer than ${timeoutMs / 1_000} s and was ended. Raise \`limits.timeout\` if it needs more`;
    this.#timer = setTimeout(() => {
      this.passed = true;
      run.stop();
    }, timeoutMs);
  }

  clear(): void {
    clearTimeout(this.#timer);
  }
}

/** What the job's line in the log says of its records, beside what was published. */
function countsOf({ records, duplicates, existing, skipped, suppressed }: Ingested): Record<string, number> {
  return { emitted: records, duplicates, existing, skipped, suppressed };
}

function asFailure(error: unknown): RunFailure {
  if (error instanceof RunFailure) return error;
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof InvalidRecordError) return new RunFailure('invalid_record', message);
  if (error instanceof TooManyRecordsError) return new RunFailure('output', message);
  return new RunFailure('error', message);
}
