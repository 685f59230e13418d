/** Jobs: queueing, listing, counting, reading, canceling, rerunning, and running now. */

import { jobHeaders, submitJob } from '../../jobs/submit.ts';
import { found, Problem } from '../../model/error.ts';
import { JOB_ORIGINS, JOB_STATES, type Job, type JobState } from '../../model/job.ts';
import { messageResource } from '../../resources/error.ts';
import { endedSentence, jobResource, notWaitingSentence, shownJob } from '../../resources/job.ts';
import { grouped } from '../../std/amounts.ts';
import { boolean, integer, object, type Shape } from '../../std/shape.ts';
import { sendWithETag } from '../caching.ts';
import { byId, listOperation, PERIOD, WORKFLOW_FILTER, workflowFilter } from '../input/list-page.ts';
import { choiceParameter, choicesParameter } from '../input/query.ts';
import {
  IDEMPOTENCY_KEY,
  IDEMPOTENCY_KEY_WITHOUT_BODY,
  idempotencyKeyFrom,
  keyOfPath,
  workflowIdFrom,
} from '../input/values.ts';
import { jsonResponse, messageWith } from '../openapi/content.ts';
import { type KeyedCall, type Operation, pathParameter } from '../route.ts';

const JOB_ALREADY_QUEUED = {
  description: 'Job already queued for the workflow',
  headers: { 'x-job-id': 'ID of the unfinished job', location: 'URL of the unfinished job' },
};

export const queueJob: Operation<KeyedCall> = {
  id: 'queueWorkflowJob',
  frozen: true,
  group: 'Workflows',
  summary: 'Queue a job',
  description: 'Creates and queues a new job to run for the workflow. The request body is ignored.',
  parameters: [
    pathParameter('workflowId', 'Workflow ID'),
    {
      ...IDEMPOTENCY_KEY,
      // An empty key counts as none, because the contract does not know this header.
      schema: { ...IDEMPOTENCY_KEY.schema, minLength: 0 },
      description:
        'Unique key of the call. Repeating the call with the same key within 24 hours returns the job of the ' +
        'first call and queues nothing',
    },
  ],
  answer: jsonResponse('Job queued', messageResource, {
    'x-job-id': 'ID of the job',
    location: 'URL of the job',
  }),
  errors: {
    job_already_queued: {
      ...JOB_ALREADY_QUEUED,
      description: 'Bad request, for example because a job is already queued for the workflow',
    },
    workflow_not_found: 'No workflow found',
  },

  async handle(call) {
    const { services, caller, params, trace, reply } = call;
    const idempotencyKey = idempotencyKeyFrom(call);
    const workflowId = workflowIdFrom(params.workflowId);
    const { job } = await submitJob(services.store, {
      teamId: caller.teamId,
      workflowId,
      origin: caller.isLocal ? 'cli' : 'api',
      idempotencyKey,
      trace,
    });
    reply.headers(jobHeaders(job));
    return { message: 'Job queued' };
  },
};

/** Ended jobs are counted among this many of the newest jobs, because counting a million would take a second. */
const AMONG = 5_000;

const parameters = [pathParameter('jobId', 'Job ID')];
const changed = messageWith('job', jobResource);

/** GET /v1/jobs */
export const listJobs = listOperation({
  id: 'listJobs',
  group: 'Jobs',
  summary: 'List jobs',
  description: 'Returns the jobs of the team, newest first.',
  name: 'jobs',
  resource: jobResource,
  order: byId('before', 'job'),
  parameters: [WORKFLOW_FILTER],
  filters: {
    states: choicesParameter('state', JOB_STATES, 'Filter by state'),
    origin: choiceParameter('origin', JOB_ORIGINS, 'Filter by origin'),
    ...PERIOD,
  },
  errors: { workflow_not_found: 'No workflow found' },
  rows: async (call, range) =>
    call.services.store.jobs.list({ teamId: call.caller.teamId, ...(await workflowFilter(call)), ...range }),
  show: shownJob,
});

/** GET /v1/jobs/counts */
export const countJobs: Operation<KeyedCall> = {
  id: 'countJobs',
  group: 'Jobs',
  summary: 'Count jobs by state',
  description: `Counts all unfinished jobs, and the ended jobs among the newest ${grouped(AMONG)} jobs.`,
  parameters: [WORKFLOW_FILTER],
  answer: jsonResponse(
    'Number of jobs by state',
    object({
      ...(Object.fromEntries(JOB_STATES.map((state) => [state, integer()])) as Record<
        JobState,
        Shape<number>
      >),
      complete: boolean('`false` if there may be older ended jobs, which are not counted'),
    }),
  ),
  errors: { field_invalid: 'A parameter has an invalid value', workflow_not_found: 'No workflow found' },

  async handle(call) {
    const of = { teamId: call.caller.teamId, ...(await workflowFilter(call)) };
    const { states, complete } = await call.services.store.jobs.counts({ ...of, among: AMONG });
    const counts = Object.fromEntries(JOB_STATES.map((state) => [state, states[state] ?? 0]));
    return { ...(counts as Record<JobState, number>), complete };
  },
};

/** GET /v1/jobs/{jobId} */
export const readJob: Operation<KeyedCall> = {
  id: 'readJob',
  group: 'Jobs',
  etag: true,
  summary: 'Read a job',
  parameters,
  answer: jsonResponse('Job', jobResource),
  errors: { job_not_found: 'No job found' },

  async handle(call) {
    return sendWithETag(call, JSON.stringify(shownJob(await jobOf(call))));
  },
};

/** POST /v1/jobs/{jobId}/cancel */
export const cancelJob: Operation<KeyedCall> = {
  id: 'cancelJob',
  group: 'Jobs',
  summary: 'Cancel a job',
  description:
    'Cancels a waiting job immediately, and a running job as soon as its run has stopped. A canceled job publishes ' +
    'nothing.',
  parameters,
  answer: jsonResponse('Job canceled, or being canceled', changed),
  errors: { job_ended: 'Job already ended', job_not_found: 'No job found' },

  async handle(call) {
    const { services, caller } = call;
    const by = caller.isLocal
      ? 'Canceled at the command line'
      : `Canceled over the API, with the key ${caller.keyId}`;
    const canceled = await services.store.jobs.cancel({ ...keyOfPath(call, 'job'), by });
    const { outcome, job } = found(canceled, 'job_not_found');
    if (outcome === 'ended') throw new Problem('job_ended', { sentence: endedSentence(job) });
    const message =
      outcome === 'canceled' ? 'Job canceled' : 'Cancellation requested: the run is being stopped';
    return { message, job: shownJob(job) };
  },
};

/** POST /v1/jobs/{jobId}/rerun */
export const rerunJob: Operation<KeyedCall> = {
  id: 'rerunJob',
  group: 'Jobs',
  summary: 'Rerun a job',
  description: 'Queues a new job of the same workflow, under the same rules as `queue`.',
  parameters: [...parameters, IDEMPOTENCY_KEY_WITHOUT_BODY],
  answer: jsonResponse('New job queued', changed, {
    'x-job-id': 'ID of the new job',
    location: 'URL of the new job',
  }),
  errors: {
    field_invalid: 'The header `idempotency-key` is empty or too long',
    receives_push: 'The workflow receives its records by push',
    job_already_queued: JOB_ALREADY_QUEUED,
    workflow_paused: 'The workflow is paused',
    job_not_found: 'No job found, or its workflow was deleted',
  },

  async handle(call) {
    const key = idempotencyKeyFrom(call);
    const { id, teamId, workflowId } = await jobOf(call);
    const { job } = await submitJob(call.services.store, {
      teamId,
      workflowId,
      origin: call.caller.isLocal ? 'cli' : 'api',
      // The key is stored with the job ID, so clients may use the same key to queue a job or to rerun another one.
      idempotencyKey: key === null ? null : `${id} ${key}`,
      trace: call.trace,
    });
    call.reply.headers(jobHeaders(job));
    return { message: 'Job queued', job: shownJob(job) };
  },
};

/** POST /v1/jobs/{jobId}/run-now */
export const runJobNow: Operation<KeyedCall> = {
  id: 'runJobNow',
  group: 'Jobs',
  summary: 'Run a waiting job now',
  description: 'Makes a queued or retrying job due immediately.',
  parameters,
  answer: jsonResponse('Job due now', changed),
  errors: { job_not_waiting: 'Job is not waiting', job_not_found: 'No job found' },

  async handle(call) {
    const brought = await call.services.store.jobs.runNow(keyOfPath(call, 'job'));
    const { outcome, job } = found(brought, 'job_not_found');
    if (outcome === 'not_waiting')
      throw new Problem('job_not_waiting', { sentence: notWaitingSentence(job) });
    return { message: 'The job is due now', job: shownJob(job) };
  },
};

/**
 * The job whose ID is in the path, if the caller's team owns it.
 *
 * @throws Problem `job_not_found`
 */
export async function jobOf(call: KeyedCall): Promise<Job> {
  return found(await call.services.store.jobs.get(keyOfPath(call, 'job')), 'job_not_found');
}
