/** The operations on webhooks: list, subscribe, unsubscribe. */
import type { INodeProperties } from 'n8n-workflow';
import { EVENTS } from '../../../api/events.ts';
import { returnAllFields } from './parts.ts';

const subscribing = { resource: ['webhook'], operation: ['subscribe'] };

export const webhookFields: INodeProperties[] = [
  {
    displayName: 'Operation',
    name: 'operation',
    type: 'options',
    noDataExpression: true,
    displayOptions: { show: { resource: ['webhook'] } },
    default: 'getAll',
    options: [
      {
        name: 'Get Many',
        value: 'getAll',
        description: 'Get many webhooks of the team with their states',
        action: 'Get many webhooks',
      },
      {
        name: 'Subscribe',
        value: 'subscribe',
        description: 'Send events to a URL; to start n8n workflows, use the Flowhook Trigger',
        action: 'Subscribe a webhook',
      },
      {
        name: 'Unsubscribe',
        value: 'unsubscribe',
        description: 'Remove a webhook',
        action: 'Unsubscribe a webhook',
      },
    ],
  },
  {
    displayName: 'Workflow Name or ID',
    name: 'webhookWorkflowId',
    type: 'options',
    typeOptions: { loadOptionsMethod: 'getAllOrOneWorkflow' },
    default: '',
    displayOptions: { show: { resource: ['webhook'], operation: ['getAll', 'subscribe'] } },
    description:
      'Choose from the list, or specify an ID using an <a href="https://docs.n8n.io/code/expressions/">expression</a>',
  },
  {
    displayName: 'Webhook URL',
    name: 'webhookUrl',
    type: 'string',
    required: true,
    default: '',
    placeholder: 'e.g. https://example.com/hooks/people',
    displayOptions: { show: subscribing },
  },
  {
    displayName: 'Events',
    name: 'events',
    type: 'multiOptions',
    required: true,
    default: ['workflow_finished'],
    options: EVENTS,
    displayOptions: { show: subscribing },
  },
  {
    displayName: 'Webhook ID',
    name: 'webhookId',
    type: 'string',
    required: true,
    default: '',
    placeholder: 'e.g. wh_01kadz8v3s7v0s8e1c3q5m2n4p',
    displayOptions: { show: { resource: ['webhook'], operation: ['unsubscribe'] } },
  },
  ...returnAllFields({ resource: ['webhook'], operation: ['getAll'] }),
];
