/** What a workflow of n8n can be started by: the service's catalogue, in the words of n8n. */
import type { INodePropertyOptions } from 'n8n-workflow';

/** A test holds them to `GET /v1/events/types`. */
export const EVENTS: INodePropertyOptions[] = [
  {
    name: 'Job Canceled',
    value: 'workflow_canceled',
    description: 'A job was canceled, before it started or while it ran',
  },
  {
    name: 'Job Failed',
    value: 'workflow_failed',
    description: 'A job has failed for good: no attempt follows',
  },
  {
    name: 'Job Finished',
    value: 'workflow_finished',
    description: 'A job has ended well, whether it has changed any records or not',
  },
  { name: 'Job Queued', value: 'workflow_queued', description: 'A job was queued' },
  { name: 'Job Started', value: 'workflow_started', description: 'The first attempt of a job has started' },
  {
    name: 'Records Changed',
    value: 'workflow_data_change',
    description:
      'A run has published records that differ from those before, with the differences as far as they fit',
  },
  {
    name: 'Webhook Paused',
    value: 'webhook_paused',
    description: 'Another webhook gets nothing any more, because nothing was delivered to it for long',
  },
  {
    name: 'Webhook Tested',
    value: 'webhook_test',
    description: 'Somebody tries out the webhook of this node in Flowhook',
  },
];
