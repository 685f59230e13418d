/** Where something stands in a trace, as W3C Trace Context writes it: `00-traceId-spanId-flags`. */
import { hash } from 'node:crypto';

export interface TraceContext {
  /** 32 hexadecimal digits. */
  traceId: string;
  /** 16 hexadecimal digits; zeros where a trace has no span yet. */
  spanId: string;
  isSampled: boolean;
}

/** Where a unit of work stands in a trace, and under what; both null while nothing is traced. */
export interface Traced {
  trace: TraceContext | null;
  parent: TraceContext | null;
}

export const UNTRACED: Traced = { trace: null, parent: null };

/** The span that there is not: what a trace begins with that nobody's request has begun. */
export const NO_SPAN = '0'.repeat(16);
const NO_TRACE = '0'.repeat(32);
const VERSION_00 = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;
/** Later versions may say more behind what the first one says. */
const LATER = /^(?!00|ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?$/;
const SAMPLED = 1;

/** Reads a header `traceparent`; nothing when it is not one. */
export function fromTraceparent(header: string | undefined): TraceContext | null {
  const found = header === undefined ? null : (VERSION_00.exec(header) ?? LATER.exec(header));
  const [, traceId = NO_TRACE, spanId = NO_SPAN, flags = ''] = found ?? [];
  if (traceId === NO_TRACE || spanId === NO_SPAN) return null;
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & SAMPLED) === SAMPLED };
}

export function toTraceparent({ traceId, spanId, isSampled }: TraceContext): string {
  return `00-${traceId}-${spanId}-${isSampled ? '01' : '00'}`;
}

/** Reads what `toTraceparent` has written into a table, also of a trace without a span. */
export function fromStored(stored: string | null): TraceContext | null {
  const found = stored === null ? null : VERSION_00.exec(stored);
  if (found === null) return null;
  const [, traceId = '', spanId = '', flags] = found;
  return { traceId, spanId, isSampled: flags === '01' };
}

/** Of something that others trace and this node does not: its trace is known, its own place is not. */
export function tracedByOthers(stored: string | null): Traced {
  return stored === null ? UNTRACED : { trace: fromStored(stored), parent: null };
}

/**
 * The place of an attempt in the trace of its job; nothing of a job that has none. It follows from the job and the
 * number alone, so that events can name the attempt that they come from, on any node, and nothing more is stored.
 */
export function traceOfAttempt(job: { id: string; trace: string | null; attempt: number }): string | null {
  const trace = fromStored(job.trace);
  if (trace === null || job.attempt === 0) return job.trace;
  const spanId = hash('sha256', `${job.id} ${job.attempt}`).slice(0, 16);
  return toTraceparent({ ...trace, spanId });
}

/** What an attempt stands under: what has queued its job, else the first attempt; the first one may stand alone. */
export function tracedAttempt(job: { id: string; trace: string | null; attempt: number }): Traced {
  const queued = fromStored(job.trace);
  const first = fromStored(traceOfAttempt({ ...job, attempt: 1 }));
  const above = job.attempt > 1 ? first : null;
  return {
    trace: fromStored(traceOfAttempt(job)),
    parent: queued?.spanId === NO_SPAN ? above : queued,
  };
}
