/** What the service tells of each unit of work, once, when it is over: lines of the log, metrics and traces are made of it. */
import type { Traced } from './trace-context.ts';

/** A request was answered, or its client has gone. */
export interface RequestDone extends Traced {
  requestId: string;
  method: string;
  /** The pattern, never the path as it came; null when nothing matched. */
  route: string | null;
  status: number;
  /** Epoch milliseconds. */
  startedAt: number;
  durationMs: number;
  /** Bytes that were written to its connection, headers included; of HTTPS as they were encrypted. */
  sentBytes: number;
  teamId: string | null;
  keyId: string | null;
  /** What `x-error-code` said. */
  errorCode: string | null;
  /** The client or an error broke the answer off. */
  aborted: boolean;
}

/** An attempt of a job is over. */
export interface JobAttemptDone extends Traced {
  teamId: string;
  workflowId: string;
  jobId: string;
  attempt: number;
  origin: string;
  sourceType: string;
  /** `retrying`: this attempt has failed, and there will be another. `interrupted`: given back, or somebody else's by now. */
  outcome: 'finished' | 'failed' | 'retrying' | 'canceled' | 'interrupted';
  /** Why it failed, by `FailureReason`; of an interruption `release`, `fenced`, or `end_not_written`. */
  reason: string | null;
  /** A sentence for the team: what is secret is masked, but it may quote what the source said. */
  error: string | null;
  /** When it is tried again, epoch milliseconds; null unless it is `retrying`. */
  nextAt: number | null;
  /** Epoch milliseconds. */
  startedAt: number;
  durationMs: number;
  /** From when it was due until it was started. */
  waitedMs: number;
  /** What it read; null when it did not come to its end, or the answer to its publishing was lost. */
  read: RecordsRead | null;
  /** What is published now, by this attempt or, when it was `unchanged`, before; null when nothing was published. */
  published: RecordsPublished | null;
}

/** Counts of records that an attempt has read: see `Ingested`. */
export interface RecordsRead {
  emitted: number;
  duplicates: number;
  existing: number;
  skipped: number;
  suppressed: number;
}

export interface RecordsPublished {
  outcome: 'published' | 'unchanged';
  version: number;
  records: { total: number; added: number; changed: number; removed: number };
}

/** An attempt of a delivery is over, or was refused by policy before a byte was sent. */
export interface DeliveryAttemptDone extends Traced {
  teamId: string;
  webhookId: string;
  eventId: string;
  eventType: string;
  deliveryId: string;
  attempt: number;
  /** Scheme, host and port that it went to. */
  server: string;
  /** As in the delivery's log: an `AttemptOutcome`. */
  outcome: string;
  status: number | null;
  error: string | null;
  /** Where the delivery stands now. */
  next: 'delivered' | 'waiting' | 'dead' | 'canceled';
  /** When it is tried again, epoch milliseconds. */
  nextAt: number | null;
  /** What became of the lane's circuit by it; null when that stands as before. */
  circuit: 'closed' | 'open' | 'half_open' | null;
  /** Until when the lane sends nothing, epoch milliseconds; null when it does not rest. */
  restsUntil: number | null;
  startedAt: number;
  durationMs: number;
  /** From when it was due until it was sent. */
  waitedMs: number;
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
