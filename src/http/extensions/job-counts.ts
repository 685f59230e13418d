/** Counts of jobs by state. */
import { JOB_STATES, type JobState } from '../../model/job.ts';
import { jsonResponse } from '../openapi/content.ts';
import type { KeyedCall, Operation } from '../route.ts';
import { WORKFLOW_FILTER, workflowFilter } from '../workflow-filter.ts';

/** Ended jobs are counted among this many: counting a million would take a second. */
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
  parameters: [WORKFLOW_FILTER],
  answer: jsonResponse('The counts', {
    type: 'object',
    required: [...JOB_STATES, 'complete'],
    properties: {
      ...Object.fromEntries(JOB_STATES.map((state) => [state, count])),
      complete: { type: 'boolean', description: 'Whether those that have ended are all counted' },
    },
  }),
  refusals: { field_invalid: 'A parameter has a bad value', workflow_not_found: 'No workflow found' },

  async handle(call) {
    const of = { teamId: call.caller.teamId, ...(await workflowFilter(call)) };
    const { states, complete } = await call.services.store.jobs.counts({ ...of, among: AMONG });
    const counts = Object.fromEntries(JOB_STATES.map((state) => [state, states[state] ?? 0]));
    return { ...(counts as Record<JobState, number>), complete };
  },
};
