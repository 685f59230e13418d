/** How many jobs are in each state. */
import { JOB_STATES, type JobState } from '../../model/job.ts';
import { queryValue } from '../query.ts';
import type { KeyedCall, Operation } from '../route.ts';
import { jsonResponse } from '../schemas.ts';
import { refuseUnknownWorkflow } from './jobs.ts';

/** Ended jobs are looked for among so many: counting each of a million would take a second. */
const AMONG = 5_000;

const count = { type: 'integer' };

/** GET /v1/jobs/counts */
export const countJobs: Operation<KeyedCall> = {
  id: 'countJobs',
  group: 'Jobs',
  summary: 'How many jobs are in each state',
  description:
    `Jobs that have not ended are all counted, those that have among the newest ${AMONG} jobs: ` +
    '`complete` says whether there are no others.',
  parameters: [
    { name: 'workflowId', in: 'query', description: 'Only of this workflow', schema: { type: 'string' } },
  ],
  answer: jsonResponse('The counts', {
    type: 'object',
    required: [...JOB_STATES, 'complete'],
    properties: {
      ...Object.fromEntries(JOB_STATES.map((state) => [state, count])),
      complete: { type: 'boolean', description: 'Whether those that have ended are all counted' },
    },
  }),
  refusals: { field_invalid: 'A parameter has a bad value', workflow_not_found: 'No workflow found' },

  async handle({ services: { store }, caller: { teamId }, query }) {
    const workflowId = queryValue(query, 'workflowId');
    if (workflowId !== undefined) await refuseUnknownWorkflow(store, { teamId, workflowId });
    const of = workflowId === undefined ? { teamId } : { teamId, workflowId };
    const { states, complete } = await store.jobs.counts({ ...of, among: AMONG });
    const counts = Object.fromEntries(JOB_STATES.map((state) => [state, states[state] ?? 0]));
    return { ...(counts as Record<JobState, number>), complete };
  },
};
