/** Runs one claimed attempt of a job to its end: runs it, writes how it ended, and reports that. */
import { FencedError } from '../model/error.ts';
import { type AfterFailure, afterFailure, type Held, type LogLevel } from '../model/job.ts';
import { tracedAttempt, UNTRACED } from '../observe/trace-context.ts';
import { toIso } from '../std/clock.ts';
import { printable } from '../std/printable.ts';
import type { ClaimedJob } from '../store/operations/attempts.ts';
import { type AttemptEnd, reportAttempt } from './attempt-end.ts';
import { Reporter } from './reporter.ts';
import { retryingStore } from './retrying-store.ts';
import { asFailure, RunFailure, type RunJobDeps, type RunSignals, runAttempt } from './run-attempt.ts';

/** Why the engine kills a run: it will release the job, or this node no longer holds the job. */
export type Interruption = 'release' | 'fenced';

/** `interrupted`: the end is not written here; the engine releases the job, or another node has it. */
type RunOutcome = 'finished' | 'failed' | 'retrying' | 'canceled' | 'interrupted';

/**
 * @param signals the reason of `abort` is an `Interruption`
 */
export async function runJob(
  deps: RunJobDeps,
  claimed: ClaimedJob,
  signals: RunSignals,
): Promise<RunOutcome> {
  const { job, workflow } = claimed;
  const held: Held = { teamId: job.teamId, jobId: job.id, attempt: job.attempt };
  const traced = job.trace === null ? (deps.tracing?.arrive(undefined) ?? UNTRACED) : tracedAttempt(job);
  const log = deps.log.child({
    workflowId: workflow.id,
    jobId: job.id,
    attempt: job.attempt,
    ...(traced.trace === null ? {} : { traceId: traced.trace.traceId }),
  });
  const now = () => deps.store.now();
  const startedAt = now();
  const reporter = new Reporter({ report: (news) => deps.store.jobs.report({ held, ...news }), now, log });
  const signal = AbortSignal.any([signals.abort, signals.cancel]);
  const during = retryingStore(deps.store, signal, deps.random);
  // Used for writing the end, which is worth retrying after a cancellation too.
  const store = retryingStore(deps.store, signals.abort, deps.random);

  const clean = printable;
  const over = (end: AttemptEnd): RunOutcome => {
    reportAttempt(deps.observer, { job, workflow, traced, startedAt, now: now() }, end);
    return end.outcome;
  };
  const attempt = { ...deps, store: during, log, claimed, held, reporter, signals, signal, clean };
  try {
    const { published, ingested } = await runAttempt(attempt);
    if (published.outcome === 'guarded') throw new RunFailure('guard', published.error);
    const outcome = published.outcome === 'canceled' ? 'canceled' : 'finished';
    return over({ outcome, ingested, published });
  } catch (error) {
    if (error instanceof FencedError && (await isFinished())) {
      // It was published, and only the store's answer was lost.
      return over({ outcome: 'finished' });
    }
    if (error instanceof FencedError || signals.abort.reason === 'fenced') return interrupted('fenced');
    if (signals.cancel.aborted) return await orFenced(canceled());
    if (!signals.abort.aborted) return await orFenced(failed(asFailure(error)));
    await lastLine('info', 'Given back, because the server is stopping. The next attempt starts over');
    return interrupted('release');
  } finally {
    reporter.stop();
  }

  async function failed({ reason, message: raw }: RunFailure): Promise<RunOutcome> {
    const message = attempt.clean(raw);
    const failures = job.failures + (reason === 'error' || reason === 'source' ? 1 : 0);
    const { retries } = workflow.definition;
    const then = afterFailure({ reason, failures, retries, nowMs: now(), random: deps.random() });
    await lastLine('error', `Failed (${reason}): ${withoutTail(message)}. ${whatFollows(then)}`);
    await store.jobs.fail({ held, reason, error: message, failures, then });
    const nextAt = then.state === 'retrying' ? then.runAt : null;
    return over({ outcome: then.state, reason, error: message, nextAt });
  }

  /** Whether exactly this attempt has finished. */
  async function isFinished(): Promise<boolean> {
    const stored = await deps.store.jobs.get({ teamId: held.teamId, id: held.jobId }).catch(() => undefined);
    return stored?.state === 'finished' && stored.attempt === held.attempt;
  }

  async function canceled(): Promise<RunOutcome> {
    await lastLine('warn', 'Canceled: the run was ended, and nothing of it is published');
    await store.jobs.endCanceled({ held });
    return over({ outcome: 'canceled' });
  }

  /** If another process has already written an end, this attempt counts as interrupted. */
  function orFenced(ending: Promise<RunOutcome>): Promise<RunOutcome> {
    return ending.catch((error) => {
      if (error instanceof FencedError) return interrupted('fenced');
      interrupted('end_not_written');
      throw error;
    });
  }

  function interrupted(reason: Interruption | 'end_not_written'): RunOutcome {
    return over({ outcome: 'interrupted', reason });
  }

  /** Must be written before the end itself: nothing can be added to the log of an attempt that has ended. */
  async function lastLine(level: LogLevel, text: string): Promise<void> {
    reporter.line(level, text);
    await reporter.flush();
  }
}

/** The first line of an error, without a trailing announcement of details: those are in the log already. */
function withoutTail(message: string): string {
  const [first = ''] = message.split('\n', 1);
  return first.replace(/\. [^.]*:$/, '').replace(/\.$/, '');
}

function whatFollows(then: AfterFailure): string {
  return then.state === 'failed'
    ? 'It is not tried again'
    : `The next attempt may start at ${toIso(then.runAt)}`;
}
