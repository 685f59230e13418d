/** The state of a workflow's source: read, set and reset, for example to read old data again from a cursor. */

import { stateMistake } from '../../definitions/source-state.ts';
import { found, Problem } from '../../model/error.ts';
import { MAX_STATE_BYTES } from '../../model/workflow.ts';
import { messageResource } from '../../resources/error.ts';
import { parseAsWritten } from '../../std/exact-json.ts';
import { object, raw } from '../../std/shape.ts';
import { checkIfMatch, IF_MATCH, sendWithETag } from '../caching.ts';
import { bodyFields } from '../input/body.ts';
import { invalid, workflowIdFrom } from '../input/values.ts';
import { jsonBody, jsonResponse } from '../openapi/content.ts';
import { type KeyedCall, type Operation, pathParameter } from '../route.ts';

const parameters = [pathParameter('workflowId', 'Workflow ID')];
/** The state may be written with more white space than the service stores. */
const MAX_BODY_BYTES = 2 * MAX_STATE_BYTES;
const NONE = 'null';

const stateSchema = {
  description:
    'State of the source, which its next run starts from: any JSON value of a command, the last STATE message of a ' +
    'Singer tap, the keys of `ctx.state` of a module; of an `http` source, `values` by their names in `source.state`, ' +
    'and the cache validators of responses. `null` before the first published run, and after a reset',
};
const errors = {
  workflow_not_found: 'No workflow found',
  state_busy: {
    description: 'A run is in progress, and its end would overwrite the state',
    headers: { 'x-job-id': 'ID of the job that is running' },
  },
  precondition_failed: 'State changed: `If-Match` does not have the current `ETag`',
};

/** GET /v1/workflows/{workflowId}/state */
export const readWorkflowState: Operation<KeyedCall> = {
  id: 'readWorkflowState',
  group: 'Workflows',
  etag: true,
  summary: 'Read the state of a source',
  description:
    "Returns what the last published run of the workflow's source has stored for the next run, such as a cursor.",
  parameters,
  answer: jsonResponse('State', object({ state: raw<unknown>(stateSchema) })),
  errors: { workflow_not_found: errors.workflow_not_found },

  async handle(call) {
    const text = await stateOf(call);
    return sendWithETag(call, `{"state":${text}}`, text);
  },
};

/** PUT /v1/workflows/{workflowId}/state */
export const putWorkflowState: Operation<KeyedCall> = {
  id: 'putWorkflowState',
  group: 'Workflows',
  summary: 'Set the state of a source',
  description:
    'Replaces the state that the next run starts from. To read older data again, set an earlier cursor and queue a ' +
    'job. A workflow with `mode: upsert` keeps its other records. The state has at most 1 MiB.',
  parameters: [...parameters, IF_MATCH],
  requestBody: jsonBody({ type: 'object', required: ['state'], properties: { state: stateSchema } }),
  answer: jsonResponse('State set', messageResource),
  errors: { field_invalid: 'The state is not valid for the source of the workflow', ...errors },

  async handle(call) {
    const { store } = call.services;
    const fields = await bodyFields(call, 'a JSON object with the field `state`', MAX_BODY_BYTES, parseState);
    if (!Object.hasOwn(fields, 'state')) invalid('The field `state` is missing');
    const id = workflowIdFrom(call.params.workflowId);
    const workflow = found(
      await store.workflows.get({ teamId: call.caller.teamId, id }),
      'workflow_not_found',
    );
    const mistake = stateMistake(workflow.definition, fields.state);
    if (mistake !== undefined) invalid(mistake);
    await change(call, JSON.stringify(fields.state));
    return { message: 'State set' };
  },
};

/** DELETE /v1/workflows/{workflowId}/state */
export const deleteWorkflowState: Operation<KeyedCall> = {
  id: 'deleteWorkflowState',
  group: 'Workflows',
  summary: 'Reset the state of a source',
  description:
    'Removes the state, so that the next run starts like the first. The records are kept. Repeating the call is harmless.',
  parameters: [...parameters, IF_MATCH],
  answer: jsonResponse('State reset', messageResource),
  errors,

  async handle(call) {
    await change(call, NONE);
    return { message: 'State reset' };
  },
};

/** Numbers stay as they are written. */
function parseState(text: string): unknown {
  try {
    return parseAsWritten(text);
  } catch {
    // The text is not JSON, or nested so deeply that `stateMistake` will refuse it.
    return JSON.parse(text);
  }
}

/** The state as JSON. @throws Problem `workflow_not_found` */
async function stateOf({ services, caller, params }: KeyedCall): Promise<string> {
  const at = { teamId: caller.teamId, id: workflowIdFrom(params.workflowId) };
  return found(await services.store.workflows.state(at), 'workflow_not_found').state ?? NONE;
}

async function change(call: KeyedCall, text: string): Promise<void> {
  const before = await stateOf(call);
  const stored = (json: string) => (json === NONE ? null : json);
  const isBound = checkIfMatch(call, before);
  const result = await call.services.store.workflows.setState({
    teamId: call.caller.teamId,
    id: workflowIdFrom(call.params.workflowId),
    state: stored(text),
    ...(isBound ? { expected: stored(before) } : {}),
  });
  if (result.outcome === 'not_found') throw new Problem('workflow_not_found');
  if (result.outcome === 'stale') throw new Problem('precondition_failed');
  if (result.outcome === 'running')
    throw new Problem('state_busy', { headers: { 'x-job-id': result.jobId } });
}
