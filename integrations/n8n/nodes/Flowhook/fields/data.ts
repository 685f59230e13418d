/** The operations on records: reading and pushing. */
import type { INodeProperties } from 'n8n-workflow';
import { IDEMPOTENCY_KEY, returnAllFields, workflowField } from './parts.ts';

const reading = { resource: ['data'], operation: ['getAll'] };
const pushing = { resource: ['data'], operation: ['push'] };

export const dataFields: INodeProperties[] = [
  {
    displayName: 'Operation',
    name: 'operation',
    type: 'options',
    noDataExpression: true,
    displayOptions: { show: { resource: ['data'] } },
    default: 'getAll',
    options: [
      {
        name: 'Get Many',
        value: 'getAll',
        description: 'Get many records',
        action: 'Get many records of a workflow',
      },
      {
        name: 'Push',
        value: 'push',
        description: 'Publish records to a workflow whose source is push: all of them or none',
        action: 'Push records to a workflow',
      },
    ],
  },
  workflowField({ resource: ['data'], operation: ['getAll', 'push'] }),
  ...returnAllFields(reading),
  {
    displayName: 'Options',
    name: 'options',
    type: 'collection',
    placeholder: 'Add option',
    default: {},
    displayOptions: { show: reading },
    options: [
      {
        displayName: 'Changed Since Version',
        name: 'since',
        type: 'number',
        typeOptions: { minValue: 0 },
        default: 0,
        description: 'Only records that were added or changed after this version',
      },
      {
        displayName: 'Fields',
        name: 'fields',
        type: 'string',
        default: '',
        placeholder: 'e.g. name,email',
        description: 'Comma-separated names of the fields to return (besides ID)',
      },
      {
        displayName: 'Search',
        name: 'q',
        type: 'string',
        default: '',
        description: 'Return only records that contain this text (at most 1,000)',
      },
      {
        displayName: 'Version',
        name: 'version',
        type: 'number',
        typeOptions: { minValue: 0 },
        default: 0,
        description: 'The version to read (default: the newest)',
      },
    ],
  },
  {
    displayName: 'Records From',
    name: 'recordsFrom',
    type: 'options',
    default: 'items',
    displayOptions: { show: pushing },
    options: [
      { name: 'Input Items', value: 'items', description: 'All of them together, in one push' },
      { name: 'JSON', value: 'json', description: 'A list written in this node; one push for each item' },
    ],
  },
  {
    displayName: 'Records',
    name: 'records',
    type: 'json',
    default: '[\n  { "id": "1" }\n]',
    displayOptions: { show: { ...pushing, recordsFrom: ['json'] } },
    description: 'A list of objects, each with an ID',
  },
  {
    displayName: 'Options',
    name: 'options',
    type: 'collection',
    placeholder: 'Add option',
    default: {},
    displayOptions: { show: pushing },
    options: [
      IDEMPOTENCY_KEY,
      {
        displayName: 'Mode',
        name: 'mode',
        type: 'options',
        default: 'upsert',
        description: 'What the push does to existing records; the workflow limits the allowed modes',
        options: [
          { name: 'Append', value: 'append', description: 'Only add new records' },
          {
            name: 'Create or Update',
            value: 'upsert',
            description: 'Create a new record, or update the current one if it already exists (upsert)',
          },
          { name: 'Replace', value: 'replace', description: 'Remove records that are not pushed' },
        ],
      },
    ],
  },
];
