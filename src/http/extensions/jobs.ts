/** Jobs, as callers may follow them. */
import { Problem } from '../../model/error.ts';
import { toIso } from '../../std/clock.ts';
import { isGeneratedId } from '../ids.ts';
import { type KeyedCall, type Operation, pathParameter } from '../route.ts';
import { jsonResponse } from '../schemas.ts';

/** GET /v1/jobs/{jobId} */
export const readJob: Operation<KeyedCall> = {
  id: 'readJob',
  group: 'Jobs',
  summary: 'Shows one job: where it stands, and why it failed if it did',
  parameters: [pathParameter('jobId', 'Job id')],
  answer: jsonResponse('The job', 'Job'),
  refusals: { job_not_found: 'No job found' },

  async handle({ services, caller, params: { jobId } }) {
    const job = isGeneratedId('job', jobId)
      ? await services.store.jobs.get({ teamId: caller.teamId, id: jobId })
      : undefined;
    if (job === undefined) throw new Problem('job_not_found');
    return {
      id: job.id,
      workflowId: job.workflowId,
      state: job.state,
      origin: job.origin,
      attempt: job.attempt,
      reason: job.reason,
      error: job.error,
      version: job.version,
      records: job.records,
      queuedAt: toIso(job.createdAt),
      startedAt: job.startedAt === null ? null : toIso(job.startedAt),
      finishedAt: job.finishedAt === null ? null : toIso(job.finishedAt),
    };
  },
};
