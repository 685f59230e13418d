/** Names and attributes of the spans, by OpenTelemetry's semantic conventions where these have a name. */
import { type Attributes, SpanKind } from '@opentelemetry/api';
import type { DeliveryAttemptDone, JobAttemptDone, RequestDone } from './observer.ts';
import { redactText } from './redact.ts';

export interface SpanText {
  /** Of low cardinality: contains no ids and no actual paths. */
  name: string;
  kind: SpanKind;
  attributes: Attributes;
  isError: boolean;
}

/** Paths, queries and client addresses are left out although the conventions ask for them: they may identify people. */
export function requestSpan(done: RequestDone): SpanText {
  const { method, route, status, aborted } = done;
  const isError = status >= 500 && !aborted;
  return {
    name: route === null ? method : `${method} ${route}`,
    kind: SpanKind.SERVER,
    attributes: present({
      'http.request.method': method,
      'http.route': route,
      'http.response.status_code': status,
      'error.type': isError ? (done.errorCode ?? String(status)) : null,
      'flowhook.request.id': done.requestId,
      'flowhook.request.aborted': aborted || null,
      'flowhook.error.code': done.errorCode,
      'flowhook.team.id': done.teamId,
      'flowhook.key.id': done.keyId,
    }),
    isError,
  };
}

/** Only the reason of a failure, not its sentence, which may quote output of the source. */
export function jobSpan(done: JobAttemptDone): SpanText {
  const { outcome, read, published } = done;
  const isError = outcome === 'failed' || outcome === 'retrying';
  return {
    name: 'process job',
    // A push does not wait in the queue: it is a part of its request.
    kind: done.origin === 'push' ? SpanKind.INTERNAL : SpanKind.CONSUMER,
    attributes: present({
      'messaging.system': 'flowhook',
      'messaging.operation.name': 'process',
      'messaging.operation.type': 'process',
      'messaging.destination.name': 'jobs',
      'messaging.message.id': done.jobId,
      'error.type': isError ? (done.reason ?? outcome) : null,
      'flowhook.team.id': done.teamId,
      'flowhook.workflow.id': redactText(done.workflowId),
      'flowhook.job.id': done.jobId,
      'flowhook.job.attempt': done.attempt,
      'flowhook.job.origin': done.origin,
      'flowhook.job.source': done.sourceType,
      'flowhook.job.outcome': outcome,
      'flowhook.job.waited_ms': Math.round(done.waitedMs),
      'flowhook.records.read': read?.emitted ?? null,
      'flowhook.records.total': published?.records.total ?? null,
      'flowhook.records.added': published?.records.added ?? null,
      'flowhook.records.changed': published?.records.changed ?? null,
      'flowhook.records.removed': published?.records.removed ?? null,
      'flowhook.version': published?.version ?? null,
    }),
    isError,
  };
}

export function deliverySpan(done: DeliveryAttemptDone): SpanText {
  const { status, outcome, attempt } = done;
  const isError = outcome !== 'ok';
  const { hostname, port, protocol } = new URL(done.server);
  return {
    name: `POST ${done.eventType}`,
    kind: SpanKind.CLIENT,
    attributes: present({
      'http.request.method': 'POST',
      'http.request.resend_count': attempt > 1 ? attempt - 1 : null,
      'http.response.status_code': status,
      'server.address': hostname.replace(/^\[|\]$/g, ''),
      'server.port': port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port),
      'url.scheme': protocol.slice(0, -1),
      'error.type': isError ? (outcome === 'http' ? String(status) : outcome) : null,
      'flowhook.team.id': done.teamId,
      'flowhook.webhook.id': done.webhookId,
      'flowhook.event.id': done.eventId,
      'flowhook.event.type': done.eventType,
      'flowhook.delivery.id': done.deliveryId,
      'flowhook.delivery.attempt': attempt,
      'flowhook.delivery.next': done.next,
      'flowhook.delivery.waited_ms': Math.round(done.waitedMs),
    }),
    isError,
  };
}

function present(attributes: Record<string, string | number | boolean | null>): Attributes {
  const kept: Attributes = {};
  for (const name in attributes) {
    const value = attributes[name];
    if (value !== null && value !== undefined) kept[name] = value;
  }
  return kept;
}
