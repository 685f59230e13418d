/** Queues jobs and waits until they end, within the time limit of a node. */
import type { IDataObject, IExecuteFunctions } from 'n8n-workflow';
import { NodeOperationError, sleep } from 'n8n-workflow';
import { ask } from './ask.ts';

const FIRST_LOOK_MS = 250;
const MOST_BETWEEN_LOOKS_MS = 5_000;
const ENDED = ['finished', 'failed', 'canceled'];

export interface Job extends IDataObject {
  id: string;
  workflowId: string;
  state: string;
  reason: string | null;
  error: string | null;
}

export interface Patience {
  itemIndex: number;
  /** Epoch milliseconds. */
  untilMs: number;
}

/** What to do while another job of the workflow has not ended. */
export type WhenBusy = 'fail' | 'skip' | 'wait';

/**
 * @returns the job, and whether it was queued now; with `skip` it may be the unfinished job
 * @throws NodeApiError with the service's error message; NodeOperationError if the unfinished job did not end in time
 */
export async function queueJob(
  caller: IExecuteFunctions,
  wanted: { workflowId: string; whenBusy: WhenBusy; idempotencyKey: string } & Patience,
): Promise<{ job: Job; queued: boolean }> {
  const { workflowId, whenBusy, idempotencyKey, itemIndex, untilMs } = wanted;
  for (;;) {
    const { status, headers } = await ask(caller, {
      method: 'POST',
      path: `/v1/workflows/${encodeURIComponent(workflowId)}/queue`,
      headers: idempotencyKey === '' ? {} : { 'idempotency-key': idempotencyKey },
      itemIndex,
      // 400 may also mean an invalid request: only `job_already_queued` names the unfinished job.
      accept: whenBusy === 'fail' ? [] : [400],
    });
    const jobId = headers['x-job-id'] ?? '';
    if (status < 300) return { job: await readJob(caller, jobId, itemIndex), queued: true };
    if (headers['x-error-code'] !== 'job_already_queued') {
      // Repeats the request, so that the refusal becomes an error like all others.
      await ask(caller, {
        method: 'POST',
        path: `/v1/workflows/${encodeURIComponent(workflowId)}/queue`,
        itemIndex,
      });
      continue;
    }
    if (whenBusy === 'skip') return { job: await readJob(caller, jobId, itemIndex), queued: false };
    await waitForEnd(caller, jobId, { itemIndex, untilMs });
  }
}

/** @throws NodeOperationError if the job has not ended in time; the job continues */
export async function waitForEnd(
  caller: IExecuteFunctions,
  jobId: string,
  { itemIndex, untilMs }: Patience,
): Promise<Job> {
  for (let betweenMs = FIRST_LOOK_MS; ; betweenMs = Math.min(betweenMs * 1.5, MOST_BETWEEN_LOOKS_MS)) {
    const job = await readJob(caller, jobId, itemIndex);
    if (ENDED.includes(job.state)) return job;
    const leftMs = untilMs - Date.now();
    if (leftMs <= 0) {
      throw new NodeOperationError(
        caller.getNode(),
        `The job ${jobId} has not ended in time: it is ${job.state}`,
        {
          description: 'It continues. Raise "Wait at Most", or wait for it later with Job: Wait',
          itemIndex,
        },
      );
    }
    if (caller.getExecutionCancelSignal()?.aborted) {
      throw new NodeOperationError(
        caller.getNode(),
        `Waiting for the job ${jobId} was canceled; the job continues`,
        {
          itemIndex,
        },
      );
    }
    await sleep(Math.min(betweenMs, leftMs));
  }
}

export async function readJob(caller: IExecuteFunctions, jobId: string, itemIndex: number): Promise<Job> {
  const { body } = await ask<Job>(caller, { path: `/v1/jobs/${encodeURIComponent(jobId)}`, itemIndex });
  return body;
}

/** @throws NodeOperationError that says why the job did not finish */
export function refuseUnfinished(caller: IExecuteFunctions, job: Job, itemIndex: number): void {
  if (job.state === 'finished') return;
  const why = job.error ?? job.reason;
  throw new NodeOperationError(
    caller.getNode(),
    `The job ${job.id} ${job.state === 'failed' ? 'failed' : 'was canceled'}${why === null ? '' : `: ${why}`}`,
    { itemIndex },
  );
}
