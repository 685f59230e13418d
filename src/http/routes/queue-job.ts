/** POST /v1/workflows/{workflowId}/queue: creates and queues a new job. The body is never read. */

import { jobHeaders, submitJob } from '../../jobs/submit.ts';
import { messageResource } from '../../resources/error.ts';
import { IDEMPOTENCY_KEY, idempotencyKeyFrom } from '../idempotency-key.ts';
import { workflowIdFrom } from '../ids.ts';
import { jsonResponse } from '../openapi/content.ts';
import { type KeyedCall, type Operation, pathParameter } from '../route.ts';

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
  refusals: {
    job_already_queued: {
      description: 'Bad request, for example because a job is already queued for the workflow',
      headers: { 'x-job-id': 'The job in the way', location: 'Where the job in the way can be read' },
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
      origin: 'api',
      idempotencyKey,
      trace,
    });
    reply.headers(jobHeaders(job));
    return { message: 'Job queued' };
  },
};
