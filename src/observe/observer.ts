/** What the service tells of each unit of work, once, when it is over: lines of the log, metrics and traces are made of it. */

/** Where something stands in a trace, by W3C Trace Context. */
export interface TraceContext {
  /** 32 hexadecimal digits. */
  traceId: string;
  /** 16 hexadecimal digits. */
  spanId: string;
  isSampled: boolean;
}

/** A request was answered, or its client has gone. */
export interface RequestDone {
  requestId: string;
  method: string;
  /** The pattern, never the path as it came; null when nothing matched. */
  route: string | null;
  status: number;
  /** Epoch milliseconds. */
  startedAt: number;
  durationMs: number;
  /** Body bytes that went out. */
  sentBytes: number;
  teamId: string | null;
  keyId: string | null;
  /** What `x-error-code` said. */
  errorCode: string | null;
  /** The client or an error broke the answer off. */
  aborted: boolean;
  trace: TraceContext | null;
}

/** An attempt of a job is over. */
export interface JobAttemptDone {
  teamId: string;
  workflowId: string;
  jobId: string;
  attempt: number;
  origin: string;
  sourceType: string;
  /** `retrying`: this attempt has failed, and there will be another. `interrupted`: given back, or somebody else's by now. */
  outcome: 'finished' | 'failed' | 'retrying' | 'canceled' | 'interrupted';
  reason: string | null;
  error: string | null;
  startedAt: number;
  durationMs: number;
  /** From when it was due until it was started. */
  waitedMs: number;
  /** What it read, and what that came to; null when nothing was published. */
  records: { emitted: number; total: number; added: number; changed: number; removed: number } | null;
  version: number | null;
  /** What it was queued by. */
  trace: TraceContext | null;
}

/** An attempt of a delivery is over, or was refused by policy before a byte was sent. */
export interface DeliveryAttemptDone {
  teamId: string;
  webhookId: string;
  eventId: string;
  eventType: string;
  deliveryId: string;
  attempt: number;
  /** As in the delivery's log: `ok`, `status`, `timeout`, `refused` … */
  outcome: string;
  status: number | null;
  error: string | null;
  /** Where the delivery stands now. */
  next: 'delivered' | 'waiting' | 'dead' | 'canceled';
  /** When it is tried again, epoch milliseconds. */
  nextAt: number | null;
  startedAt: number;
  durationMs: number;
  /** From when it was due until it was sent. */
  waitedMs: number;
  /** What its event belongs to. */
  trace: TraceContext | null;
}

/** Whoever wants to be told. Must not throw, and must not keep anybody waiting. */
export interface Observer {
  requestDone?(done: RequestDone): void;
  jobAttemptDone?(done: JobAttemptDone): void;
  deliveryAttemptDone?(done: DeliveryAttemptDone): void;
}

/** Tells several, each of what it wants to be told. */
export function observeAll(observers: readonly Observer[]): Required<Observer> {
  return {
    requestDone(done) {
      for (const one of observers) one.requestDone?.(done);
    },
    jobAttemptDone(done) {
      for (const one of observers) one.jobAttemptDone?.(done);
    },
    deliveryAttemptDone(done) {
      for (const one of observers) one.deliveryAttemptDone?.(done);
    },
  };
}
