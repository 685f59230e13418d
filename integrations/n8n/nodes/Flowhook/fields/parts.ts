/** Fields that several operations share. */
import type { INodeProperties } from 'n8n-workflow';

type Place = Record<'resource' | 'operation', string[]>;

export function workflowField(show: Place): INodeProperties {
  return {
    displayName: 'Workflow Name or ID',
    name: 'workflowId',
    type: 'options',
    typeOptions: { loadOptionsMethod: 'getWorkflows' },
    required: true,
    default: '',
    displayOptions: { show },
    description:
      'Choose from the list, or specify an ID using an <a href="https://docs.n8n.io/code/expressions/">expression</a>',
  };
}

export function returnAllFields(show: Place): INodeProperties[] {
  return [
    {
      displayName: 'Return All',
      name: 'returnAll',
      type: 'boolean',
      default: false,
      displayOptions: { show },
      description: 'Whether to return all results or only up to a given limit',
    },
    {
      displayName: 'Limit',
      name: 'limit',
      type: 'number',
      typeOptions: { minValue: 1 },
      default: 50,
      displayOptions: { show: { ...show, returnAll: [false] } },
      description: 'Max number of results to return',
    },
  ];
}

export function waitFields(show: Place): INodeProperties[] {
  return [
    {
      displayName: 'Wait at Most (Seconds)',
      name: 'waitSeconds',
      type: 'number',
      typeOptions: { minValue: 0 },
      default: 900,
      displayOptions: { show },
      description: 'After this time the node fails, but the job continues',
    },
    {
      displayName: 'Fail if the Job Fails',
      name: 'failWithJob',
      type: 'boolean',
      default: true,
      displayOptions: { show },
      description: 'Whether this node fails if the job failed or was canceled',
    },
  ];
}

export const IDEMPOTENCY_KEY: INodeProperties = {
  displayName: 'Idempotency Key',
  name: 'idempotencyKey',
  type: 'string',
  default: '',
  placeholder: 'e.g. evt_01kadz8v3s7v0s8e1c3q5m2n4p',
  description:
    'A value that is unique for this call, such as the ID of an event. A call with the same key within 24 hours returns the first response and does nothing else.',
};
