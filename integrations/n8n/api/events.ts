/** The events that can start an n8n workflow: the event catalog of the service, with names for n8n. */
import type { INodePropertyOptions } from 'n8n-workflow';

/** A test compares them with `GET /v1/events/types`. */
export const EVENTS: INodePropertyOptions[] = [
  {
    name: 'Job Canceled',
    value: 'workflow_canceled',
    description: 'A job was canceled, before it started or while it ran',
  },
  {
    name: 'Job Failed',
    value: 'workflow_failed',
    description: 'A job has failed and will not be retried',
  },
  {
    name: 'Expectation Failed',
    value: 'workflow_expectation_failed',
    description: 'A job has published records that do not meet an expectation of the workflow',
  },
  {
    name: 'Job Finished',
    value: 'workflow_finished',
    description: 'A job has finished, with or without changed records',
  },
  { name: 'Job Queued', value: 'workflow_queued', description: 'A job was queued' },
  { name: 'Job Started', value: 'workflow_started', description: 'The first attempt of a job has started' },
  {
    name: 'Records Changed',
    value: 'workflow_data_change',
    description: 'A run has published changed records; the event contains the differences as far as they fit',
  },
  {
    name: 'Workflow Recovered',
    value: 'workflow_recovered',
    description: 'A job of a stale workflow has finished',
  },
  {
    name: 'Schema Changed',
    value: 'workflow_schema_changed',
    description: 'A job has published records with new or missing fields, or new types of values',
  },
  {
    name: 'Workflow Stale',
    value: 'workflow_stale',
    description: 'No run of a workflow has succeeded for the time that its definition sets as fresh',
  },
  {
    name: 'Webhook Paused',
    value: 'webhook_paused',
    description: 'Another webhook was paused, because deliveries to it have failed for a long time',
  },
  {
    name: 'Webhook Failing',
    value: 'webhook_failing',
    description: 'Deliveries to another webhook have started to fail and are held back',
  },
  {
    name: 'Webhook Digest',
    value: 'webhook_digest',
    description: 'The digest of this webhook has ended: what has matched since it began',
  },
  {
    name: 'Webhook Tested',
    value: 'webhook_test',
    description: 'Somebody tests the webhook of this node in Flowhook',
  },
];
