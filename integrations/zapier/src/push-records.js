/** The action "Push Records": publishes records to a push workflow. */
import { ask } from './ask.js';
import { onceField, onceHeader } from './jobs.js';
import { outputFields } from './output-fields.js';
import { pushWorkflowList, workflowField } from './workflow-lists.js';

/** @import { Bundle, ZObject } from 'zapier-platform-core' */

/** A push waits for the previous one. Zapier ends the step after 30 s. */
const TIMEOUT_MS = 27_000;
const FIELDS = ['id', 'name', 'email'];

const sample = {
  id: 'job_01kadz8v3s7v0s8e1c3q5m2n4p',
  workflowId: 'people',
  message: 'Records published',
  version: 17,
  total: 120,
  added: 1,
  changed: 1,
  removed: 0,
};

export const pushRecords = {
  key: 'push_records',
  noun: 'Records',
  display: {
    label: 'Push Records',
    description: 'Publishes records to a workflow whose source is "push": either all of them or none.',
  },
  operation: {
    inputFields: [
      workflowField({ required: true, of: pushWorkflowList }),
      {
        key: 'mode',
        label: 'Earlier Records',
        type: 'string',
        required: false,
        choices: {
          upsert: 'Keep them, and update those with the same ID',
          append: 'Leave them unchanged',
          replace: 'Remove those that are not in this push',
        },
        helpText:
          'Default: the mode of the workflow. A push may change less of the earlier records than that mode, but not more.',
      },
      {
        key: 'fieldNames',
        label: 'Fields',
        type: 'string',
        list: true,
        required: false,
        altersDynamicFields: true,
        helpText: `The names of the fields of a record. Default: ${FIELDS.join(', ')}.`,
      },
      recordFields,
      {
        key: 'json',
        label: 'Records as JSON',
        type: 'text',
        required: false,
        helpText:
          'Instead of the fields above: an array of objects, such as `[{"id": "1", "name": "Ada"}]`, or one object.',
      },
      onceField,
    ],
    perform,
    sample,
    outputFields: outputFields(sample),
  },
};

/**
 * @param {ZObject} _z
 * @param {Bundle} bundle
 */
function recordFields(_z, bundle) {
  const named = [bundle.inputData.fieldNames ?? []].flat().filter((name) => String(name).trim() !== '');
  const names = named.length === 0 ? FIELDS : named.map((name) => String(name).trim());
  return [
    {
      key: 'records',
      label: 'Records',
      children: [...new Set(names)].map((key) => ({ key, label: key, type: 'string', required: false })),
    },
  ];
}

/**
 * @param {ZObject} z
 * @param {Bundle} bundle
 * @throws ThrottledError if another push is in progress, `z.errors.Error` with the reason if a record is refused
 */
async function perform(z, bundle) {
  const { mode } = bundle.inputData;
  const workflowId = String(bundle.inputData.workflowId);
  const { data } = await ask(z, bundle, {
    method: 'POST',
    path: `/v1/workflows/${encodeURIComponent(workflowId)}/push${mode ? `?mode=${encodeURIComponent(String(mode))}` : ''}`,
    headers: onceHeader(z, bundle),
    body: recordsOf(z, bundle),
    timeoutMs: TIMEOUT_MS,
  });
  return { id: data.jobId, workflowId, message: data.message, version: data.version, ...data.records };
}

/**
 * @param {ZObject} z
 * @param {Bundle} bundle
 * @returns {Record<string, unknown>[]}
 * @throws HaltedError if there is nothing to push: in the mode `replace` that would remove everything
 */
function recordsOf(z, bundle) {
  const { json } = bundle.inputData;
  const entered = /** @type {Record<string, unknown>[]} */ ([bundle.inputData.records ?? []].flat());
  const lines = entered.map(withoutEmpty).filter((one) => Object.keys(one).length > 0);
  const given = json === undefined || json === '' ? lines : [parsed(z, json)].flat();
  if (json && lines.length > 0) {
    throw new z.errors.Error('Give the records either as fields or as JSON, not both', 'Records');
  }
  if (given.length === 0) throw new z.errors.HaltedError('There are no records to push');
  return given;
}

/**
 * @param {ZObject} z
 * @param {unknown} json
 */
function parsed(z, json) {
  if (typeof json !== 'string') return json;
  try {
    return JSON.parse(json);
  } catch (error) {
    throw new z.errors.Error(
      `"Records as JSON" is not JSON: ${error instanceof Error ? error.message : error}`,
      'Records',
    );
  }
}

/** Leaves out fields that were not mapped. @param {Record<string, unknown>} record */
function withoutEmpty(record) {
  return Object.fromEntries(
    Object.entries(record).filter(([, value]) => value !== undefined && value !== '' && value !== null),
  );
}
