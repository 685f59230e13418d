/** Every type of event: its description, its JSON Schema (2020-12) and an example. */
import { EVENT_TYPES, type EventType } from './event.ts';
import { FAILURE_REASONS } from './job.ts';

/** One type of event. */
export interface EventKind {
  type: EventType;
  description: string;
  /** Of the whole body. */
  schema: object;
  /** A whole body, as a webhook gets it. */
  example: Record<string, unknown>;
}

const text = { type: 'string', minLength: 1 };
const time = { type: 'string', format: 'date-time', description: 'ISO 8601 in UTC with milliseconds' };
const count = { type: 'integer', minimum: 0 };

/** The schema of an object with all of these fields, and no others but optional ones. */
const exactly = (properties: Record<string, object>, optional: Record<string, object> = {}) => ({
  type: 'object',
  required: Object.keys(properties),
  properties: { ...properties, ...optional },
  additionalProperties: false,
});

const recordCounts = exactly({ total: count, added: count, changed: count, removed: count });
const difference = exactly({
  type: { enum: ['added', 'changed', 'removed'] },
  id: { type: 'string' },
  fields: {
    type: 'array',
    items: {
      type: 'object',
      description: '`value` is missing if the field was removed, `previousValue` if it was added',
      required: ['key'],
      properties: { key: { type: 'string' }, value: {}, previousValue: {} },
      additionalProperties: false,
    },
  },
});

const job = (state: string, ...times: ('startedAt' | 'finishedAt')[]) => ({
  workflowId: text,
  jobId: text,
  state: { const: state },
  queuedAt: time,
  ...Object.fromEntries(times.map((name) => [name, time])),
});
const published = {
  version: { type: 'integer', minimum: 0, description: 'The newest version of the records' },
  records: recordCounts,
  dataUrl: { ...text, description: 'Where the records are read, with an API key' },
};

const QUEUED_AT = '2026-01-01T06:00:00.000Z';
const STARTED_AT = '2026-01-01T06:00:00.120Z';
const FINISHED_AT = '2026-01-01T06:00:03.120Z';
const someJob = { workflowId: 'crm-contacts', jobId: 'job_01kadz8v3s7v0s8e1c3q5m2n4p' };
const somePublished = {
  version: 17,
  records: { total: 120, added: 1, changed: 1, removed: 0 },
  dataUrl: 'https://flowhook.example/v1/workflows/crm-contacts/data',
};
const someTimes = { queuedAt: QUEUED_AT, startedAt: STARTED_AT, finishedAt: FINISHED_AT };
const someWebhook = 'wh_01kadz8v3s7v0s8e1c3q5m2n4p';

/** `data` of each type: in words, its schema, and what it holds in the example. */
const DATA: Readonly<Record<EventType, { description: string; schema: object; example: object }>> = {
  workflow_queued: {
    description: 'A job was queued for a workflow.',
    schema: exactly(job('queued')),
    example: { ...someJob, state: 'queued', queuedAt: QUEUED_AT },
  },
  workflow_started: {
    description: 'The first attempt of a job has started. Sent once, however many attempts there are.',
    schema: exactly(job('running', 'startedAt')),
    example: { ...someJob, state: 'running', queuedAt: QUEUED_AT, startedAt: STARTED_AT },
  },
  workflow_data_change: {
    description:
      'A run has published records that differ from the version before. `differences` holds as many as fit; when ' +
      '`truncated` is true, `changesUrl` has the rest. Followed by `workflow_finished`.',
    schema: exactly({
      ...job('finished', 'startedAt', 'finishedAt'),
      ...published,
      previousVersion: { ...count, description: '0: there was none' },
      differences: { type: 'array', items: difference },
      truncated: { type: 'boolean' },
      changesUrl: text,
    }),
    example: {
      ...someJob,
      state: 'finished',
      ...someTimes,
      ...somePublished,
      previousVersion: 16,
      differences: [
        {
          type: 'changed',
          id: '1',
          fields: [{ key: 'email', value: 'ada@example.com', previousValue: 'ada@example.org' }],
        },
        {
          type: 'added',
          id: '2',
          fields: [
            { key: 'id', value: '2' },
            { key: 'name', value: 'Grace Hopper' },
          ],
        },
      ],
      truncated: false,
      changesUrl: 'https://flowhook.example/v1/workflows/crm-contacts/changes?since=16&until=17',
    },
  },
  workflow_finished: {
    description: 'A job has finished, whether or not it changed any record.',
    schema: exactly({ ...job('finished', 'startedAt', 'finishedAt'), ...published }),
    example: { ...someJob, state: 'finished', ...someTimes, ...somePublished },
  },
  workflow_failed: {
    description:
      'A job has failed for good: there will be no further attempt. The published records stay as they are.',
    schema: exactly(
      {
        ...job('failed', 'finishedAt'),
        reason: { enum: FAILURE_REASONS },
        error: { type: ['string', 'null'], description: 'The reason as a sentence' },
        attempt: { ...count, description: 'Attempts that were made' },
      },
      { startedAt: time },
    ),
    example: {
      ...someJob,
      state: 'failed',
      ...someTimes,
      reason: 'error',
      error: 'The command ended with exit code 7',
      attempt: 3,
    },
  },
  workflow_canceled: {
    description:
      'A job was canceled, before it started or while it ran. The published records stay as they are.',
    schema: exactly(
      {
        ...job('canceled', 'finishedAt'),
        error: { type: ['string', 'null'], description: 'By whom' },
        attempt: { ...count, description: 'Attempts that were made' },
      },
      { startedAt: time },
    ),
    example: { ...someJob, state: 'canceled', ...someTimes, error: 'Canceled over the API', attempt: 1 },
  },
  webhook_test: {
    description: 'A test of a webhook: sent only to that one, whatever events it subscribed to.',
    schema: exactly({ webhookId: text, message: text }),
    example: { webhookId: someWebhook, message: 'This is a test: nothing has happened' },
  },
  webhook_paused: {
    description:
      'A webhook is paused and receives nothing until it is resumed. Sent to the other webhooks of its workflow.',
    schema: exactly({ webhookId: text, url: text, pausedAt: time, reason: text }),
    example: {
      webhookId: someWebhook,
      url: 'https://example.com/hook',
      pausedAt: FINISHED_AT,
      reason: 'No delivery has succeeded for 5 days',
    },
  },
};

/** Every type of event, in the order in which they happen. */
export const EVENT_CATALOGUE: readonly EventKind[] = EVENT_TYPES.map((type) => ({
  type,
  description: DATA[type].description,
  schema: bodySchema(type),
  example: bodyExample(type),
}));

function isOfJob(type: EventType): boolean {
  return type.startsWith('workflow_');
}

function hasEnded(type: EventType): boolean {
  return isOfJob(type) && type !== 'workflow_queued' && type !== 'workflow_started';
}

function bodySchema(type: EventType): object {
  return {
    ...exactly(
      {
        id: { ...text, description: 'The same in every attempt: the header `webhook-id`' },
        teamId: text,
        type: { const: type },
        eventType: { const: type },
        timestamp: time,
        sequence: { type: 'integer', minimum: 1, description: 'Its place among the events of its team' },
        ...(isOfJob(type) ? { workflowId: text, jobId: text } : {}),
        ...(hasEnded(type) ? { finishedAt: time } : {}),
        data: DATA[type].schema,
      },
      // A webhook may belong to no workflow.
      isOfJob(type) ? {} : { workflowId: text },
    ),
    description: DATA[type].description,
  };
}

function bodyExample(type: EventType): Record<string, unknown> {
  return {
    id: 'evt_01kadz8v3s7v0s8e1c3q5m2n4p',
    teamId: 'team_01kadz8v3s7v0s8e1c3q5m2n4p',
    type,
    eventType: type,
    timestamp: hasEnded(type) ? FINISHED_AT : STARTED_AT,
    sequence: 42,
    ...(isOfJob(type) ? someJob : { workflowId: someJob.workflowId }),
    ...(hasEnded(type) ? { finishedAt: FINISHED_AT } : {}),
    data: DATA[type].example,
  };
}
