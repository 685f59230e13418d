/** Every type of event that can start a Zap: the service's catalog, in the terms of Zapier. */

const QUEUED_AT = '2026-01-01T06:00:00.000Z';
const STARTED_AT = '2026-01-01T06:00:00.120Z';
const FINISHED_AT = '2026-01-01T06:00:03.120Z';
const JOB = { workflowId: 'crm-contacts', jobId: 'job_01kadz8v3s7v0s8e1c3q5m2n4p' };
const TIMES = { queuedAt: QUEUED_AT, startedAt: STARTED_AT, finishedAt: FINISHED_AT };
const PUBLISHED = {
  version: 17,
  records: { total: 120, added: 1, changed: 1, removed: 0 },
  dataUrl: 'https://flowhook.example/v1/workflows/crm-contacts/data',
};
const WEBHOOK_ID = 'wh_01kadz8v3s7v0s8e1c3q5m2n4p';

/**
 * @typedef {object} EventKind
 * @property {string} key the type of the event, and the key of its trigger
 * @property {string} noun
 * @property {string} label
 * @property {string} description
 * @property {Record<string, any>} sample the example of `GET /v1/events/types`; a test compares the two
 */

/** @type {readonly EventKind[]} */
export const EVENTS = [
  {
    key: 'workflow_finished',
    noun: 'Job',
    label: 'Job Finished',
    description: 'Triggers when a job has finished, with or without changed records.',
    sample: ofJob('workflow_finished', { ...JOB, state: 'finished', ...TIMES, ...PUBLISHED }),
  },
  {
    key: 'workflow_data_change',
    noun: 'Change',
    label: 'Records Changed',
    description:
      'Triggers when a run has published changed records. The event contains the differences as far as they fit.',
    sample: ofJob('workflow_data_change', {
      ...JOB,
      state: 'finished',
      ...TIMES,
      ...PUBLISHED,
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
    }),
  },
  {
    key: 'workflow_schema_changed',
    noun: 'Job',
    label: 'Schema Changed',
    description:
      'Triggers when a job has published records with new or missing fields, or new types of values.',
    sample: ofJob('workflow_schema_changed', {
      ...JOB,
      state: 'finished',
      ...TIMES,
      ...PUBLISHED,
      error: '`price` has a new type: text in 120 records, usually number',
      findings: [
        {
          expectation: 'type',
          field: 'price',
          found: 'text',
          limit: 'number',
          count: 120,
          examples: [],
          drift: true,
        },
      ],
      truncated: false,
    }),
  },
  {
    key: 'workflow_expectation_failed',
    noun: 'Job',
    label: 'Expectation Failed',
    description: 'Triggers when a job has published records that do not meet an expectation of the workflow.',
    sample: ofJob('workflow_expectation_failed', {
      ...JOB,
      state: 'finished',
      ...TIMES,
      ...PUBLISHED,
      error:
        '`price` is filled in 50 % of the records, less than `expect.fields.price.filled` (98%); it is empty in 7',
      findings: [
        {
          expectation: 'filled',
          field: 'price',
          found: 50,
          limit: 98,
          count: 60,
          examples: ['7'],
          drift: false,
        },
      ],
      truncated: false,
    }),
  },
  {
    key: 'workflow_failed',
    noun: 'Job',
    label: 'Job Failed',
    description: 'Triggers when a job has failed and will not be retried.',
    sample: ofJob('workflow_failed', {
      ...JOB,
      state: 'failed',
      ...TIMES,
      reason: 'error',
      error: 'The command ended with exit code 7',
      attempt: 3,
    }),
  },
  {
    key: 'workflow_canceled',
    noun: 'Job',
    label: 'Job Canceled',
    description: 'Triggers when a job was canceled, before it started or while it ran.',
    sample: ofJob('workflow_canceled', {
      ...JOB,
      state: 'canceled',
      ...TIMES,
      error: 'Canceled over the API',
      attempt: 1,
    }),
  },
  {
    key: 'workflow_queued',
    noun: 'Job',
    label: 'Job Queued',
    description: 'Triggers when a job was queued for a workflow.',
    sample: ofJob('workflow_queued', { ...JOB, state: 'queued', queuedAt: QUEUED_AT }),
  },
  {
    key: 'workflow_started',
    noun: 'Job',
    label: 'Job Started',
    description: 'Triggers when the first attempt of a job has started.',
    sample: ofJob('workflow_started', {
      ...JOB,
      state: 'running',
      queuedAt: QUEUED_AT,
      startedAt: STARTED_AT,
    }),
  },
  {
    key: 'workflow_stale',
    noun: 'Workflow',
    label: 'Workflow Stale',
    description:
      'Triggers when no run of a workflow has succeeded for the time that its definition sets as fresh.',
    sample: withoutJob('workflow_stale', {
      workflowId: JOB.workflowId,
      reason: 'No run has succeeded for 1 day 2 h',
      freshMs: 93600000,
      waitingSince: '2025-12-31T04:00:00.000Z',
      dueAt: QUEUED_AT,
      version: 17,
      lastJob: {
        id: JOB.jobId,
        state: 'failed',
        finishedAt: '2025-12-31T18:00:00.000Z',
        error: 'The command ended with exit code 7',
      },
    }),
  },
  {
    key: 'workflow_recovered',
    noun: 'Workflow',
    label: 'Workflow Recovered',
    description: 'Triggers when a job of a stale workflow has finished.',
    sample: ofJob('workflow_recovered', {
      ...JOB,
      state: 'finished',
      ...TIMES,
      ...PUBLISHED,
      staleSince: '2025-12-31T18:30:00.000Z',
    }),
  },
  {
    key: 'webhook_paused',
    noun: 'Webhook',
    label: 'Webhook Paused',
    description:
      'Triggers when another webhook is paused because deliveries to it have failed for a long time.',
    sample: withoutJob('webhook_paused', {
      webhookId: WEBHOOK_ID,
      url: 'https://example.com/hook',
      pausedAt: FINISHED_AT,
      reason: 'No delivery has succeeded for 5 days',
    }),
  },
  {
    key: 'webhook_failing',
    noun: 'Webhook',
    label: 'Webhook Failing',
    description: 'Triggers when deliveries to another webhook begin to fail and are held back.',
    sample: withoutJob('webhook_failing', {
      webhookId: WEBHOOK_ID,
      name: 'Orders to the warehouse',
      url: 'https://example.com/hook',
      since: QUEUED_AT,
      failures: 10,
      lastError: 'HTTP 503: only 2xx counts as delivered',
      retriesAt: FINISHED_AT,
    }),
  },
  {
    key: 'webhook_digest',
    noun: 'Digest',
    label: 'Webhook Digest',
    description: 'Triggers when the digest of the webhook of this Zap ends.',
    sample: withoutJob('webhook_digest', {
      webhookId: WEBHOOK_ID,
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
          jobId: JOB.jobId,
          summary: 'The command ended with exit code 7',
        },
      ],
      more: 0,
    }),
  },
  {
    key: 'webhook_test',
    noun: 'Test',
    label: 'Webhook Tested',
    description: 'Triggers when somebody tests the webhook of this Zap in Flowhook.',
    sample: withoutJob('webhook_test', {
      webhookId: WEBHOOK_ID,
      message: 'This is a test: nothing has happened',
    }),
  },
];

/**
 * @param {string} type
 * @param {Record<string, any>} data
 */
function ofJob(type, data) {
  return {
    ...head(type, data.finishedAt ?? STARTED_AT),
    jobId: JOB.jobId,
    ...(data.finishedAt === undefined ? {} : { finishedAt: data.finishedAt }),
    data,
  };
}

/**
 * @param {string} type
 * @param {Record<string, any>} data
 */
function withoutJob(type, data) {
  return { ...head(type, STARTED_AT), data };
}

/**
 * @param {string} type
 * @param {string} timestamp
 */
function head(type, timestamp) {
  return {
    id: 'evt_01kadz8v3s7v0s8e1c3q5m2n4p',
    teamId: 'team_01kadz8v3s7v0s8e1c3q5m2n4p',
    type,
    eventType: type,
    timestamp,
    sequence: 42,
    workflowId: JOB.workflowId,
  };
}
