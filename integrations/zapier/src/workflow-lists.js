/** The drop-downs of workflows, and their lists. */
import { ask, nextCursor } from './ask.js';

/** @import { Bundle, ZObject } from 'zapier-platform-core' */

const PAGE_SIZE = 100;

export const workflowList = list('workflows', () => true);
export const pushWorkflowList = list('push_workflows', (workflow) => workflow.source.type === 'push');

/**
 * A field for a workflow.
 *
 * @param {{ required: boolean, helpText?: string, of?: { key: string } }} options
 */
export function workflowField({ required, helpText, of = workflowList }) {
  return {
    key: 'workflowId',
    label: 'Workflow',
    type: 'string',
    required,
    dynamic: `${of.key}.id.name`,
    search: 'find_workflow.id',
    ...(helpText === undefined ? {} : { helpText }),
  };
}

/**
 * @param {string} key
 * @param {(workflow: Record<string, any>) => boolean} isListed
 */
function list(key, isListed) {
  return {
    key,
    noun: 'Workflow',
    display: { label: 'Workflow List', description: 'Fills the drop-downs of workflows.', hidden: true },
    operation: {
      canPaginate: true,
      perform: async (/** @type {ZObject} */ z, /** @type {Bundle} */ bundle) => {
        const cursor = bundle.meta.page > 0 ? await z.cursor.get() : undefined;
        // The previous page was the last one.
        if (cursor === null || cursor === '') return [];
        const query = new URLSearchParams({ limit: String(PAGE_SIZE), ...(cursor && { cursor }) });
        const response = await ask(z, bundle, { path: `/v1/workflows?${query}` });
        if (bundle.meta.isFillingDynamicDropdown) await z.cursor.set(nextCursor(response) ?? '');
        return response.data.workflows.filter(isListed);
      },
      sample: { id: 'people', name: 'People' },
    },
  };
}
