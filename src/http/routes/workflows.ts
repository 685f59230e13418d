/** Workflows: list, read, pause and resume. */

import { setImmediate as nextTurn } from 'node:timers/promises';
import { found } from '../../model/error.ts';
import { nextRunAt } from '../../model/schedule.ts';
import { isWorkflowId, type Workflow } from '../../model/workflow.ts';
import { shownWorkflow, workflowResource } from '../../resources/workflow.ts';
import type { JobGlance, WorkflowSummary } from '../../store/operations/job-lists.ts';
import { sendWithETag } from '../caching.ts';
import { byId, everyRowInTurn, listOperation } from '../input/list-page.ts';
import { numberParameter, textParameter } from '../input/query.ts';
import { workflowIdFrom } from '../input/values.ts';
import { jsonResponse, messageWith } from '../openapi/content.ts';
import { type KeyedCall, type Operation, pathParameter } from '../route.ts';

/** Enough for the bar chart of the dashboard. */
const MAX_RECENT_JOBS = 20;
const MAX_SEARCH = 200;
const WORKFLOWS_AT_ONCE = 100;

const parameters = [pathParameter('workflowId', 'Workflow ID')];
const changed = messageWith('workflow', workflowResource);

/** GET /v1/workflows */
export const listWorkflows = listOperation({
  id: 'listWorkflows',
  group: 'Workflows',
  summary: 'List workflows',
  description: 'Returns the workflows of the team in the order of their IDs.',
  name: 'workflows',
  resource: workflowResource,
  order: byId('after', isWorkflowId),
  filters: {
    q: textParameter(
      'q',
      'Only workflows whose ID or name contains this text (case-insensitive)',
      MAX_SEARCH,
    ),
    each: numberParameter('recentJobs', 'Number of recent jobs to include with each workflow (default: 0)', {
      most: MAX_RECENT_JOBS,
    }),
  },
  async rows({ services: { store }, caller }, { q, each, limit, after }) {
    const searched = q?.toLowerCase();
    const found: Workflow[] = [];
    // A search may have to read all workflows.
    const from = { teamId: caller.teamId, after, ...(searched === undefined ? { limit } : {}) };
    for await (const workflow of everyRowInTurn(store.workflows.list, from)) {
      if (searched === undefined || contains(workflow, searched)) found.push(workflow);
      if (found.length === limit) break;
    }
    const summaries = await inParts(found, (part) => store.jobs.summaries(part));
    const recent =
      each === undefined ? undefined : await inParts(found, (part) => store.jobs.recent({ ...part, each }));
    return found.map((workflow) => ({
      ...workflow,
      summary: summaries.get(workflow.id),
      recent: recent && (recent.get(workflow.id) ?? []),
    }));
  },
  show: ({ summary, recent, ...workflow }: Listed, { services }) =>
    shownWorkflow(services.store, workflow, { summary, recent }),
});

type Listed = Workflow & { summary?: WorkflowSummary | undefined; recent?: JobGlance[] | undefined };

/** GET /v1/workflows/{workflowId} */
export const readWorkflow: Operation<KeyedCall> = {
  id: 'readWorkflow',
  group: 'Workflows',
  etag: true,
  summary: 'Read a workflow',
  description: 'Returns the source, the schedule, the newest version and the latest jobs of a workflow.',
  parameters,
  answer: jsonResponse('Workflow', workflowResource),
  errors: { workflow_not_found: 'No workflow found' },

  async handle(call) {
    const workflow = await workflowOf(call);
    const text = JSON.stringify(await shownWorkflow(call.services.store, workflow));
    return sendWithETag(call, text, workflow.definitionHash);
  },
};

/** POST /v1/workflows/{workflowId}/pause */
export const pauseWorkflow: Operation<KeyedCall> = {
  id: 'pauseWorkflow',
  group: 'Workflows',
  summary: 'Pause a workflow',
  description:
    'Stops the workflow from accepting and starting jobs. A running job continues. Records and webhooks are not ' +
    'affected. Repeating the call is harmless.',
  parameters,
  answer: jsonResponse('Workflow paused', changed),
  errors: { workflow_not_found: 'No workflow found' },

  async handle({ services, caller, params }) {
    const id = workflowIdFrom(params.workflowId);
    const paused = await services.store.workflows.pause({ teamId: caller.teamId, id });
    const workflow = found(paused, 'workflow_not_found');
    return { message: 'Workflow paused', workflow: await shownWorkflow(services.store, workflow) };
  },
};

/** POST /v1/workflows/{workflowId}/resume */
export const resumeWorkflow: Operation<KeyedCall> = {
  id: 'resumeWorkflow',
  group: 'Workflows',
  summary: 'Resume a workflow',
  description: 'Ends the pause of a workflow. Scheduled runs that were due during the pause are skipped.',
  parameters,
  answer: jsonResponse('Workflow active', changed),
  errors: { workflow_not_found: 'No workflow found' },

  async handle(call) {
    const { store } = call.services;
    const { teamId, id, definition } = await workflowOf(call);
    const next = definition.schedule === null ? null : nextRunAt(definition.schedule, store.now());
    const resumed = await store.workflows.resume({ teamId, id, nextRunAt: next });
    const workflow = found(resumed, 'workflow_not_found');
    return { message: 'Workflow resumed', workflow: await shownWorkflow(store, workflow) };
  },
};

/** Reads something of a few workflows at a time, because a read blocks the event loop on SQLite. */
async function inParts<Of>(
  workflows: readonly Workflow[],
  read: (part: { teamId: string; workflowIds: string[] }) => Promise<Map<string, Of>>,
): Promise<Map<string, Of>> {
  const all = new Map<string, Of>();
  for (let from = 0; from < workflows.length; from += WORKFLOWS_AT_ONCE) {
    const some = workflows.slice(from, from + WORKFLOWS_AT_ONCE);
    const { teamId } = some[0] as Workflow;
    for (const [id, one] of await read({ teamId, workflowIds: some.map(({ id }) => id) })) all.set(id, one);
    await nextTurn();
  }
  return all;
}

function contains({ id, definition }: Workflow, searched: string): boolean {
  return id.toLowerCase().includes(searched) || definition.name.toLowerCase().includes(searched);
}

async function workflowOf({ services, caller, params }: KeyedCall): Promise<Workflow> {
  const id = workflowIdFrom(params.workflowId);
  return found(await services.store.workflows.get({ teamId: caller.teamId, id }), 'workflow_not_found');
}
