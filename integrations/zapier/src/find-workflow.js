/** The search "Find Workflow": by its id, or by a part of its id or name. */
import { ask } from './ask.js';
import { outputFields } from './output-fields.js';

/** @import { Bundle, ZObject } from 'zapier-platform-core' */

const sample = {
  id: 'people',
  name: 'People',
  source: { type: 'http' },
  mode: 'replace',
  nextRunAt: '2026-11-23T05:00:00.000Z',
  paused: false,
  version: 17,
  records: 120,
  currentJob: null,
  lastJob: {
    id: 'job_01kadz8v3s7v0s8e1c3q5m2n4p',
    state: 'finished',
    finishedAt: '2026-11-21T02:00:03.120Z',
  },
};

export const findWorkflow = {
  key: 'find_workflow',
  noun: 'Workflow',
  display: {
    label: 'Find Workflow',
    description:
      'Finds a workflow by its ID, or by a part of its ID or name. Returns its state and its last job.',
  },
  operation: {
    inputFields: [
      {
        key: 'text',
        label: 'ID or Name',
        type: 'string',
        required: true,
        helpText: 'The whole ID, or a part of the ID or the name, in any letter case.',
      },
    ],
    perform,
    sample,
    outputFields: outputFields(sample),
  },
};

/**
 * @param {ZObject} z
 * @param {Bundle} bundle
 * @returns {Promise<Record<string, any>[]>} an exact match of the id comes first
 */
async function perform(z, bundle) {
  const text = String(bundle.inputData.text).trim();
  const { data } = await ask(z, bundle, {
    path: `/v1/workflows?${new URLSearchParams({ q: text.slice(0, 200), limit: '100' })}`,
  });
  return data.workflows.toSorted((a, b) => Number(b.id === text) - Number(a.id === text));
}
