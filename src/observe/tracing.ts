/** The interface of tracing for the rest of the service. `startTracing` loads OpenTelemetry, and only that does. */
import type { Logger } from './log.ts';
import type { Observer } from './observer.ts';
import type { Traced } from './trace-context.ts';

/** Where traces go, and how many of them. */
export interface TracingSettings {
  /** Spans are posted here, as OTLP in JSON. */
  url: string;
  headers: Readonly<Record<string, string>>;
  timeoutMs: number;
  compression: 'none' | 'gzip';
  /** The share of traces that is sampled, from 0 to 1 (all). */
  share: number;
  /** Whether the sampling decision of a caller's `traceparent` is respected. */
  heedsParent: boolean;
  /** Attributes of the resource, such as `service.name`. */
  resource: Readonly<Record<string, string>>;
  /** How long spans wait at most for a batch to fill. */
  delayMs: number;
  /** How many spans may wait or be sent at once; further ones are dropped. */
  maxSpans: number;
}

/** Assigns trace contexts when work starts; the spans themselves are made from the reports to `observer` when it ends. */
export interface Tracing {
  /** For work from outside: continues the trace of a `traceparent` header, or begins one. */
  arrive(traceparent: string | undefined): Traced;
  /** For work whose cause has a trace context in a table; begins a trace when it has none. */
  under(stored: string | null): Traced;
  /** A new trace without a span, in the form that is stored: for work that no request caused, such as a schedule. */
  begin(): string;
  readonly observer: Observer;
  /** Counts of spans since the start. */
  readonly spans: { readonly sent: number; readonly dropped: number };
  /** Sends the spans that wait, as far as that is possible within 2 s. */
  stop(): Promise<void>;
}

export async function startTracing(settings: TracingSettings, log: Logger): Promise<Tracing> {
  const { ExportedTraces } = await import('./trace-export.ts');
  return new ExportedTraces(settings, log);
}
