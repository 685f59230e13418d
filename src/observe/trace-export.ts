/**
 * Exports traces with OpenTelemetry: samples, batches and sends spans. The export never delays work or makes work fail.
 */
import {
  type Attributes,
  ROOT_CONTEXT,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
} from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import {
  BatchSpanProcessor,
  RandomIdGenerator,
  type ReadableSpan,
  SamplingDecision,
  type SpanExporter,
  TraceIdRatioBasedSampler,
} from '@opentelemetry/sdk-trace';
import { within } from '../std/clock.ts';
import type { Logger } from './log.ts';
import {
  type DeliveryAttemptDone,
  type JobAttemptDone,
  type Observer,
  POLLED_ROUTES,
  type RequestDone,
} from './observer.ts';
import { redactText } from './redact.ts';
import {
  fromStored,
  fromTraceparent,
  NO_SPAN,
  type TraceContext,
  type Traced,
  toStored,
} from './trace-context.ts';
import type { Tracing, TracingSettings } from './tracing.ts';

/** Maximum number of spans per request. */
const BATCH = 512;
const STOP_MS = 2_000;

export class ExportedTraces implements Tracing {
  readonly spans = { sent: 0, dropped: 0 };
  readonly observer: Observer = {
    requestDone: (done) => {
      if (!POLLED_ROUTES.has(done.route)) this.#end(done, requestSpan);
    },
    jobAttemptDone: (done) => this.#end(done, jobSpan),
    deliveryAttemptDone: (done) => this.#end(done, deliverySpan),
  };
  readonly #settings: TracingSettings;
  readonly #log: Logger;
  readonly #ids = new RandomIdGenerator();
  readonly #sampler: TraceIdRatioBasedSampler;
  readonly #processor: BatchSpanProcessor;
  readonly #common: Pick<ReadableSpan, 'resource' | 'instrumentationScope'>;
  /** Number of spans that wait or are being sent. */
  #pending = 0;
  /** Whether a failure to send spans was already logged. */
  #isFailureLogged = false;
  #stopped: Promise<void> | undefined;

  constructor(settings: TracingSettings, log: Logger) {
    this.#settings = settings;
    this.#log = log;
    this.#sampler = new TraceIdRatioBasedSampler(settings.share);
    this.#common = {
      resource: resourceFromAttributes({ ...settings.resource }),
      instrumentationScope: { name: 'flowhook' },
    };
    this.#processor = new BatchSpanProcessor({
      exporter: this.#counted(
        new OTLPTraceExporter({
          url: settings.url,
          headers: { ...settings.headers },
          timeoutMillis: settings.timeoutMs,
          compression: settings.compression as never,
        }),
      ),
      scheduledDelayMillis: settings.delayMs,
      maxExportBatchSize: Math.min(BATCH, settings.maxSpans),
      maxQueueSize: settings.maxSpans,
    });
  }

  arrive(traceparent: string | undefined): Traced {
    const parent = fromTraceparent(traceparent);
    const traceId = parent?.traceId ?? this.#ids.generateTraceId();
    const isSampled =
      parent !== null && this.#settings.heedsParent ? parent.isSampled : this.#isSampled(traceId);
    return { trace: { traceId, spanId: this.#ids.generateSpanId(), isSampled }, parent };
  }

  under(stored: string | null): Traced {
    const parent = fromStored(stored);
    if (parent === null) return this.arrive(undefined);
    const trace = { ...parent, spanId: this.#ids.generateSpanId() };
    return { trace, parent: parent.spanId === NO_SPAN ? null : parent };
  }

  begin(): string {
    const traceId = this.#ids.generateTraceId();
    return toStored({ traceId, spanId: NO_SPAN, isSampled: this.#isSampled(traceId) });
  }

  stop(): Promise<void> {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  async #stop(): Promise<void> {
    // The error is ignored, because failures to send are counted and logged when they happen.
    const sent = this.#processor.shutdown().catch(() => {});
    await within(STOP_MS, sent, () => undefined);
    if (this.#pending > 0) this.#log.warn({ spans: this.#pending }, 'traces.dropped_at_stop');
  }

  #isSampled(traceId: string): boolean {
    const { decision } = this.#sampler.shouldSample(ROOT_CONTEXT, traceId);
    return decision === SamplingDecision.RECORD_AND_SAMPLED;
  }

  #end<Done extends Traced & { startedAt: number; durationMs: number }>(
    done: Done,
    describe: (done: Done) => SpanText,
  ): void {
    const { trace, parent, startedAt, durationMs } = done;
    if (trace?.isSampled !== true) return;
    if (this.#pending >= this.#settings.maxSpans) {
      this.spans.dropped += 1;
      return;
    }
    this.#pending += 1;
    const { name, kind, attributes, isError } = describe(done);
    const context = spanContext(trace);
    this.#processor.onEnd({
      name,
      kind,
      attributes,
      status: { code: isError ? SpanStatusCode.ERROR : SpanStatusCode.UNSET },
      spanContext: () => context,
      ...(parent === null ? {} : { parentSpanContext: spanContext(parent) }),
      startTime: hrTime(startedAt),
      endTime: hrTime(startedAt + durationMs),
      duration: hrTime(durationMs),
      ended: true,
      links: [],
      events: [],
      droppedAttributesCount: 0,
      droppedEventsCount: 0,
      droppedLinksCount: 0,
      ...this.#common,
    });
  }

  /** Wraps an exporter to count the spans that it sends and drops. */
  #counted(exporter: SpanExporter): SpanExporter {
    return {
      export: (spans, done) =>
        exporter.export(spans, (result) => {
          this.#pending -= spans.length;
          // The code 0 means success. `ExportResultCode` is not used, because it is in a package that is not a
          // dependency.
          if (result.code === 0) this.#noteSent(spans.length);
          else this.#noteLost(spans.length, result.error);
          done(result);
        }),
      shutdown: () => exporter.shutdown(),
    };
  }

  #noteSent(count: number): void {
    this.spans.sent += count;
    if (!this.#isFailureLogged) return;
    this.#isFailureLogged = false;
    this.#log.info({ dropped: this.spans.dropped }, 'traces.sent_again');
  }

  #noteLost(count: number, error: Error | undefined): void {
    this.spans.dropped += count;
    if (this.#isFailureLogged) return;
    this.#isFailureLogged = true;
    const { url } = this.#settings;
    this.#log.warn(
      { url, error: error?.message ?? null, spans: count },
      'traces.not_sent: the receiver is unavailable; spans are dropped until it returns',
    );
  }
}

function spanContext({ traceId, spanId, isSampled }: TraceContext): SpanContext {
  return { traceId, spanId, traceFlags: isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE };
}

/** A time in OpenTelemetry's format: seconds and nanoseconds. */
function hrTime(ms: number): [number, number] {
  const seconds = Math.floor(ms / 1_000);
  return [seconds, Math.min(999_999_999, Math.round((ms - seconds * 1_000) * 1e6))];
}

interface SpanText {
  /** The name of the span. It has low cardinality, because it contains no ids and no actual paths. */
  name: string;
  kind: SpanKind;
  attributes: Attributes;
  isError: boolean;
}

/**
 * Describes a request. Paths, queries and client addresses are omitted, although OpenTelemetry asks for them, because
 * they may identify people.
 */
function requestSpan(done: RequestDone): SpanText {
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

/**
 * Describes an attempt of a job. The reason of a failure is included, but not the sentence about it, which may quote
 * output of the source.
 */
function jobSpan(done: JobAttemptDone): SpanText {
  const { outcome, read, published } = done;
  const isError = outcome === 'failed' || outcome === 'retrying';
  return {
    name: 'process job',
    // A push runs within its request instead of waiting in the queue, so its span is internal.
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

function deliverySpan(done: DeliveryAttemptDone): SpanText {
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
