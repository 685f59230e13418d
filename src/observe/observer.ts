/**
 * Observers receive a report about each unit of work at its end: a request, an attempt of a job, an attempt of a
 * delivery. The log (`wide-lines.ts`), the metrics (`work-metrics.ts`) and the traces (`trace-export.ts`) are
 * observers.
 */
import type { Traced } from './trace-context.ts';

/** Routes that are polled every few seconds (health checks and scrapes). The log and the traces omit them. */
export const POLLED_ROUTES: ReadonlySet<string | null> = new Set(['/livez', '/readyz', '/metrics']);

/** Report about a request: a response was sent, or the client disconnected. */
export interface RequestDone extends Traced {
  requestId: string;
  method: string;
  /** The pattern of the route, never the actual path; null if no route matched. */
  route: string | null;
  status: number;
  /** Epoch milliseconds. */
  startedAt: number;
  durationMs: number;
  /** Number of bytes written to the connection, including headers. With HTTPS, encrypted bytes are counted. */
  sentBytes: number;
  teamId: string | null;
  keyId: string | null;
  /** The value of `x-error-code`. */
  errorCode: string | null;
  /** Whether the client disconnected or an error interrupted the response. */
  aborted: boolean;
}

/** Report about an attempt of a job. */
export interface JobAttemptDone extends Traced {
  teamId: string;
  workflowId: string;
  jobId: string;
  attempt: number;
  origin: string;
  sourceType: string;
  /**
   * `retrying`: the attempt failed and the job will be retried. `interrupted`: the job was released, or another node
   * has taken it over.
   */
  outcome: 'finished' | 'failed' | 'retrying' | 'canceled' | 'interrupted';
  /**
   * Why the attempt did not succeed: the `FailureReason` of a failure; `release`, `fenced` or `end_not_written` for an
   * interruption; otherwise null.
   */
  reason: string | null;
  /** A sentence about the failure for the team. Secrets are masked, but the sentence may quote output of the source. */
  error: string | null;
  /** When the job will be retried, in epoch milliseconds; null unless the outcome is `retrying`. */
  nextAt: number | null;
  /** Epoch milliseconds. */
  startedAt: number;
  durationMs: number;
  /** Delay between the due time and the start of the attempt. */
  waitedMs: number;
  /**
   * Counts of the records read. Null if the source was not read to its end, or if the store's response to publishing
   * was lost.
   */
  read: RecordsRead | null;
  /** The version that is current after the attempt, even if it is `unchanged`. Null if the attempt did not publish. */
  published: RecordsPublished | null;
}

/** Counts of the records that an attempt read. `Ingested` describes each count. */
export interface RecordsRead {
  emitted: number;
  duplicates: number;
  existing: number;
  skipped: number;
  suppressed: number;
  quarantined: number;
}

export interface RecordsPublished {
  outcome: 'published' | 'unchanged';
  version: number;
  records: { total: number; added: number; changed: number; removed: number };
}

/** Report about an attempt of a delivery. The address policy may have refused the attempt before a byte was sent. */
export interface DeliveryAttemptDone extends Traced {
  teamId: string;
  webhookId: string;
  eventId: string;
  eventType: string;
  deliveryId: string;
  attempt: number;
  /** Scheme, host and port of the endpoint. */
  server: string;
  /** The `AttemptOutcome`, as in the log of the delivery. */
  outcome: string;
  status: number | null;
  error: string | null;
  /** The state of the delivery after this attempt. */
  next: 'delivered' | 'waiting' | 'dead' | 'canceled';
  /** When the delivery will be retried, in epoch milliseconds; null unless `next` is `waiting`. */
  nextAt: number | null;
  /** The new state of the lane's circuit breaker; null if it did not change. */
  circuit: 'closed' | 'open' | 'half_open' | null;
  /** When the lane may send again, in epoch milliseconds. Null: the lane may send immediately. */
  restsUntil: number | null;
  startedAt: number;
  durationMs: number;
  /** Delay between the due time and the start of the attempt. */
  waitedMs: number;
}

/** Report about a step of a decision: whether a webhook with a rule receives an event, and with which records. */
export interface DecisionStepDone {
  teamId: string;
  webhookId: string;
  workflowId: string | null;
  /** Null if the event of ended cooldowns was deleted, and for a digest that has ended. */
  eventId: string | null;
  /** `digest`: a digest has ended. Null if the decision continues, and if ended cooldowns caused no message. */
  outcome: 'sent' | 'gathered' | 'filtered' | 'digest' | null;
  /** Of the whole decision; null if it examined no records, and while it continues. */
  matched: number | null;
  examined: number | null;
  /** Number of evaluations in this step. */
  evaluated: number;
  /** `rule`: the rule failed for at least one record; `time`: an evaluation was ended because it took too long. */
  mistake: 'rule' | 'time' | null;
  /** Whether the step is about records whose cooldowns have ended. */
  cooldownEnded: boolean;
}

/** An observer receives only the reports for which it has methods. The methods must neither throw nor block. */
export interface Observer {
  requestDone?(done: RequestDone): void;
  jobAttemptDone?(done: JobAttemptDone): void;
  deliveryAttemptDone?(done: DeliveryAttemptDone): void;
  decisionStepDone?(done: DecisionStepDone): void;
}

/** Combines several observers into one. */
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
    decisionStepDone(done) {
      for (const one of observers) one.decisionStepDone?.(done);
    },
  };
}
