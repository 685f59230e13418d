/** Fields that several operations have. */
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
      description: 'After that the node fails; the job goes on',
    },
    {
      displayName: 'Fail if the Job Fails',
      name: 'failWithJob',
      type: 'boolean',
      default: true,
      displayOptions: { show },
      description: 'Whether a job that failed or was canceled is an error of this node, or only its output',
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
    'What makes this call unique, such as the ID of an event. A call with the same key within 24 hours is answered as the first was.',
};
