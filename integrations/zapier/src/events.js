/** Every type of event that can start a Zap: the service's catalog, in the terms of Zapier. */

/**
 * @typedef {object} EventKind
 * @property {string} key the type of the event, and the key of its trigger
 * @property {string} noun
 * @property {string} label
 * @property {string} description
 */

/** @type {readonly EventKind[]} */
export const EVENTS = [
  {
    key: 'workflow_finished',
    noun: 'Job',
    label: 'Job Finished',
    description: 'Triggers when a job has finished, with or without changed records.',
  },
  {
    key: 'workflow_data_change',
    noun: 'Change',
    label: 'Records Changed',
    description:
      'Triggers when a run has published changed records. The event contains the differences as far as they fit.',
  },
  {
    key: 'workflow_schema_changed',
    noun: 'Job',
    label: 'Schema Changed',
    description:
      'Triggers when a job has published records with new or missing fields, or new types of values.',
  },
  {
    key: 'workflow_expectation_failed',
    noun: 'Job',
    label: 'Expectation Failed',
    description: 'Triggers when a job has published records that do not meet an expectation of the workflow.',
  },
  {
    key: 'workflow_failed',
    noun: 'Job',
    label: 'Job Failed',
    description: 'Triggers when a job has failed and will not be retried.',
  },
  {
    key: 'workflow_canceled',
    noun: 'Job',
    label: 'Job Canceled',
    description: 'Triggers when a job was canceled, before it started or while it ran.',
  },
  {
    key: 'workflow_queued',
    noun: 'Job',
    label: 'Job Queued',
    description: 'Triggers when a job was queued for a workflow.',
  },
  {
    key: 'workflow_started',
    noun: 'Job',
    label: 'Job Started',
    description: 'Triggers when the first attempt of a job has started.',
  },
  {
    key: 'workflow_stale',
    noun: 'Workflow',
    label: 'Workflow Stale',
    description:
      'Triggers when no run of a workflow has succeeded for the time that its definition sets as fresh.',
  },
  {
    key: 'workflow_recovered',
    noun: 'Workflow',
    label: 'Workflow Recovered',
    description: 'Triggers when a job of a stale workflow has finished.',
  },
  {
    key: 'webhook_paused',
    noun: 'Webhook',
    label: 'Webhook Paused',
    description:
      'Triggers when another webhook is paused because deliveries to it have failed for a long time.',
  },
  {
    key: 'webhook_failing',
    noun: 'Webhook',
    label: 'Webhook Failing',
    description: 'Triggers when deliveries to another webhook begin to fail and are held back.',
  },
  {
    key: 'webhook_digest',
    noun: 'Digest',
    label: 'Webhook Digest',
    description: 'Triggers when the digest of the webhook of this Zap ends.',
  },
  {
    key: 'webhook_test',
    noun: 'Test',
    label: 'Webhook Tested',
    description: 'Triggers when somebody tests the webhook of this Zap in Flowhook.',
  },
];
