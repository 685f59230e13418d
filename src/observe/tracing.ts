/** Traces, as the parts of the service see them. Nothing of OpenTelemetry is loaded before `startTracing`. */
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
  /** Of the traces that begin here, the share that is kept; 1 is all. */
  share: number;
  /** Whether somebody else's decision on a trace holds here as well. */
  heedsParent: boolean;
  /** What the spans are from, such as `service.name`. */
  resource: Readonly<Record<string, string>>;
  /** Spans wait so long at most, until there are enough to be sent. */
  delayMs: number;
  /** So many spans wait or are under way; what comes beyond them is dropped. */
  maxSpans: number;
}

/** Gives places in traces before there are spans, and makes the spans of what is told when it is over. */
export interface Tracing {
  /** For what comes from outside: goes on with the trace that a header `traceparent` names, or begins one. */
  arrive(traceparent: string | undefined): Traced;
  /** For what was caused by something with a place in a table; begins a trace when that has none. */
  under(stored: string | null): Traced;
  /** A trace without a span, as it is stored: for what nobody has asked for, such as a schedule. */
  begin(): string;
  readonly observer: Observer;
  /** Spans since the start. */
  readonly spans: { readonly sent: number; readonly dropped: number };
  /** Sends what waits, as far as that is possible within 2 s. */
  stop(): Promise<void>;
}

export async function startTracing(settings: TracingSettings, log: Logger): Promise<Tracing> {
  const { ExportedTraces } = await import('./trace-export.ts');
  return new ExportedTraces(settings, log);
}
