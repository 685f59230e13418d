/** Queues a job for `POST …/queue` and for the command line. (`schedule.ts` queues the jobs of schedules.) */
import { Problem } from '../model/error.ts';
import type { Job } from '../model/job.ts';
import type { Store } from '../store/store.ts';

/**
 * @returns the job, and whether an earlier call with the same idempotency key had queued it
 * @throws Problem `workflow_not_found`, `receives_push`, `workflow_paused`, or `job_already_queued`, whose headers
 *   name the unfinished job
 */
export async function submitJob(
  store: Store,
  input: Parameters<Store['jobs']['enqueue']>[0],
): Promise<{ job: Job; replayed: boolean }> {
  const result = await store.jobs.enqueue(input);
  switch (result.outcome) {
    case 'queued':
      return { job: result.job, replayed: false };
    case 'replayed':
      return { job: result.job, replayed: true };
    case 'occupied':
      throw new Problem('job_already_queued', { headers: jobHeaders(result.job) });
    case 'receives_push':
      throw new Problem('receives_push');
    case 'paused':
      throw new Problem('workflow_paused');
    case 'not_found':
      throw new Problem('workflow_not_found');
  }
}

/** Response headers that name a job. */
export function jobHeaders({ id }: Pick<Job, 'id'>): Record<string, string> {
  return { 'x-job-id': id, location: `/v1/jobs/${id}` };
}
