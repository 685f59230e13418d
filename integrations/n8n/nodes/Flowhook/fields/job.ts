/** The operations on jobs: get, wait, cancel. */
import type { INodeProperties } from 'n8n-workflow';
import { waitFields } from './parts.ts';

export const jobFields: INodeProperties[] = [
  {
    displayName: 'Operation',
    name: 'operation',
    type: 'options',
    noDataExpression: true,
    displayOptions: { show: { resource: ['job'] } },
    default: 'get',
    options: [
      {
        name: 'Cancel',
        value: 'cancel',
        description: 'Cancel a job that has not ended',
        action: 'Cancel a job',
      },
      {
        name: 'Get',
        value: 'get',
        description: 'Get a job with its progress and its counts',
        action: 'Get a job',
      },
      { name: 'Wait', value: 'wait', description: 'Wait until a job has ended', action: 'Wait for a job' },
    ],
  },
  {
    displayName: 'Job ID',
    name: 'jobId',
    type: 'string',
    required: true,
    default: '',
    placeholder: 'e.g. job_01kadz8v3s7v0s8e1c3q5m2n4p',
    displayOptions: { show: { resource: ['job'] } },
  },
  ...waitFields({ resource: ['job'], operation: ['wait'] }),
];
