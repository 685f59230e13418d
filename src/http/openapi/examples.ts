/**
 * The examples in the OpenAPI document, one for every parameter, request and response: a team with a workflow `people`,
 * one job, and its webhooks.
 */

import { replayResource } from '../../resources/delivery.ts';
import { ENDED, FEED_TOKEN, IDS, MAIL_TOKEN, QUEUED, RECEIVER, STARTED } from '../../resources/examples.ts';
import { jobResource, logLineResource } from '../../resources/job.ts';
import { keyResource } from '../../resources/key.ts';
import { quarantinedResource } from '../../resources/quarantine.ts';
import { retryPlanResource } from '../../resources/retry.ts';
import { changeResource, recordResource } from '../../resources/workflow.ts';
import type { JsonSchema } from '../../std/shape.ts';
import { makeCursor } from '../input/list-page.ts';
import { schemas } from './schemas.ts';

/** Looks for an example of the operation, then of the schema, then by name, then by type. */
export function exampleOf(operationId: string, schema: JsonSchema, name: string): unknown {
  const own = OWN_EXAMPLES[`${operationId}.${name}`];
  if (own !== undefined) return own;
  if (schema.$ref !== undefined)
    return exampleOf(operationId, schemas[schema.$ref.split('/').at(-1) ?? ''] ?? {}, name);
  if (schema.examples !== undefined) return schema.examples[0];
  if (schema.const !== undefined) return schema.const;
  if (schema.enum !== undefined) return schema.enum[0];
  if (schema.oneOf?.[0] !== undefined) return exampleOf(operationId, schema.oneOf[0], name);
  const types = [schema.type ?? []].flat();
  const named = NAMED_EXAMPLES[name];
  if (named !== undefined && types.includes(typeOf(named))) return named;
  switch (types[0]) {
    case 'object':
      return Object.fromEntries(
        Object.entries(schema.properties ?? {}).map(([key, one]) => [key, exampleOf(operationId, one, key)]),
      );
    case 'array':
      return schema.items === undefined ? [] : [exampleOf(operationId, schema.items, name)];
    case 'string':
      return schema.format === 'date-time' ? '2026-11-21T02:00:00.000Z' : '…';
    case 'integer':
    case 'number':
      return schema.default ?? Math.max(schema.minimum ?? 1, 1);
    case 'boolean':
      return schema.default ?? false;
    default:
      return null;
  }
}

function typeOf(value: unknown): string {
  if (Array.isArray(value)) return 'array';
  return Number.isInteger(value) ? 'integer' : typeof value;
}

const { example: job } = jobResource;
const { example: key } = keyResource;
const record = recordResource.example;
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

/** Examples by the name of a parameter or field. Examples of requests must be valid for a service with this data. */
const NAMED_EXAMPLES: Readonly<Record<string, unknown>> = {
  workflowId: 'people',
  jobId: IDS.job,
  webhookId: IDS.webhook,
  eventId: IDS.event,
  deliveryId: IDS.delivery,
  replayId: IDS.replay,
  retryId: IDS.retry,
  keyId: IDS.key,
  teamId: IDS.team,
  inspectorId: IDS.inspector,
  address: IDS.inspector,
  feedId: IDS.feed,
  feedAddress: `${FEED_TOKEN}.atom`,
  mailToken: MAIL_TOKEN,
  title: 'Price cuts',
  window: '30d',
  eventType: 'workflow_finished',
  webhookUrl: RECEIVER,
  fields: 'name,email',
  q: 'lovelace',
  limit: 50,
  recentJobs: 20,
  recordId: '16',
  field: ['name'],
  until: ENDED,
  from: '2026-11-21T00:00:00Z',
  to: '2026-11-21T03:00:00Z',
  wait: 25,
  version: 17,
  'idempotency-key': '6f2d9c0e-4f0b-4c55-9d0e-1f6f0a3c2b71',
  'if-none-match': '"17.0-json-identity"',
  'if-match': '"4f1c"',
  'last-event-id': '41',
  secret: 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD',
  apiKey: 'fh_4Yx9…',
  message: 'Done',
  name: 'People',
  records: job.records,
};

const line = (value: unknown) => `${JSON.stringify(value)}\n`;
const secondRecord = { id: '18', name: 'Grace Hopper', email: 'grace@example.com' };

/**
 * Examples by operation and parameter or field. `request` and `answer` (the response) are whole bodies, by content
 * type.
 */
const OWN_EXAMPLES: Readonly<Record<string, unknown>> = {
  'readWorkflowData.since': 16,
  'readWorkflowData.cursor': makeCursor([17, 50]),
  'readWorkflowData.answer.application/x-ndjson': line(record) + line(secondRecord),
  'readWorkflowData.answer.text/csv': 'id,name,email\r\n17,Ada Lovelace,ada@example.com\r\n',
  'readWorkflowChanges.type': 'added,changed',
  'readWorkflowChanges.answer.text/csv':
    'type,id,version,field,value,previousValue\r\nchanged,17,17,name,Ada Lovelace,Ada Byron\r\n',
  'subscribeWebhook.answer.application/json': { message: `Webhook ${IDS.webhook} subscribed` },
  'unsubscribeWebhook.answer.application/json': { message: `Webhook ${IDS.webhook} unsubscribed` },
  'unsubscribeWebhookByPath.answer.application/json': { message: `Webhook ${IDS.webhook} unsubscribed` },
  'putWorkflow.message': 'Workflow changed',
  'deleteWorkflow.answer.application/json': { message: 'Workflow archived' },
  'pauseWorkflow.message': 'Workflow paused',
  'resumeWorkflow.message': 'Workflow resumed',
  'readWorkflowChanges.since': 16,
  'readWorkflowChanges.until': 17,
  'readWorkflowChanges.answer.application/x-ndjson': line(changeResource.example),
  'pushWorkflowRecords.request.application/x-ndjson': line(record) + line(secondRecord),
  'pushWorkflowRecords.request.text/csv': 'id,name,email\r\n17,Ada Lovelace,ada@example.com\r\n',
  'pushWorkflowRecords.message': 'Records published',
  'listQuarantine.cursor': makeCursor([3, 4]),
  'listQuarantine.field': 'price',
  'listQuarantine.answer.application/x-ndjson': line(quarantinedResource.example),
  'listQuarantine.answer.text/csv': `id,_job,_setAsideAt,_reasons,name,price\r\n17,${IDS.job},${ENDED},\`price\` is less than 0: -3,Ada Lovelace,-3\r\n`,
  'acceptQuarantine.request.application/json': { ids: ['17'] },
  'acceptQuarantine.message': 'Records accepted',
  'acceptQuarantine.conflicts': [],
  'dropQuarantine.request.application/json': { all: true, jobId: IDS.job, field: 'price' },
  'dropQuarantine.message': 'Records dropped',
  'dropQuarantine.conflicts': [],
  'erasePerson.request.application/json': { email: 'ada@example.com', dryRun: true },
  'erasePerson.answer.application/json': {
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
  'listWebhookDetails.label': 'customer:acme',
  'listWebhookDetails.q': 'acme',
  'listWebhookDetails.sort': '-failingSince',
  'createWebhook.request.application/json': {
    webhookUrl: 'https://example.com/hooks/all',
    events: ['workflow_failed', 'webhook_paused'],
    workflowId: 'people',
    name: 'Alarms',
    settings: { timeoutMs: 5_000, headers: { 'x-receiver': 'alarms' } },
  },
  'updateWebhook.request.application/json': { ordered: true, ratePerSecond: 10 },
  'updateWebhook.message': 'Webhook updated',
  'tryWebhook.request.application/json': {
    filter: 'fallsBy(previous.price, record.price, "5%")',
    cooldown: '6h',
    workflowId: 'people',
    last: 20,
  },
  'listWebhookDecisions.state': 'filtered',
  'rotateWebhookSecret.message': 'New secret created. Configure the receiver with it',
  'rotateWebhookSecret.overlapUntil': '2026-11-22T02:00:00.000Z',
  'testWebhook.message': 'The test event is being sent',
  'pauseWebhook.reason': 'The receiver is being moved',
  'pauseWebhook.message': 'Webhook paused',
  'verifyWebhook.message': 'A mail with a link to confirm was sent to ops@example.org.',
  'resumeWebhook.message': 'Webhook resumed',
  'listWebhookDeliveries.state': 'dead,waiting',
  'listDeliveries.state': 'dead,waiting',
  'listDeliveries.event': 'workflow_data_change,workflow_failed',
  'listDeliveries.q': 'acme',
  'search.q': 'acme',
  'search.types': 'webhooks,records',
  'replayWebhookDeliveries.request.application/json': { since: QUEUED },
  'replayWebhookDeliveries.answer.application/json': {
    message: `Replay ${IDS.replay} started. GET /v1/integrations/webhooks/${IDS.webhook}/replays/${IDS.replay} returns its progress`,
    replay: replayResource.example,
  },
  'retryDeliveries.request.application/json': { status: '5xx', dryRun: true },
  'retryDeliveries.answer.application/json': {
    message: 'The retry would send 12 events to 1 webhook: 10 waiting, 2 dead',
    plan: retryPlanResource.example,
  },
  'replayDelivery.message': 'The event is being sent again',
  'updateFeed.request.application/json': { title: 'Price cuts', limit: 100 },
  'updateFeed.message': 'Feed updated',
  'rotateFeed.message': 'Feed rotated. The previous addresses return 410',
  'revokeFeed.answer.application/json': { message: 'Feed revoked. Its addresses return 410' },
  'readFeedDocument.answer.application/atom+xml':
    '<?xml version="1.0" encoding="utf-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom">…</feed>\n',
  'readFeedDocument.answer.application/feed+json': {
    version: 'https://jsonfeed.org/version/1.1',
    title: 'Price cuts',
    items: [],
  },
  'readFeedDocument.answer.text/html': '<!doctype html>…',
  'deleteInspector.answer.application/json': { message: 'Inspector deleted' },
  'listInspectedRequests.after': 12,
  'listEvents.after': '41',
  'listEvents.next': 42,
  // The example has no types, because linters mistake every object with `type` and `example` for a schema.
  'listEventTypes.answer.application/json': { types: [] },
  'listEventHistory.type': 'workflow_failed',
  'listEventDecisions.state': 'sent,filtered',
  'openStream.answer.text/event-stream': `event: invalidate\nid: 42\ndata: {"kind":"jobs","ids":["${IDS.job}"]}\n\n`,
  'listJobs.state': 'failed,canceled',
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
  'readJobLogs.answer.application/x-ndjson': line(logLineResource.example),
  'readJobLogs.answer.text/plain': `${STARTED} info Reading page 1\n`,
  'readJobLogs.answer.text/event-stream': `event: line\nid: 1.1\ndata: ${JSON.stringify({ attempt: 1, ...logLineResource.example })}\n\n`,
  'cancelJob.answer.application/json': {
    message: 'Job canceled',
    job: { ...job, state: 'canceled', version: null, records: null, error: 'Canceled over the API' },
  },
  'rerunJob.answer.application/json': { message: 'Job queued', job: waiting },
  'runJobNow.answer.application/json': { message: 'The job is due now', job: waiting },
  'readMe.answer.application/json': {
    team: { id: IDS.team, slug: 'default' },
    key: {
      id: IDS.key,
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
  'createKey.request.application/json': {
    name: 'reports',
    scopes: ['read'],
    expiresAt: '2036-01-01T00:00:00Z',
  },
  'createKey.message': 'Key created. The key is shown only once',
  'rotateKey.overlapSeconds': 3_600,
  'rotateKey.message': 'Key rotated. Both keys work for now',
  'revokeKey.answer.application/json': {
    message: 'Key revoked',
    key: { ...key, revokedAt: ENDED },
  },
  'readOpenApi.answer.application/json': { openapi: '3.1.0', paths: {} },
  'readOpenApiYaml.answer.application/yaml': { openapi: '3.1.0', paths: {} },
  'readVerification.answer.text/html': '<!doctype html>…',
  'readVerification.message':
    'Flowhook is asked to send notices to ops@example.org. Confirm this if you want to receive them.',
  'confirmAddress.answer.text/html': '<!doctype html>…',
  'confirmAddress.message':
    'Flowhook sends notices to ops@example.org. Each of them has a link to unsubscribe.',
  'readUnsubscription.answer.text/html': '<!doctype html>…',
  'readUnsubscription.message':
    'Flowhook sends these notices to ops@example.org. Do you want no more of them?',
  'endMails.answer.text/html': '<!doctype html>…',
  'endMails.message':
    'Flowhook sends no more of these notices to ops@example.org. To receive them again, ask the person who set them up to verify the address.',
  'readReference.answer.text/html': '<!doctype html>…',
};
