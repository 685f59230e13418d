/** Reports the end of an attempt of a job to the observer. */
import type { Job } from '../model/job.ts';
import type { Workflow } from '../model/workflow.ts';
import type { JobAttemptDone, Observer } from '../observe/observer.ts';
import type { Traced } from '../observe/trace-context.ts';
import type { Ingested } from '../records/ingest.ts';
import type { Published } from '../store/operations/publish.ts';

export type AttemptEnd = Pick<JobAttemptDone, 'outcome'> &
  Partial<Pick<JobAttemptDone, 'reason' | 'error' | 'nextAt'>> & {
    ingested?: Ingested;
    published?: Published;
  };

/** `of.startedAt` and `of.now` are the start and the end of the attempt, in epoch milliseconds. */
export function reportAttempt(
  observer: Observer,
  of: { job: Job; workflow: Workflow; traced: Traced; startedAt: number; now: number },
  end: AttemptEnd,
): void {
  const { job, workflow, startedAt, now } = of;
  const { ingested, published } = end;
  const isPublished = published?.outcome === 'published' || published?.outcome === 'unchanged';
  observer.jobAttemptDone?.({
    teamId: job.teamId,
    workflowId: job.workflowId,
    jobId: job.id,
    attempt: job.attempt,
    origin: job.origin,
    sourceType: workflow.definition.source.type,
    outcome: end.outcome,
    reason: end.reason ?? null,
    error: end.error ?? null,
    nextAt: end.nextAt ?? null,
    startedAt,
    durationMs: Math.max(0, now - startedAt),
    waitedMs: Math.max(0, startedAt - job.runAt),
    read: ingested === undefined ? null : countsOf(ingested),
    published: isPublished ? published : null,
    ...of.traced,
  });
}

function countsOf({ records, duplicates, existing, skipped, suppressed }: Ingested): JobAttemptDone['read'] {
  return { emitted: records, duplicates, existing, skipped, suppressed };
}
