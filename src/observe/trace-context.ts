/** Trace contexts (W3C Trace Context, `00-traceId-spanId-flags`): parsing, formatting, and spans of job attempts. */
import { hash, randomBytes } from 'node:crypto';

export interface TraceContext {
  /** 32 hexadecimal digits. */
  traceId: string;
  /** 16 hexadecimal digits; `NO_SPAN` while the trace has no span yet. */
  spanId: string;
  isSampled: boolean;
  /** How many webhooks led to this work; undefined if none did. Stored in tables, but never sent in `traceparent`. */
  hops?: number;
}

/** The span of a unit of work and its parent span; both null if the work is not traced. */
export interface Traced {
  trace: TraceContext | null;
  parent: TraceContext | null;
}

export const UNTRACED: Traced = { trace: null, parent: null };

/** Takes the place of the span id in a trace that no request started, such as the trace of a scheduled job. */
export const NO_SPAN = '0'.repeat(16);
const NO_TRACE = '0'.repeat(32);
const VERSION_00 = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;
/** Later versions may append fields. */
const LATER = /^(?!00|ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?$/;
const SAMPLED = 1;

/** Parses a `traceparent` header; null if it is missing or invalid. */
export function fromTraceparent(header: string | undefined): TraceContext | null {
  const found = header === undefined ? null : (VERSION_00.exec(header) ?? LATER.exec(header));
  const [, traceId = NO_TRACE, spanId = NO_SPAN, flags = ''] = found ?? [];
  if (traceId === NO_TRACE || spanId === NO_SPAN) return null;
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & SAMPLED) === SAMPLED };
}

/**
 * Formats a `traceparent` header. `hops` is omitted, because the flags that contain it in tables have different
 * meanings in the header.
 */
export function toTraceparent({ traceId, spanId, isSampled }: TraceContext): string {
  return formatted({ traceId, spanId, flags: isSampled ? SAMPLED : 0 });
}

/** Formats a trace context for storage in a table. The flags above the sampling flag contain `hops`. */
export function toStored({ traceId, spanId, isSampled, hops = 0 }: TraceContext): string {
  return formatted({ traceId, spanId, flags: (hops << 1) | (isSampled ? SAMPLED : 0) });
}

function formatted({ traceId, spanId, flags }: { traceId: string; spanId: string; flags: number }): string {
  return `00-${traceId}-${spanId}-${flags.toString(16).padStart(2, '0')}`;
}

/** The header of a delivery with the number of webhooks that led to the delivery, including its own webhook. */
export const HOPS_HEADER = 'flowhook-hops';
/**
 * Maximum number of webhooks in a chain. Each webhook may fire for several events, so each step of a chain can triple
 * the number of requests.
 */
export const MAX_HOPS = 5;

/** How many webhooks led to a row, according to its stored trace. */
export function hopsOf(stored: string | null): number {
  return fromStored(stored)?.hops ?? 0;
}

/** The trace to store for work caused by a request to which `hops` webhooks led. Starts a trace if there is none. */
export function storedTrace(trace: TraceContext | null, hops: number): string | null {
  if (hops === 0) return trace && toStored(trace);
  const started = { traceId: randomBytes(16).toString('hex'), spanId: NO_SPAN, isSampled: false };
  return toStored({ ...(trace ?? started), hops });
}

/** Parses the result of `toStored`. Unlike in a header, the span id of a stored trace may be `NO_SPAN`. */
export function fromStored(stored: string | null): TraceContext | null {
  const found = stored === null ? null : VERSION_00.exec(stored);
  if (found === null) return null;
  const [, traceId = '', spanId = '', flags = ''] = found;
  const bits = Number.parseInt(flags, 16);
  const hops = bits >> 1;
  return { traceId, spanId, isSampled: (bits & SAMPLED) === SAMPLED, ...(hops === 0 ? {} : { hops }) };
}

/** For work on a node without tracing: the trace of its cause is logged, but the work gets no span. */
export function tracedByOthers(stored: string | null): Traced {
  return stored === null ? UNTRACED : { trace: fromStored(stored), parent: null };
}

/**
 * The trace context of an attempt, in the trace of its job; null if the job has no trace. The span id is a hash of the
 * job id and the attempt number, so that every node can compute it.
 */
export function traceOfAttempt(job: { id: string; trace: string | null; attempt: number }): string | null {
  const trace = fromStored(job.trace);
  if (trace === null || job.attempt === 0) return job.trace;
  const spanId = hash('sha256', `${job.id} ${job.attempt}`).slice(0, 16);
  return toStored({ ...trace, spanId });
}

/**
 * The span of an attempt and its parent span. The parent is the span that queued the job. If no span queued the job,
 * the first attempt is the root of the trace and the parent of the other attempts.
 */
export function tracedAttempt(job: { id: string; trace: string | null; attempt: number }): Traced {
  const queued = fromStored(job.trace);
  const first = fromStored(traceOfAttempt({ ...job, attempt: 1 }));
  const above = job.attempt > 1 ? first : null;
  return {
    trace: fromStored(traceOfAttempt(job)),
    parent: queued?.spanId === NO_SPAN ? above : queued,
  };
}
