/** Defines tracing for the rest of the service. Only `startTracing` loads OpenTelemetry. */
import type { Logger } from './log.ts';
import type { Observer } from './observer.ts';
import type { Traced } from './trace-context.ts';

/** Where spans are sent, and which share of traces is sampled. */
export interface TracingSettings {
  /** The URL to which spans are posted (OTLP in JSON). */
  url: string;
  headers: Readonly<Record<string, string>>;
  timeoutMs: number;
  compression: 'none' | 'gzip';
  /** The share of traces that are sampled, from 0 (none) to 1 (all). */
  share: number;
  /** Whether the sampling decision of a caller's `traceparent` is respected. */
  heedsParent: boolean;
  /** Attributes of the resource, such as `service.name`. */
  resource: Readonly<Record<string, string>>;
  /** Maximum time that a span waits for its batch to fill. */
  delayMs: number;
  /** Maximum number of spans that wait or are being sent. Further spans are dropped. */
  maxSpans: number;
}

/** Assigns trace contexts when work starts. `observer` makes spans from the reports that it receives when work ends. */
export interface Tracing {
  /** Assigns the trace context of a request. Continues the trace of a `traceparent` header, or starts a trace. */
  arrive(traceparent: string | undefined): Traced;
  /**
   * Assigns the trace context of work whose cause has a stored trace context. Starts a trace if the stored context is
   * null.
   */
  under(stored: string | null): Traced;
  /** Starts a trace without a span, in the stored format, for work that no request caused, such as a scheduled job. */
  begin(): string;
  readonly observer: Observer;
  /** Counts of spans since the start. */
  readonly spans: { readonly sent: number; readonly dropped: number };
  /** Sends the waiting spans, within 2 s. */
  stop(): Promise<void>;
}

export async function startTracing(settings: TracingSettings, log: Logger): Promise<Tracing> {
  const { ExportedTraces } = await import('./trace-export.ts');
  return new ExportedTraces(settings, log);
}
