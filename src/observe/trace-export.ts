/** Traces by OpenTelemetry: which are kept, and how their spans are sent. Nobody waits for that, or fails by it. */
import { ROOT_CONTEXT, type SpanContext, SpanStatusCode, TraceFlags } from '@opentelemetry/api';
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
import type { Logger } from './log.ts';
import type { Observer } from './observer.ts';
import {
  fromStored,
  fromTraceparent,
  NO_SPAN,
  type TraceContext,
  type Traced,
  toTraceparent,
} from './trace-context.ts';
import { deliverySpan, jobSpan, requestSpan, type SpanText } from './trace-spans.ts';
import type { Tracing, TracingSettings } from './tracing.ts';

/** Spans in one request. */
const BATCH = 512;
const STOP_MS = 2_000;
/** Health checks and scrapes come every few seconds and say nothing. */
const QUIET = new Set<string | null>(['/livez', '/readyz', '/metrics']);

export class ExportedTraces implements Tracing {
  readonly spans = { sent: 0, dropped: 0 };
  readonly observer: Observer = {
    requestDone: (done) => {
      if (!QUIET.has(done.route)) this.#end(done, requestSpan);
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
  /** Spans that wait or are under way. */
  #pending = 0;
  /** Whether it was said that they cannot be sent. */
  #isSaid = false;
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
    return toTraceparent({ traceId, spanId: NO_SPAN, isSampled: this.#isSampled(traceId) });
  }

  stop(): Promise<void> {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  async #stop(): Promise<void> {
    const late = Promise.withResolvers<void>();
    const timer = setTimeout(late.resolve, STOP_MS);
    // What cannot be sent was counted and said when it was tried.
    await Promise.race([this.#processor.shutdown().catch(() => {}), late.promise]);
    clearTimeout(timer);
    if (this.#pending > 0) this.#log.warn({ spans: this.#pending }, 'traces.left_behind');
  }

  #isSampled(traceId: string): boolean {
    const { decision } = this.#sampler.shouldSample(ROOT_CONTEXT, traceId);
    return decision === SamplingDecision.RECORD_AND_SAMPLED;
  }

  #end<Done extends Traced & { startedAt: number; durationMs: number }>(
    done: Done,
    say: (done: Done) => SpanText,
  ): void {
    const { trace, parent, startedAt, durationMs } = done;
    if (trace?.isSampled !== true) return;
    if (this.#pending >= this.#settings.maxSpans) {
      this.spans.dropped += 1;
      return;
    }
    this.#pending += 1;
    const { name, kind, attributes, isError } = say(done);
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

  /** The same exporter, and what came of its spans. */
  #counted(exporter: SpanExporter): SpanExporter {
    return {
      export: (spans, done) =>
        exporter.export(spans, (result) => {
          this.#pending -= spans.length;
          // 0 is success: the name of it belongs to a package that is not ours to import.
          if (result.code === 0) this.#noteSent(spans.length);
          else this.#noteLost(spans.length, result.error);
          done(result);
        }),
      shutdown: () => exporter.shutdown(),
    };
  }

  #noteSent(count: number): void {
    this.spans.sent += count;
    if (!this.#isSaid) return;
    this.#isSaid = false;
    this.#log.info({ dropped: this.spans.dropped }, 'traces.sent_again');
  }

  #noteLost(count: number, error: Error | undefined): void {
    this.spans.dropped += count;
    if (this.#isSaid) return;
    this.#isSaid = true;
    const { url } = this.#settings;
    this.#log.warn(
      { url, error: error?.message ?? null, spans: count },
      'traces.not_sent: their receiver is away, spans are dropped until it is back',
    );
  }
}

function spanContext({ traceId, spanId, isSampled }: TraceContext): SpanContext {
  return { traceId, spanId, traceFlags: isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE };
}

/** Seconds and nanoseconds. */
function hrTime(ms: number): [number, number] {
  const seconds = Math.floor(ms / 1_000);
  return [seconds, Math.min(999_999_999, Math.round((ms - seconds * 1_000) * 1e6))];
}
