/**
 * Every route: method, path, the scope that its key needs (a list: one of these; `any`: any key; null: no
 * key), and its operation.
 */
import { type Route, route } from './route.ts';
import { listDeliveries, readRetry, retryDeliveries } from './routes/all-deliveries.ts';
import { listRecordHistory, listWorkflowVersions, readWorkflowChanges } from './routes/changes.ts';
import { readData } from './routes/data.ts';
import { listEventDecisions, listWebhookDecisions } from './routes/decisions.ts';
import { deleteWorkflow, putWorkflow, readWorkflowDefinition } from './routes/definitions.ts';
import {
  listWebhookDeliveries,
  readDelivery,
  readDeliveryCommand,
  readReplay,
  replayDeliveries,
  replayDelivery,
} from './routes/deliveries.ts';
import {
  listEventDeliveries,
  listEventHistory,
  listEvents,
  listEventTypes,
  openStream,
  readEvent,
  readSample,
} from './routes/events.ts';
import { readFeedDocument } from './routes/feed-readers.ts';
import { createFeed, listFeeds, readFeed, revokeFeed, rotateFeed, updateFeed } from './routes/feeds.ts';
import {
  createInspector,
  deleteInspector,
  inspectBy,
  listInspectedRequests,
  listInspectors,
  readInspector,
  updateInspector,
} from './routes/inspectors.ts';
import { readJobLogs } from './routes/job-logs.ts';
import { cancelJob, countJobs, listJobs, queueJob, readJob, rerunJob, runJobNow } from './routes/jobs.ts';
import { createKey, listKeys, revokeKey, rotateKey } from './routes/keys.ts';
import {
  confirmAddress,
  endMails,
  readUnsubscription,
  readVerification,
  verifyWebhook,
} from './routes/mail.ts';
import { openApiOperations } from './routes/openapi.ts';
import { erasePerson, exportPersonalData } from './routes/persons.ts';
import { readWorkflowProfile } from './routes/profiles.ts';
import { pushRecords } from './routes/push.ts';
import { acceptQuarantine, dropQuarantine, listQuarantine, readQuarantined } from './routes/quarantine.ts';
import { search } from './routes/search.ts';
import {
  readDefaultSigningKeys,
  readSigningKeys,
  readWebhookSecret,
  rotateWebhookSecret,
} from './routes/secrets.ts';
import { deleteWorkflowState, putWorkflowState, readWorkflowState } from './routes/source-states.ts';
import {
  listWebhooks,
  subscribeWebhook,
  unsubscribeWebhook,
  unsubscribeWebhookByPath,
} from './routes/subscriptions.ts';
import { live, readMetrics, readSystem, readSystemChecks, ready } from './routes/system.ts';
import { listAudit, readMe, readUsage } from './routes/team.ts';
import { tryWebhook } from './routes/try-rule.ts';
import { listWebhookDetails } from './routes/webhook-list.ts';
import {
  createWebhook,
  pauseWebhook,
  readWebhook,
  resumeWebhook,
  testWebhook,
  updateWebhook,
} from './routes/webhooks.ts';
import { listWorkflows, pauseWorkflow, readWorkflow, resumeWorkflow } from './routes/workflows.ts';

const { readOpenApi, readOpenApiYaml, readReference } = openApiOperations(() => routes);

/** The methods that an inspector accepts, besides HEAD. */
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const;

/** Routes of every node, regardless of its role. */
export const routesOfNode: readonly Route[] = [
  route('GET', '/livez', null, live),
  route('GET', '/readyz', null, ready),
  route('GET', '/metrics', null, readMetrics),
];

// `{webhookId=wh_*}` matches only values that start with `wh_`; other paths return 404.
export const routes: readonly Route[] = [
  // The contract, which is frozen.
  route('GET', '/v1/workflows/{workflowId}/data', 'read', readData),
  route('POST', '/v1/workflows/{workflowId}/queue', 'queue', queueJob),
  route('GET', '/v1/integrations/webhooks/list', 'webhooks', listWebhooks),
  route('POST', '/v1/integrations/webhooks/subscribe', 'webhooks', subscribeWebhook),
  route('DELETE', '/v1/integrations/webhooks/unsubscribe', 'webhooks', unsubscribeWebhook),

  // Extensions.
  route('GET', '/v1/workflows', 'read', listWorkflows),
  route('GET', '/v1/workflows/{workflowId}', 'read', readWorkflow),
  route('PUT', '/v1/workflows/{workflowId}', 'admin', putWorkflow),
  route('DELETE', '/v1/workflows/{workflowId}', 'admin', deleteWorkflow),
  route('GET', '/v1/workflows/{workflowId}/definition', 'admin', readWorkflowDefinition),
  route('POST', '/v1/workflows/{workflowId}/pause', 'admin', pauseWorkflow),
  route('POST', '/v1/workflows/{workflowId}/resume', 'admin', resumeWorkflow),
  route('GET', '/v1/workflows/{workflowId}/state', 'admin', readWorkflowState),
  route('PUT', '/v1/workflows/{workflowId}/state', 'admin', putWorkflowState),
  route('DELETE', '/v1/workflows/{workflowId}/state', 'admin', deleteWorkflowState),
  route('GET', '/v1/workflows/{workflowId}/changes', 'read', readWorkflowChanges),
  route('GET', '/v1/workflows/{workflowId}/versions', 'read', listWorkflowVersions),
  route('GET', '/v1/workflows/{workflowId}/profile', 'read', readWorkflowProfile),
  route('GET', '/v1/workflows/{workflowId}/records/{recordId}/history', 'read', listRecordHistory),
  route('GET', '/v1/workflows/{workflowId}/feeds', 'webhooks', listFeeds),
  route('POST', '/v1/workflows/{workflowId}/feeds', 'webhooks', createFeed),
  route('GET', '/v1/workflows/{workflowId}/feeds/{feedId}', 'webhooks', readFeed),
  route('PATCH', '/v1/workflows/{workflowId}/feeds/{feedId}', 'webhooks', updateFeed),
  route('DELETE', '/v1/workflows/{workflowId}/feeds/{feedId}', 'webhooks', revokeFeed),
  route('POST', '/v1/workflows/{workflowId}/feeds/{feedId}/rotate', 'webhooks', rotateFeed),
  route('POST', '/v1/workflows/{workflowId}/push', 'queue', pushRecords),
  route('GET', '/v1/workflows/{workflowId}/quarantine', 'read', listQuarantine),
  route('GET', '/v1/workflows/{workflowId}/quarantine/{recordId}', 'read', readQuarantined),
  route('POST', '/v1/workflows/{workflowId}/quarantine/accept', 'queue', acceptQuarantine),
  route('POST', '/v1/workflows/{workflowId}/quarantine/drop', 'queue', dropQuarantine),
  route('POST', '/v1/workflows/{workflowId}/erase', 'admin', erasePerson),
  route('DELETE', '/v1/integrations/webhooks/unsubscribe/{webhookId}', 'webhooks', unsubscribeWebhookByPath),
  route('GET', '/v1/integrations/webhooks', ['read', 'webhooks'], listWebhookDetails),
  route('POST', '/v1/integrations/webhooks', 'webhooks', createWebhook),
  route('GET', '/v1/integrations/webhooks/{webhookId=wh_*}', ['read', 'webhooks'], readWebhook),
  route('PATCH', '/v1/integrations/webhooks/{webhookId=wh_*}', 'webhooks', updateWebhook),
  route('GET', '/v1/integrations/webhooks/{webhookId=wh_*}/secret', 'webhooks', readWebhookSecret),
  route('POST', '/v1/integrations/webhooks/{webhookId=wh_*}/rotate', 'webhooks', rotateWebhookSecret),
  route('POST', '/v1/integrations/webhooks/{webhookId=wh_*}/test', 'webhooks', testWebhook),
  route('POST', '/v1/integrations/webhooks/{webhookId=wh_*}/pause', 'webhooks', pauseWebhook),
  route('POST', '/v1/integrations/webhooks/{webhookId=wh_*}/resume', 'webhooks', resumeWebhook),
  route('POST', '/v1/integrations/webhooks/{webhookId=wh_*}/verify', 'webhooks', verifyWebhook),
  route('GET', '/v1/integrations/webhooks/{webhookId=wh_*}/deliveries', 'webhooks', listWebhookDeliveries),
  route('GET', '/v1/integrations/webhooks/{webhookId=wh_*}/decisions', 'webhooks', listWebhookDecisions),
  route('POST', '/v1/integrations/webhooks/{webhookId=wh_*}/replay', 'webhooks', replayDeliveries),
  route('GET', '/v1/integrations/webhooks/{webhookId=wh_*}/replays/{replayId}', 'webhooks', readReplay),
  route('POST', '/v1/webhooks/try', 'read', tryWebhook),
  route('GET', '/v1/deliveries', 'webhooks', listDeliveries),
  route('POST', '/v1/deliveries/retry', 'webhooks', retryDeliveries),
  route('GET', '/v1/retries/{retryId}', 'webhooks', readRetry),
  route('GET', '/v1/deliveries/{deliveryId}', 'webhooks', readDelivery),
  route('GET', '/v1/deliveries/{deliveryId}/curl', 'webhooks', readDeliveryCommand),
  route('POST', '/v1/deliveries/{deliveryId}/replay', 'webhooks', replayDelivery),
  route('POST', '/v1/inspectors', 'webhooks', createInspector),
  route('GET', '/v1/inspectors', 'webhooks', listInspectors),
  route('GET', '/v1/inspectors/{inspectorId}', 'webhooks', readInspector),
  route('PATCH', '/v1/inspectors/{inspectorId}', 'webhooks', updateInspector),
  route('DELETE', '/v1/inspectors/{inspectorId}', 'webhooks', deleteInspector),
  route('GET', '/v1/inspectors/{inspectorId}/requests', 'webhooks', listInspectedRequests),
  route('GET', '/v1/events', 'read', listEvents),
  route('GET', '/v1/events/history', 'read', listEventHistory),
  route('GET', '/v1/events/types', 'read', listEventTypes),
  route('GET', '/v1/samples/{eventType}', 'read', readSample),
  route('GET', '/v1/events/{eventId}', 'read', readEvent),
  route('GET', '/v1/events/{eventId}/deliveries', 'webhooks', listEventDeliveries),
  route('GET', '/v1/events/{eventId}/decisions', 'webhooks', listEventDecisions),
  route('GET', '/v1/stream', 'read', openStream),
  route('GET', '/v1/jobs', 'read', listJobs),
  route('GET', '/v1/jobs/counts', 'read', countJobs),
  route('GET', '/v1/jobs/{jobId}', 'read', readJob),
  route('GET', '/v1/jobs/{jobId}/logs', 'read', readJobLogs),
  route('POST', '/v1/jobs/{jobId}/cancel', 'queue', cancelJob),
  route('POST', '/v1/jobs/{jobId}/rerun', 'queue', rerunJob),
  route('POST', '/v1/jobs/{jobId}/run-now', 'queue', runJobNow),

  route('GET', '/v1/search', 'read', search),
  route('GET', '/v1/me', 'any', readMe),
  route('GET', '/v1/usage', 'read', readUsage),
  route('POST', '/v1/export', 'admin', exportPersonalData),
  route('GET', '/v1/system', 'operator', readSystem),
  route('GET', '/v1/system/checks', 'operator', readSystemChecks),
  route('GET', '/v1/audit', 'admin', listAudit),
  route('GET', '/v1/keys', 'admin', listKeys),
  route('POST', '/v1/keys', 'admin', createKey),
  route('POST', '/v1/keys/{keyId}/rotate', 'admin', rotateKey),
  route('DELETE', '/v1/keys/{keyId}', 'admin', revokeKey),

  // Without a key.
  route('GET', '/feeds/{feedAddress}', null, readFeedDocument),
  route('GET', '/mail/verify/{mailToken}', null, readVerification),
  route('POST', '/mail/verify/{mailToken}', null, confirmAddress),
  route('GET', '/mail/unsubscribe/{mailToken}', null, readUnsubscription),
  route('POST', '/mail/unsubscribe/{mailToken}', null, endMails),
  ...METHODS.map((method) => route(method, '/inspect/{address}', null, inspectBy(method))),
  route('GET', '/.well-known/webhook-signing-keys', null, readDefaultSigningKeys),
  route('GET', '/.well-known/webhook-signing-keys/{teamId}', null, readSigningKeys),
  route('GET', '/openapi.json', null, readOpenApi),
  route('GET', '/openapi.yaml', null, readOpenApiYaml),
  route('GET', '/docs', null, readReference),
  ...routesOfNode,
];
