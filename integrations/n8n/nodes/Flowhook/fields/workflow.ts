/** The operations on workflows: list, queue a job, run a job to its end. */
import type { INodeProperties } from 'n8n-workflow';
import { IDEMPOTENCY_KEY, returnAllFields, waitFields, workflowField } from './parts.ts';

const running = { resource: ['workflow'], operation: ['queue', 'run'] };

export const workflowFields: INodeProperties[] = [
  {
    displayName: 'Operation',
    name: 'operation',
    type: 'options',
    noDataExpression: true,
    displayOptions: { show: { resource: ['workflow'] } },
    default: 'run',
    options: [
      {
        name: 'Get Many',
        value: 'getAll',
        description: 'Get many workflows with their states',
        action: 'Get many workflows',
      },
      {
        name: 'Queue',
        value: 'queue',
        description: 'Queue a job and continue',
        action: 'Queue a job of a workflow',
      },
      {
        name: 'Run',
        value: 'run',
        description: 'Queue a job and wait until it has ended',
        action: 'Run a workflow to its end',
      },
    ],
  },
  workflowField(running),
  {
    displayName: 'When a Job Is Already There',
    name: 'whenBusy',
    type: 'options',
    default: 'fail',
    displayOptions: { show: running },
    description: 'A workflow runs one job at a time',
    options: [
      { name: 'Fail', value: 'fail', description: 'Stop with an error that names the job' },
      {
        name: 'Use That Job',
        value: 'skip',
        description: 'Do not queue another job; the output has queued: false',
      },
      { name: 'Wait Until It Has Ended', value: 'wait', description: 'Then queue a job' },
    ],
  },
  ...waitFields({ resource: ['workflow'], operation: ['run'] }),
  {
    displayName: 'Wait for That Job at Most (Seconds)',
    name: 'roomSeconds',
    type: 'number',
    typeOptions: { minValue: 0 },
    default: 900,
    displayOptions: { show: { resource: ['workflow'], operation: ['queue'], whenBusy: ['wait'] } },
    description: 'After this time the node fails',
  },
  {
    displayName: 'Options',
    name: 'options',
    type: 'collection',
    placeholder: 'Add option',
    default: {},
    displayOptions: { show: running },
    options: [IDEMPOTENCY_KEY],
  },
  ...returnAllFields({ resource: ['workflow'], operation: ['getAll'] }),
];
