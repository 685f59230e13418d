/** Workflows: what there is, how each stands, and keeping one from running. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Problem } from '../../model/error.ts';
import { nextRunAt } from '../../model/schedule.ts';
import { isWorkflowId, type Workflow } from '../../model/workflow.ts';
import { idCursorFrom, makeIdCursor, nextLink } from '../cursor.ts';
import { workflowIdFrom } from '../ids.ts';
import { PAGE_PARAMETERS, pageLimit, pageResponse } from '../list-page.ts';
import { type KeyedCall, type Operation, pathParameter } from '../route.ts';
import { jsonResponse } from '../schemas.ts';
import { sendTagged } from '../tag.ts';
import { shownWorkflow } from './shown-workflow.ts';

const parameters = [pathParameter('workflowId', 'Workflow ID')];
const changed = {
  type: 'object',
  required: ['message', 'workflow'],
  properties: { message: { type: 'string' }, workflow: { $ref: '#/components/schemas/Workflow' } },
};

/** GET /v1/workflows */
export const listWorkflows: Operation<KeyedCall> = {
  id: 'listWorkflows',
  group: 'Workflows',
  summary: 'The workflows of a team, by id',
  parameters: [...PAGE_PARAMETERS],
  answer: pageResponse('workflows', 'Workflow'),
  refusals: { field_invalid: 'A parameter has a bad value' },

  async handle({ services, caller, query, reply }) {
    const limit = pageLimit(query);
    const after = idCursorFrom(query, isWorkflowId);
    const all = await services.store.workflows.list({ teamId: caller.teamId });
    // In the order of the list, which is not that of JavaScript: the workflow itself may be gone by now.
    const rest =
      after === undefined ? all : all.filter(({ id }) => Buffer.compare(bytes(id), bytes(after)) > 0);
    const page = rest.slice(0, limit);
    const last = page.at(-1);
    if (rest.length > limit && last !== undefined) {
      reply.header('link', nextLink('/v1/workflows', query, makeIdCursor(last.id)));
    }
    const workflows = [];
    for (const workflow of page) {
      workflows.push(await shownWorkflow(services.store, workflow));
      // Each takes some reads, which answer without a turn of the event loop.
      await nextTurn();
    }
    return { workflows };
  },
};

/** GET /v1/workflows/{workflowId} */
export const readWorkflow: Operation<KeyedCall> = {
  id: 'readWorkflow',
  group: 'Workflows',
  tagged: true,
  summary: 'Shows one workflow: where its records come from, when it runs, and how its jobs stand',
  parameters,
  answer: jsonResponse('The workflow', 'Workflow'),
  refusals: { workflow_not_found: 'No workflow found' },

  async handle(call) {
    const workflow = await workflowOf(call);
    const text = JSON.stringify(await shownWorkflow(call.services.store, workflow));
    return sendTagged(call, text, workflow.definitionHash);
  },
};

/** POST /v1/workflows/{workflowId}/pause */
export const pauseWorkflow: Operation<KeyedCall> = {
  id: 'pauseWorkflow',
  group: 'Workflows',
  summary: 'Pauses a workflow: it takes no jobs and starts none; what runs goes on',
  description: 'Its records and webhooks are not affected. Asking twice is harmless.',
  parameters,
  answer: jsonResponse('The workflow is paused', changed),
  refusals: { workflow_not_found: 'No workflow found' },

  async handle({ services, caller, params }) {
    const id = workflowIdFrom(params.workflowId);
    const workflow = await services.store.workflows.pause({ teamId: caller.teamId, id });
    if (workflow === undefined) throw new Problem('workflow_not_found');
    return { message: 'Workflow paused', workflow: await shownWorkflow(services.store, workflow) };
  },
};

/** POST /v1/workflows/{workflowId}/resume */
export const resumeWorkflow: Operation<KeyedCall> = {
  id: 'resumeWorkflow',
  group: 'Workflows',
  summary: 'Ends the pause of a workflow. Runs that fell into it are not made up for',
  parameters,
  answer: jsonResponse('The workflow runs again', changed),
  refusals: { workflow_not_found: 'No workflow found' },

  async handle(call) {
    const { store } = call.services;
    const { teamId, id, definition } = await workflowOf(call);
    const next = definition.schedule === null ? null : nextRunAt(definition.schedule, store.now());
    const workflow = await store.workflows.resume({ teamId, id, nextRunAt: next });
    if (workflow === undefined) throw new Problem('workflow_not_found');
    return { message: 'Workflow resumed', workflow: await shownWorkflow(store, workflow) };
  },
};

async function workflowOf({ services, caller, params }: KeyedCall): Promise<Workflow> {
  const id = workflowIdFrom(params.workflowId);
  const workflow = await services.store.workflows.get({ teamId: caller.teamId, id });
  if (workflow === undefined) throw new Problem('workflow_not_found');
  return workflow;
}

function bytes(text: string): Buffer {
  return Buffer.from(text);
}
