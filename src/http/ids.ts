/** Checks the form of ids that clients send: what cannot be an id is not found, without a look-up. */
import { Problem } from '../model/error.ts';
import { isWorkflowId } from '../model/workflow.ts';

/**
 * @param text undefined when the percent-encoding of the path is broken
 * @param sentence what to say instead of the general sentence
 * @throws Problem `workflow_not_found`
 */
export function workflowIdFrom(text: string | undefined, sentence?: string): string {
  if (text === undefined || !isWorkflowId(text) || !text.isWellFormed()) {
    throw new Problem('workflow_not_found', sentence === undefined ? {} : { sentence });
  }
  return text;
}

/** Whether a generated id (`wh_…`, `job_…`, `team_…`) could have this form. */
export function isGeneratedId(prefix: string, text: string | undefined): text is string {
  return text !== undefined && text.length <= 64 && new RegExp(`^${prefix}_[0-9a-z]+$`).test(text);
}
