/** Every event type: its description, its JSON Schema (2020-12) and an example. */
import {
  as,
  boolean,
  choice,
  exactly,
  integer,
  type JsonSchema,
  list,
  nullable,
  object,
  optional,
  raw,
  text,
  time,
} from '../std/shape.ts';
import { EVENT_TYPES, type EventType } from './event.ts';
import { FAILURE_REASONS } from './job.ts';
import type { JobFinding } from './quality/expect.ts';
import { findingsSentence } from './quality/judge.ts';

export interface EventKind {
  type: EventType;
  description: string;
  /** Describes the whole body. */
  schema: JsonSchema;
  /** The whole body of an event, as a webhook receives it. */
  example: Record<string, unknown>;
}

const closed = (fields: Parameters<typeof object>[0]) => exactly(object(fields));
const constant = (value: string, description?: string) =>
  raw<string>({ const: value, ...(description === undefined ? {} : { description }) });
const nonEmpty = (description?: string) =>
  raw<string>({ type: 'string', minLength: 1, ...(description === undefined ? {} : { description }) });
const count = (description?: string) => integer(description, { minimum: 0 });

const differingField = closed({ key: text(), value: optional(raw({})), previousValue: optional(raw({})) });
const difference = closed({
  type: choice(['added', 'changed', 'removed']),
  id: text(),
  fields: list(
    as('`value` is missing if the field was removed, `previousValue` if it was added', differingField),
  ),
});

/** A difference in a digest. */
const gathered = closed({
  type: choice(['added', 'changed', 'removed']),
  id: text(),
  title: text('Name of the record, for people: its `name`, `title` or a similar field, or its id'),
  url: nullable(text('A link of the record. `null` if it has none')),
  fields: list(
    as(
      'Fields that differ between the state before the first match and the newest one. Empty if none does, or if all are long',
      differingField,
    ),
  ),
  moreFields: optional(count('Number of differing fields that are not listed, because they are long')),
});

const scalar = raw<JobFinding['found']>({ type: ['string', 'number', 'boolean', 'null'] });
/** Also in the resource of a job. */
export const findingFields = {
  expectation: text(
    '`records.drop`, `type`, `filled`, …; with `drift` `new`, `vanished`, `type`, `filled`, `records` or `duplicates`',
  ),
  field: nullable(text('Field. `null` if the expectation is about the number of records')),
  found: as('First value, number or percentage that is not as expected', scalar),
  limit: as('Setting of the expectation, or bound of the usual range', scalar),
  count: count('Number of records that do not meet it; for `records`, the number of records after the run'),
  examples: list(text(), 'IDs of the first records that do not meet it, at most five'),
  drift: boolean('Whether this is an unusual difference from earlier runs, and not an expectation'),
};
const findingShape = closed(findingFields);

const exampleFinding: JobFinding = {
  expectation: 'filled',
  field: 'price',
  found: 50,
  limit: 98,
  count: 60,
  examples: ['7'],
  drift: false,
};

const exampleDrift: JobFinding = {
  expectation: 'type',
  field: 'price',
  found: 'text',
  limit: 'number',
  count: 120,
  examples: [],
  drift: true,
};

const job = (state: string) => ({
  workflowId: nonEmpty(),
  jobId: nonEmpty(),
  state: constant(state),
  queuedAt: time(),
});
const startedAndFinished = { startedAt: time(), finishedAt: time() };
const attempts = { attempt: count('Number of attempts made'), startedAt: optional(time()) };
const published = {
  version: count('Newest version of the records'),
  records: closed({ total: count(), added: count(), changed: count(), removed: count() }),
  quarantined: optional(count('Number of records that were set aside. Missing if there are none')),
  dataUrl: nonEmpty('URL of the records; reading them requires an API key'),
};

const QUEUED_AT = '2026-01-01T06:00:00.000Z';
const STARTED_AT = '2026-01-01T06:00:00.120Z';
const FINISHED_AT = '2026-01-01T06:00:03.120Z';
const exampleJob = { workflowId: 'crm-contacts', jobId: 'job_01kadz8v3s7v0s8e1c3q5m2n4p' };
const examplePublished = {
  version: 17,
  records: { total: 120, added: 1, changed: 1, removed: 0 },
  dataUrl: 'https://flowhook.example/v1/workflows/crm-contacts/data',
};
const exampleTimes = { queuedAt: QUEUED_AT, startedAt: STARTED_AT, finishedAt: FINISHED_AT };
const exampleWebhookId = 'wh_01kadz8v3s7v0s8e1c3q5m2n4p';

/** A description, the schema of `data`, and an example of `data`. */
type EventData = { description: string; schema: JsonSchema; example: object };

function withFindings(description: string, finding: JobFinding): EventData {
  const { schema } = closed({
    ...job('finished'),
    ...startedAndFinished,
    ...published,
    error: text('Human-readable summary of `findings`'),
    findings: list(findingShape),
    truncated: boolean('Whether `findings` is incomplete'),
  });
  const example = {
    ...exampleJob,
    state: 'finished',
    ...exampleTimes,
    ...examplePublished,
    error: findingsSentence([finding]),
    findings: [finding],
    truncated: false,
  };
  return { description, schema, example };
}

const DATA: Readonly<Record<EventType, EventData>> = {
  workflow_queued: {
    description: 'A job was queued for a workflow.',
    schema: closed(job('queued')).schema,
    example: { ...exampleJob, state: 'queued', queuedAt: QUEUED_AT },
  },
  workflow_started: {
    description: 'The first attempt of a job has started. Sent once per job, not once per attempt.',
    schema: closed({ ...job('running'), startedAt: time() }).schema,
    example: { ...exampleJob, state: 'running', queuedAt: QUEUED_AT, startedAt: STARTED_AT },
  },
  workflow_data_change: {
    description:
      'A run has published records that differ from the previous version. `differences` lists as many ' +
      'differences as fit; if `truncated` is true, `changesUrl` returns all of them. `workflow_finished` ' +
      'follows.',
    schema: closed({
      ...job('finished'),
      ...startedAndFinished,
      ...published,
      previousVersion: count('Version before this one. 0 if there was none'),
      differences: list(difference),
      truncated: boolean('Whether `differences` is incomplete'),
      changesUrl: nonEmpty('URL of all differences; reading them requires an API key'),
    }).schema,
    example: {
      ...exampleJob,
      state: 'finished',
      ...exampleTimes,
      ...examplePublished,
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
  workflow_schema_changed: withFindings(
    'A job has published records with a new field, without a field that earlier runs had, or with a new type of values. ' +
      '`findings` has as many of these changes as fit. Sent once per change. `workflow_finished` follows.',
    exampleDrift,
  ),
  workflow_expectation_failed: withFindings(
    'A job has published records that do not meet an expectation of the workflow (`otherwise: warn` or ' +
      '`quarantine`), or whose number, repeated ids or filled values are unusual (`drift` of the finding). `findings` has as many findings as fit. `workflow_finished` follows.',
    exampleFinding,
  ),
  workflow_finished: {
    description: 'A job has finished, whether or not it changed any record.',
    schema: closed({ ...job('finished'), ...startedAndFinished, ...published }).schema,
    example: { ...exampleJob, state: 'finished', ...exampleTimes, ...examplePublished },
  },
  workflow_failed: {
    description: 'A job has failed and will not be retried. The published records are unchanged.',
    schema: closed({
      ...job('failed'),
      finishedAt: time(),
      reason: choice(FAILURE_REASONS),
      error: nullable(text('Human-readable reason')),
      ...attempts,
    }).schema,
    example: {
      ...exampleJob,
      state: 'failed',
      ...exampleTimes,
      reason: 'error',
      error: 'The command ended with exit code 7',
      attempt: 3,
    },
  },
  workflow_canceled: {
    description:
      'A job was canceled, before it started or while it was running. The published records are unchanged.',
    schema: closed({
      ...job('canceled'),
      finishedAt: time(),
      error: nullable(text('Who canceled the job')),
      ...attempts,
    }).schema,
    example: {
      ...exampleJob,
      state: 'canceled',
      ...exampleTimes,
      error: 'Canceled over the API',
      attempt: 1,
    },
  },
  workflow_stale: {
    description:
      'No run of the workflow has succeeded for the time that its definition sets as `fresh`. Sent once; a run that succeeds ' +
      'causes `workflow_recovered`.',
    schema: closed({
      workflowId: nonEmpty(),
      reason: nonEmpty('Sentence for people that says how long no run has succeeded'),
      freshMs: count('`fresh` of the definition, in milliseconds'),
      waitingSince: time(
        'Time of the last successful run, or of a later change of `fresh` or end of a pause',
      ),
      dueAt: time('Time by which a run should have succeeded: `waitingSince` plus `freshMs`'),
      version: count('Newest version of the records. 0 if there is none'),
      lastJob: as(
        'Most recent job that has ended. `null` if there is none',
        nullable(
          closed({
            id: nonEmpty(),
            state: choice(['finished', 'failed', 'canceled']),
            finishedAt: time(),
            error: nullable(text('Reason why it failed, or who canceled it')),
          }),
        ),
      ),
    }).schema,
    example: {
      workflowId: exampleJob.workflowId,
      reason: 'No run has succeeded for 1 day 2 h',
      freshMs: 93_600_000,
      waitingSince: '2025-12-31T04:00:00.000Z',
      dueAt: QUEUED_AT,
      version: 17,
      lastJob: {
        id: exampleJob.jobId,
        state: 'failed',
        finishedAt: '2025-12-31T18:00:00.000Z',
        error: 'The command ended with exit code 7',
      },
    },
  },
  workflow_recovered: {
    description:
      'A job of a stale workflow has finished, so the workflow is not stale any more. Follows `workflow_finished` of this job.',
    schema: closed({
      ...job('finished'),
      ...startedAndFinished,
      ...published,
      staleSince: time('Time of `workflow_stale`'),
    }).schema,
    example: {
      ...exampleJob,
      state: 'finished',
      ...exampleTimes,
      ...examplePublished,
      staleSince: '2025-12-31T18:30:00.000Z',
    },
  },
  webhook_test: {
    description:
      'A test event. Only the tested webhook receives this event, even if it is not subscribed to this type.',
    schema: closed({ webhookId: nonEmpty(), message: nonEmpty() }).schema,
    example: { webhookId: exampleWebhookId, message: 'This is a test: nothing has happened' },
  },
  webhook_paused: {
    description:
      'A webhook has been paused and receives nothing until it is resumed. Sent to the other webhooks of its workflow ' +
      'and to webhooks for all workflows of the team.',
    schema: closed({ webhookId: nonEmpty(), url: nonEmpty(), pausedAt: time(), reason: nonEmpty() }).schema,
    example: {
      webhookId: exampleWebhookId,
      url: 'https://example.com/hook',
      pausedAt: FINISHED_AT,
      reason: 'No delivery has succeeded for 5 days',
    },
  },
  webhook_failing: {
    description:
      'The endpoint of a webhook is failing, so its deliveries are held back, except for an occasional probe. Sent the ' +
      'first time since the last successful delivery, to the other webhooks of its workflow and to webhooks for all ' +
      'workflows of the team.',
    schema: closed({
      webhookId: nonEmpty(),
      name: nullable(nonEmpty('Name of the webhook')),
      url: nonEmpty(),
      since: time('Time of the first failed attempt since the last successful delivery'),
      failures: count('Number of failed attempts in a row'),
      lastError: nullable(text('Human-readable reason why the last attempt failed')),
      retriesAt: time('Time of the next attempt'),
    }).schema,
    example: {
      webhookId: exampleWebhookId,
      name: 'Orders to the warehouse',
      url: 'https://example.com/hook',
      since: QUEUED_AT,
      failures: 10,
      lastError: 'HTTP 503: only 2xx counts as delivered',
      retriesAt: FINISHED_AT,
    },
  },
  webhook_digest: {
    description:
      'Everything that has matched the rule of a webhook with a digest since `from`, with the newest state of each record. Only ' +
      'that webhook receives this event, even if it is not subscribed to this type.',
    schema: closed({
      webhookId: nonEmpty(),
      from: time('Time of the first match'),
      until: time('Time of the end of the digest'),
      matched: count('Number of matches: differences of records, and other events'),
      records: count('Number of records that the digest has kept, listed or not: at most 1,000'),
      workflows: list(
        as(
          'Up to 50 workflows',
          closed({
            workflowId: nonEmpty(),
            version: nullable(count('Newest version in the digest. `null` if no record has matched')),
            previousVersion: nullable(
              count('Version before the first match. `null` if no record has matched'),
            ),
            matched: count(),
            records: count(),
            differences: list(gathered),
            truncated: boolean('Whether `differences` is incomplete'),
          }),
        ),
      ),
      events: list(
        as(
          'A matching event that is not about records',
          closed({
            id: nonEmpty(),
            type: nonEmpty(),
            timestamp: time(),
            workflowId: nullable(nonEmpty()),
            jobId: nullable(nonEmpty()),
            summary: nullable(text('Reason why a run failed or a webhook was paused')),
          }),
        ),
      ),
      more: count('Number of matching events that are not listed'),
    }).schema,
    example: {
      webhookId: exampleWebhookId,
      from: '2026-01-01T05:00:00.000Z',
      until: '2026-01-01T06:00:00.000Z',
      matched: 3,
      records: 1,
      workflows: [
        {
          workflowId: 'crm-contacts',
          version: 17,
          previousVersion: 14,
          matched: 2,
          records: 1,
          differences: [
            {
              type: 'changed',
              id: '1',
              title: 'Ada Lovelace',
              url: null,
              fields: [{ key: 'email', value: 'ada@example.com', previousValue: 'ada@example.org' }],
            },
          ],
          truncated: false,
        },
      ],
      events: [
        {
          id: 'evt_01kadz8v3s7v0s8e1c3q5m2n4q',
          type: 'workflow_failed',
          timestamp: '2026-01-01T05:30:00.000Z',
          workflowId: 'crm-contacts',
          jobId: exampleJob.jobId,
          summary: 'The command ended with exit code 7',
        },
      ],
      more: 0,
    },
  },
};

/** Every event type, in the order in which events of a job occur. */
export const EVENT_CATALOG: readonly EventKind[] = EVENT_TYPES.map((type) => ({
  type,
  description: DATA[type].description,
  schema: bodySchema(type),
  example: bodyExample(type),
}));

function isOfJob(type: EventType): boolean {
  return type.startsWith('workflow_') && type !== 'workflow_stale';
}

function hasEnded(type: EventType): boolean {
  return isOfJob(type) && type !== 'workflow_queued' && type !== 'workflow_started';
}

function bodySchema(type: EventType): JsonSchema {
  const body = closed({
    id: nonEmpty('Event ID, sent as the header `webhook-id` in every attempt'),
    teamId: nonEmpty('Team that the event belongs to'),
    type: constant(type, 'Type of the event. Standard Webhooks uses this field name'),
    eventType: constant(type, 'Same value as `type`, for receivers that expect this name'),
    timestamp: time('Time of the event, in ISO 8601 (UTC with milliseconds)'),
    sequence: integer('Position among the events of the team', { minimum: 1 }),
    ...(isOfJob(type) ? { workflowId: nonEmpty(), jobId: nonEmpty() } : {}),
    ...(hasEnded(type) ? { finishedAt: time() } : {}),
    data: raw(DATA[type].schema),
    // Events about a webhook that receives the events of all workflows have no `workflowId`.
    ...(isOfJob(type) ? {} : { workflowId: type === 'workflow_stale' ? nonEmpty() : optional(nonEmpty()) }),
  });
  return { ...body.schema, description: DATA[type].description };
}

function bodyExample(type: EventType): Record<string, unknown> {
  return {
    id: 'evt_01kadz8v3s7v0s8e1c3q5m2n4p',
    teamId: 'team_01kadz8v3s7v0s8e1c3q5m2n4p',
    type,
    eventType: type,
    timestamp: hasEnded(type) ? FINISHED_AT : STARTED_AT,
    sequence: 42,
    ...(isOfJob(type) ? exampleJob : { workflowId: exampleJob.workflowId }),
    ...(hasEnded(type) ? { finishedAt: FINISHED_AT } : {}),
    data: DATA[type].example,
  };
}
