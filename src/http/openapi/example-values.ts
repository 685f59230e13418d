/** The examples in the OpenAPI document: a team with a workflow `people`, one run of it, and its webhooks. */
import { EVENT_CATALOGUE } from '../../model/event-catalogue.ts';
import { makeCursor, makeIdCursor } from '../cursor.ts';
import { eventSchemaName } from './describe-events.ts';

const ID = '01kadz8v3s7v0s8e1c3q5m2n4p';
const JOB = `job_${ID}`;
const WEBHOOK = `wh_${ID}`;
const EVENT = `evt_${ID}`;
const DELIVERY = `dlv_${ID}`;
const KEY = `key_${ID}`;

const QUEUED = '2026-11-21T02:00:00.000Z';
const STARTED = '2026-11-21T02:00:00.120Z';
const ENDED = '2026-11-21T02:00:03.120Z';

const record = { id: '17', name: 'Ada Lovelace', email: 'ada@example.com' };
const counts = { total: 120, added: 1, changed: 1, removed: 0 };
const job = {
  id: JOB,
  workflowId: 'people',
  state: 'finished',
  origin: 'api',
  priority: 0,
  attempt: 1,
  nextAttemptAt: null,
  cancelRequestedAt: null,
  reason: null,
  error: null,
  progress: { records: 120, bytes: 14_210, pages: 2, message: null },
  version: 17,
  records: counts,
  queuedAt: QUEUED,
  startedAt: STARTED,
  finishedAt: ENDED,
};
const delivery = {
  id: DELIVERY,
  webhookId: WEBHOOK,
  eventId: EVENT,
  eventType: 'workflow_finished',
  origin: 'event',
  state: 'delivered',
  attempt: 1,
  createdAt: ENDED,
  nextAttemptAt: null,
  lastAttempt: { at: ENDED, outcome: 'ok', status: 200, message: 'Received' },
};
const events = EVENT_CATALOGUE.map(({ type, example }) => [eventSchemaName(type), example] as const);
const finished = EVENT_CATALOGUE.find(({ type }) => type === 'workflow_finished')?.example;
const waiting = {
  ...job,
  state: 'queued',
  attempt: 0,
  progress: null,
  version: null,
  records: null,
  startedAt: null,
  finishedAt: null,
};
const signingKeys = {
  keys: [
    {
      id: `sk_${ID}`,
      type: 'ed25519',
      key: 'whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=',
      createdAt: QUEUED,
    },
  ],
};
const settings = { ordered: false, ratePerSecond: null, timeoutMs: 15_000, headers: [] };

/** By schema, for those without `examples` of their own. */
export const SCHEMA_EXAMPLES: Readonly<Record<string, unknown>> = {
  ...Object.fromEntries(events),
  Event: finished,
  Job: job,
  Workflow: {
    id: 'people',
    name: 'People',
    source: { type: 'http' },
    mode: 'replace',
    schedule: { cron: '0 6 * * 1-5', timezone: 'Europe/Berlin', missed: 'run' },
    nextRunAt: '2026-11-23T05:00:00.000Z',
    paused: false,
    pausedAt: null,
    version: 17,
    records: 120,
    currentJob: null,
    lastJob: job,
  },
  Version: { number: 17, jobId: JOB, publishedAt: ENDED, records: counts },
  Change: {
    type: 'changed',
    id: '17',
    version: 17,
    fields: [{ key: 'name', value: 'Ada Lovelace', previousValue: 'Ada Byron' }],
  },
  Key: {
    id: KEY,
    name: 'reports',
    prefix: 'fh_4Yx9',
    scopes: ['read', 'queue', 'webhooks'],
    createdAt: QUEUED,
    expiresAt: null,
    revokedAt: null,
    lastUsedAt: ENDED,
    concern: null,
  },
  AuditLine: {
    id: `aud_${ID}`,
    createdAt: ENDED,
    team: 'default',
    action: 'webhooks.subscribe',
    actor: { kind: 'key', id: KEY, name: 'reports' },
    target: { kind: 'webhook', id: WEBHOOK },
    address: '192.0.2.7',
    requestId: '6f1c1b7e-6a53-4a3c-9c2e-0e6c6a0f7a11',
    summary: 'to 2 events of workflow people',
    details: {},
  },
  LogLine: { seq: 1, time: STARTED, level: 'info', text: 'Reading page 1' },
  WebhookDetail: {
    id: WEBHOOK,
    workflowId: 'people',
    createdAt: QUEUED,
    url: 'https://example.com/hooks/people',
    events: ['workflow_finished', 'workflow_data_change'],
    state: 'active',
    settings,
    pausedAt: null,
    pausedReason: null,
    failingSince: null,
    breaker: { state: 'closed', since: null, nextAttemptAt: null, reason: null },
    lastSuccessAt: ENDED,
  },
  Delivery: delivery,
  DeliveryDetail: {
    ...delivery,
    event: finished,
    attempts: [
      {
        number: 1,
        startedAt: ENDED,
        durationMs: 38,
        outcome: 'ok',
        status: 200,
        message: 'Received',
        request: { url: 'https://example.com/hooks/people', headers: { 'webhook-id': EVENT } },
        response: { headers: { 'content-type': 'text/plain' }, body: 'thanks' },
        remoteAddress: '192.0.2.1',
        timing: { queuedMs: 1, dnsMs: 4, connectMs: 9, tlsMs: 21, firstByteMs: 37 },
      },
    ],
  },
  Replay: {
    id: `rpl_${ID}`,
    webhookId: WEBHOOK,
    state: 'running',
    states: ['waiting', 'dead'],
    since: QUEUED,
    until: ENDED,
    made: 12,
    outcome: {
      arrived: 9,
      underWay: 1,
      failed: 2,
      canceled: 0,
      superseded: 0,
      failures: [{ status: null, message: 'No answer within 15 s', count: 2, retried: 2 }],
      isComplete: true,
    },
    createdAt: ENDED,
  },
  ReplayPlan: {
    since: QUEUED,
    until: ENDED,
    states: ['waiting', 'dead'],
    count: 12,
    byState: { waiting: 10, delivered: 31, dead: 2, canceled: 0 },
    isComplete: true,
  },
};

/** By the name of a parameter or field. Those in requests must be valid for a service that has such data. */
export const NAMED_EXAMPLES: Readonly<Record<string, unknown>> = {
  workflowId: 'people',
  jobId: JOB,
  webhookId: WEBHOOK,
  eventId: EVENT,
  deliveryId: DELIVERY,
  replayId: `rpl_${ID}`,
  keyId: KEY,
  teamId: `team_${ID}`,
  inspectorId: 'insp_5f0c3b7d9a1e4c2f8b6d7a9e0c1f2b3d',
  address: 'insp_5f0c3b7d9a1e4c2f8b6d7a9e0c1f2b3d',
  eventType: 'workflow_finished',
  webhookUrl: 'https://example.com/hooks/people',
  url: 'https://example.com/hooks/people',
  email: 'ada@example.com',
  fields: 'name,email',
  q: 'lovelace',
  limit: 50,
  recentJobs: 20,
  since: QUEUED,
  until: ENDED,
  from: '2026-11-21T00:00:00Z',
  to: '2026-11-21T03:00:00Z',
  wait: 25,
  attempt: 1,
  version: 17,
  number: 17,
  'idempotency-key': '6f2d9c0e-4f0b-4c55-9d0e-1f6f0a3c2b71',
  'if-none-match': '"17.0-json-identity"',
  'if-match': '"4f1c"',
  'last-event-id': '41',
  secret: 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD',
  apiKey: 'fh_4Yx9…',
  message: 'Done',
  name: 'People',
  slug: 'default',
  prefix: 'fh_4Yx9',
  countedUntil: ENDED,
  records: counts,
};

const line = (value: unknown) => `${JSON.stringify(value)}\n`;
const secondRecord = { id: '18', name: 'Grace Hopper', email: 'grace@example.com' };
const change = SCHEMA_EXAMPLES.Change;
const logLine = SCHEMA_EXAMPLES.LogLine;
const key = SCHEMA_EXAMPLES.Key;

/** By operation: a parameter or field, or a whole `request` or `answer` by content type. */
export const OWN_EXAMPLES: Readonly<Record<string, unknown>> = {
  'readWorkflowData.since': 16,
  'readWorkflowData.cursor': makeCursor([17, 50]),
  'readWorkflowData.answer.application/x-ndjson': line(record) + line(secondRecord),
  'readWorkflowData.answer.text/csv': 'id,name,email\r\n17,Ada Lovelace,ada@example.com\r\n',
  'subscribeWebhook.answer.application/json': { message: `Webhook ${WEBHOOK} subscribed` },
  'unsubscribeWebhook.answer.application/json': { message: `Webhook ${WEBHOOK} unsubscribed` },
  'unsubscribeWebhookByPath.answer.application/json': { message: `Webhook ${WEBHOOK} unsubscribed` },
  'listWorkflows.cursor': makeIdCursor('people'),
  'putWorkflow.message': 'Workflow changed',
  'deleteWorkflow.answer.application/json': { message: 'Workflow archived' },
  'pauseWorkflow.message': 'Workflow paused',
  'resumeWorkflow.message': 'Workflow resumed',
  'readWorkflowChanges.since': 16,
  'readWorkflowChanges.until': 17,
  'readWorkflowChanges.answer.application/x-ndjson': line(change),
  'listWorkflowVersions.cursor': makeCursor([17]),
  'pushWorkflowRecords.request.application/x-ndjson': line(record) + line(secondRecord),
  'pushWorkflowRecords.request.text/csv': 'id,name,email\r\n17,Ada Lovelace,ada@example.com\r\n',
  'pushWorkflowRecords.message': 'Records published',
  'eraseFromWorkflow.request.application/json': { email: 'ada@example.com', dryRun: true },
  'eraseFromWorkflow.answer.application/json': {
    dryRun: true,
    found: [
      { workflowId: 'people', place: 'record', count: 1 },
      { workflowId: 'people', place: 'event', count: 2 },
    ],
    left: [],
    suppressed: false,
    disk: null,
    backups: 0,
  },
  'listWebhookDetails.state': 'failing,paused',
  'listWebhookDetails.cursor': makeIdCursor(WEBHOOK),
  'createTeamWebhook.request.application/json': {
    webhookUrl: 'https://example.com/hooks/all',
    events: ['workflow_failed', 'webhook_paused'],
    settings: { timeoutMs: 5_000, headers: { 'x-receiver': 'alarms' } },
  },
  'updateWebhook.request.application/json': { ordered: true, ratePerSecond: 10 },
  'updateWebhook.message': 'Webhook changed',
  'rotateWebhookSecret.message': 'New secret: give it to the receiver',
  'rotateWebhookSecret.overlapUntil': '2026-11-22T02:00:00.000Z',
  'testWebhook.message': 'The test is on its way',
  'pauseWebhook.reason': 'The receiver is being moved',
  'pauseWebhook.message': 'Webhook paused',
  'resumeWebhook.message': 'Webhook resumed',
  'listWebhookDeliveries.state': 'dead,waiting',
  'listWebhookDeliveries.cursor': makeIdCursor(DELIVERY),
  'replayWebhookDeliveries.request.application/json': { since: QUEUED },
  'replayWebhookDeliveries.answer.application/json': {
    message: `Replay rpl_${ID} has begun; GET /v1/integrations/webhooks/${WEBHOOK}/replays/rpl_${ID} says how far it is and what arrived`,
    replay: SCHEMA_EXAMPLES.Replay,
  },
  'replayDelivery.message': 'The event is on its way once more',
  'deleteInspector.answer.application/json': { message: 'Inspector removed' },
  'listInspectedRequests.after': 12,
  'listInspectedRequests.cursor': makeCursor([50]),
  'listEvents.after': '41',
  'listEvents.next': 42,
  // Linters take an object with `type` and `example` for a schema, wherever it stands.
  'listEventTypes.answer.application/json': { types: [] },
  'listEventHistory.type': 'workflow_failed',
  'listEventHistory.cursor': makeIdCursor(EVENT),
  'listEventDeliveries.cursor': makeIdCursor(DELIVERY),
  'openStream.answer.text/event-stream': `event: invalidate\nid: 42\ndata: {"kind":"jobs","ids":["${JOB}"]}\n\n`,
  'listJobs.state': 'failed,canceled',
  'listJobs.cursor': makeIdCursor(JOB),
  'countJobs.answer.application/json': {
    queued: 2,
    running: 1,
    retrying: 0,
    finished: 1_204,
    failed: 12,
    canceled: 3,
    complete: true,
  },
  'readJobLogs.after': 12,
  'readJobLogs.next': 13,
  'readJobLogs.answer.application/x-ndjson': line(logLine),
  'readJobLogs.answer.text/plain': `${STARTED} info Reading page 1\n`,
  'readJobLogs.answer.text/event-stream': `event: line\nid: 1.1\ndata: ${JSON.stringify({ attempt: 1, ...(logLine as object) })}\n\n`,
  'cancelJob.answer.application/json': {
    message: 'Job canceled',
    job: { ...job, state: 'canceled', version: null, records: null, error: 'Canceled over the API' },
  },
  'rerunJob.answer.application/json': { message: 'Job queued', job: waiting },
  'runJobNow.answer.application/json': { message: 'The job is due now', job: waiting },
  'readMe.answer.application/json': {
    team: { id: `team_${ID}`, slug: 'default' },
    key: {
      id: KEY,
      name: 'reports',
      prefix: 'fh_4Yx9',
      scopes: ['read', 'queue', 'webhooks'],
      expiresAt: null,
    },
    limits: {
      defaultPageSize: 100,
      maxPageSize: 1_000,
      maxBodyBytes: 65_536,
      maxWebhooksPerWorkflow: 1_000,
      maxWorkflows: 100,
      maxWebhooks: null,
      maxKeys: 1_000,
      maxRecords: 5_000_000,
      maxStoredBytes: 10_000_000_000,
      maxRunningJobs: 4,
    },
  },
  'listAudit.cursor': makeIdCursor(`aud_${ID}`),
  'listKeys.cursor': makeIdCursor(KEY),
  'createKey.request.application/json': {
    name: 'reports',
    scopes: ['read'],
    expiresAt: '2036-01-01T00:00:00Z',
  },
  'createKey.answer.application/json': {
    message: 'Key made. It is shown this once',
    apiKey: 'fh_4Yx9…',
    key,
  },
  'rotateKey.overlapSeconds': 3_600,
  'rotateKey.answer.application/json': { message: 'Key rotated: both work for now', apiKey: 'fh_4Yx9…', key },
  'revokeKey.answer.application/json': {
    message: 'Key revoked',
    key: { ...(key as object), revokedAt: ENDED },
  },
  'readSigningKeys.answer.application/json': signingKeys,
  'readDefaultSigningKeys.answer.application/json': signingKeys,
  'readOpenApi.answer.application/json': { openapi: '3.1.0', paths: {} },
  'readOpenApiYaml.answer.application/yaml': { openapi: '3.1.0', paths: {} },
  'readReference.answer.text/html': '<!doctype html>…',
  ...Object.fromEntries(
    ['Get', 'Post', 'Put', 'Patch', 'Delete', 'Options'].map((method) => [
      `inspect${method}.answer.text/plain`,
      '',
    ]),
  ),
};
