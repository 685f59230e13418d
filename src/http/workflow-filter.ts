/** The filter `workflowId` of lists: the workflow must be one of the caller's team. */
import { Problem } from '../model/error.ts';
import { workflowIdFrom } from './ids.ts';
import { queryValue } from './query.ts';
import type { KeyedCall, Parameter } from './route.ts';

export const WORKFLOW_FILTER: Parameter = {
  name: 'workflowId',
  in: 'query',
  description: 'Only of this workflow',
  schema: { type: 'string' },
};

/**
 * The filter as an input of the store; empty when the query names no workflow.
 *
 * @throws Problem `workflow_not_found`
 */
export async function workflowFilter({
  services,
  caller,
  query,
}: Pick<KeyedCall, 'services' | 'caller' | 'query'>): Promise<{ workflowId?: string }> {
  const value = queryValue(query, 'workflowId');
  if (value === undefined) return {};
  const workflowId = workflowIdFrom(value);
  const workflow = await services.store.workflows.get({ teamId: caller.teamId, id: workflowId });
  if (workflow === undefined) throw new Problem('workflow_not_found');
  return { workflowId };
}
