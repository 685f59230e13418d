/** What can be done with workflows: list them, queue a job, run one to its end. */
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
        description: 'Get many workflows with how they stand',
        action: 'Get many workflows',
      },
      {
        name: 'Queue',
        value: 'queue',
        description: 'Queue a job and go on',
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
      { name: 'Fail', value: 'fail', description: 'Stop with the sentence that names it' },
      {
        name: 'Go on With That Job',
        value: 'skip',
        description: 'Queue none; the output says queued: false',
      },
      { name: 'Wait Until It Has Ended', value: 'wait', description: 'And queue one then' },
    ],
  },
  ...waitFields({ resource: ['workflow'], operation: ['run'] }),
  {
    displayName: 'Wait for Room at Most (Seconds)',
    name: 'roomSeconds',
    type: 'number',
    typeOptions: { minValue: 0 },
    default: 900,
    displayOptions: { show: { resource: ['workflow'], operation: ['queue'], whenBusy: ['wait'] } },
    description: 'After that the node fails',
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
