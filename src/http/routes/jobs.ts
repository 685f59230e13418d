/** Jobs: queueing, listing, counting, reading, canceling, queueing again and bringing forward. */

import { jobHeaders, submitJob } from '../../jobs/submit.ts';
import { found, Problem } from '../../model/error.ts';
import { JOB_ORIGINS, JOB_STATES, type Job, type JobState } from '../../model/job.ts';
import { messageResource } from '../../resources/error.ts';
import { endedSentence, jobResource, notWaitingSentence, shownJob } from '../../resources/job.ts';
import { boolean, integer, object, type Shape } from '../../std/shape.ts';
import { sendWithETag } from '../caching.ts';
import { byId, listOperation, PERIOD, WORKFLOW_FILTER, workflowFilter } from '../input/list-page.ts';
import { choiceParameter, choicesParameter } from '../input/query.ts';
import { IDEMPOTENCY_KEY, idempotencyKeyFrom, keyOfPath, workflowIdFrom } from '../input/values.ts';
import { jsonResponse, messageWith } from '../openapi/content.ts';
import { type KeyedCall, type Operation, pathParameter } from '../route.ts';

const JOB_IN_THE_WAY = {
  description: 'Bad request, for example because a job is already queued for the workflow',
  headers: { 'x-job-id': 'The job in the way', location: 'Where the job in the way can be read' },
};

export const queueJob: Operation<KeyedCall> = {
  id: 'queueWorkflowJob',
  frozen: true,
  group: 'Workflows',
  summary: 'Creates and queues a new job to run for the workflow',
  parameters: [
    pathParameter('workflowId', 'Workflow ID'),
    {
      ...IDEMPOTENCY_KEY,
      // An empty one counts as none: the contract knows no such header.
      schema: { ...IDEMPOTENCY_KEY.schema, minLength: 0 },
      description:
        'A call with the same key within 24 hours answers with the job of the first, and queues none',
    },
  ],
  answer: jsonResponse('The job is queued', messageResource, {
    'x-job-id': 'The job',
    location: 'Where the job can be read',
  }),
  errors: {
    job_already_queued: JOB_IN_THE_WAY,
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

/** Ended jobs are counted among this many: counting a million would take a second. */
const AMONG = 5_000;

const parameters = [pathParameter('jobId', 'Job id')];
const changed = messageWith('job', jobResource);

/** GET /v1/jobs */
export const listJobs = listOperation({
  id: 'listJobs',
  group: 'Jobs',
  summary: 'The jobs of a team, newest first',
  name: 'jobs',
  resource: jobResource,
  order: byId('before', 'job'),
  parameters: [WORKFLOW_FILTER],
  filters: {
    states: choicesParameter('state', JOB_STATES, 'Only in these states'),
    origin: choiceParameter('origin', JOB_ORIGINS, 'Only of this origin'),
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
  summary: 'How many jobs are in each state',
  description:
    `Jobs that have not ended are all counted, those that have among the newest ${AMONG} jobs: ` +
    '`complete` says whether there are no others.',
  parameters: [WORKFLOW_FILTER],
  answer: jsonResponse(
    'The counts',
    object({
      ...(Object.fromEntries(JOB_STATES.map((state) => [state, integer()])) as Record<
        JobState,
        Shape<number>
      >),
      complete: boolean('Whether those that have ended are all counted'),
    }),
  ),
  errors: { field_invalid: 'A parameter has a bad value', workflow_not_found: 'No workflow found' },

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
  summary: 'Shows one job: where it stands, and why it failed if it did',
  parameters,
  answer: jsonResponse('The job', jobResource),
  errors: { job_not_found: 'No job found' },

  async handle(call) {
    return sendWithETag(call, JSON.stringify(shownJob(await jobOf(call))));
  },
};

/** POST /v1/jobs/{jobId}/cancel */
export const cancelJob: Operation<KeyedCall> = {
  id: 'cancelJob',
  group: 'Jobs',
  summary: 'Cancels a job: one that waits at once, one that runs as soon as its run has been ended',
  description: 'Nothing of a canceled job is published. Asking twice is harmless.',
  parameters,
  answer: jsonResponse('The job is canceled, or will be shortly', changed),
  errors: { job_ended: 'The job has already ended', job_not_found: 'No job found' },

  async handle(call) {
    const { services, caller } = call;
    const by = caller.isLocal
      ? 'Canceled at the command line'
      : `Canceled over the API, with the key ${caller.keyId}`;
    const canceled = await services.store.jobs.cancel({ ...keyOfPath(call, 'job'), by });
    const { outcome, job } = found(canceled, 'job_not_found');
    if (outcome === 'ended') throw new Problem('job_ended', { sentence: endedSentence(job) });
    const message =
      outcome === 'canceled' ? 'Job canceled' : 'The job is being canceled: its run is being ended';
    return { message, job: shownJob(job) };
  },
};

/** POST /v1/jobs/{jobId}/rerun */
export const rerunJob: Operation<KeyedCall> = {
  id: 'rerunJob',
  group: 'Jobs',
  summary: 'Queues a new job of the same workflow, under the rules of queueing',
  parameters: [...parameters, IDEMPOTENCY_KEY],
  answer: jsonResponse('The new job is queued', changed, {
    'x-job-id': 'The new job',
    location: 'Where the new job can be read',
  }),
  errors: {
    job_already_queued: JOB_IN_THE_WAY,
    job_not_found: 'No job found, or its workflow is gone',
  },

  async handle(call) {
    const key = idempotencyKeyFrom(call);
    const { id, teamId, workflowId } = await jobOf(call);
    const { job } = await submitJob(call.services.store, {
      teamId,
      workflowId,
      origin: call.caller.isLocal ? 'cli' : 'api',
      // A key belongs to one path: clients may use the same one for queueing, or for another job.
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
  summary: 'Brings a job forward that waits for its next attempt',
  parameters,
  answer: jsonResponse('The job is due now', changed),
  errors: { job_not_waiting: 'The job does not wait', job_not_found: 'No job found' },

  async handle(call) {
    const brought = await call.services.store.jobs.runNow(keyOfPath(call, 'job'));
    const { outcome, job } = found(brought, 'job_not_found');
    if (outcome === 'not_waiting')
      throw new Problem('job_not_waiting', { sentence: notWaitingSentence(job) });
    return { message: 'The job is due now', job: shownJob(job) };
  },
};

/**
 * The job that the path names, if it is the caller's team's.
 *
 * @throws Problem `job_not_found`
 */
export async function jobOf(call: KeyedCall): Promise<Job> {
  return found(await call.services.store.jobs.get(keyOfPath(call, 'job')), 'job_not_found');
}
