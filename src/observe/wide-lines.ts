/** The observer that writes the log. Each unit of work gets one wide line, with everything that is known at its end. */
import { toIso } from '../std/clock.ts';
import type { Logger } from './log.ts';
import {
  type DecisionStepDone,
  type DeliveryAttemptDone,
  type JobAttemptDone,
  type Observer,
  POLLED_ROUTES,
  type RequestDone,
} from './observer.ts';
import type { Traced } from './trace-context.ts';

/** Which requests are logged. Internal errors always have their own line, `request.failed`. */
export const LOGGED_REQUESTS = ['all', 'slow', 'errors', 'off'] as const;
export type LoggedRequests = (typeof LOGGED_REQUESTS)[number];

const SLOW_MS = 1_000;

/**
 * Writes `request.completed`, `job.finished`, `job.failed`, `job.canceled`, `job.interrupted`, `delivery.attempted`,
 * `decision.made` and `decision.too_slow`. Successes and client errors have the level `info`, problems for the operator `warn`.
 */
export function wideLines(log: Logger, requests: LoggedRequests = 'all'): Required<Observer> {
  return {
    requestDone(done) {
      if (requests === 'off' || POLLED_ROUTES.has(done.route)) return;
      const isError = done.status >= 500 && !done.aborted;
      const isLogged = requests === 'all' || isError || (requests === 'slow' && done.durationMs >= SLOW_MS);
      if (isLogged) log[isError ? 'warn' : 'info'](requestFields(done), 'request.completed');
    },
    jobAttemptDone(done) {
      const { outcome } = done;
      const name = outcome === 'retrying' ? 'failed' : outcome;
      const isWell = outcome === 'finished' || outcome === 'canceled';
      log[isWell ? 'info' : 'warn'](jobFields(done), `job.${name}`);
    },
    deliveryAttemptDone(done) {
      log.info(deliveryFields(done), 'delivery.attempted');
    },
    decisionStepDone(done) {
      if (done.mistake === 'time') log.warn(decisionFields(done), 'decision.too_slow');
      else if (done.outcome !== null) log.info(decisionFields(done), 'decision.made');
    },
  };
}

function decisionFields(done: DecisionStepDone): object {
  const { teamId, webhookId, workflowId, eventId, outcome, matched, examined } = done;
  return {
    teamId,
    webhookId,
    ...(workflowId === null ? {} : { workflowId }),
    eventId,
    ...(outcome === null ? {} : { outcome }),
    ...(examined === null ? {} : { matched, examined }),
    ...(done.mistake === null ? {} : { mistake: done.mistake }),
    ...(done.cooldownEnded ? { cooldownEnded: true } : {}),
  };
}

function requestFields(done: RequestDone): object {
  const { method, route, status, sentBytes, teamId, keyId, requestId } = done;
  return {
    method,
    route,
    status,
    ms: tenths(done.durationMs),
    sentBytes,
    teamId,
    keyId,
    requestId,
    ...(done.errorCode === null ? {} : { code: done.errorCode }),
    ...(done.aborted ? { aborted: true } : {}),
    ...traceField(done),
  };
}

function jobFields(done: JobAttemptDone): object {
  const { teamId, workflowId, jobId, attempt, origin, sourceType, outcome, nextAt } = done;
  return {
    teamId,
    workflowId,
    jobId,
    attempt,
    origin,
    source: sourceType,
    ms: Math.round(done.durationMs),
    waitedMs: Math.round(done.waitedMs),
    ...done.read,
    ...done.published,
    ...(done.reason === null ? {} : { reason: done.reason }),
    ...(done.error === null ? {} : { error: withoutQuotation(done.error) }),
    ...(outcome === 'retrying' || outcome === 'failed' ? { state: outcome } : {}),
    ...(nextAt === null ? {} : { next: toIso(nextAt) }),
    ...traceField(done),
  };
}

/**
 * Drops the text after a colon, which may quote output of the source. Only the team may see such output, in the log of
 * the job.
 */
function withoutQuotation(sentence: string): string | undefined {
  return sentence.split(/: |\. The end of its standard error|\n/, 1)[0];
}

function deliveryFields(done: DeliveryAttemptDone): object {
  const { teamId, webhookId, eventId, deliveryId, eventType, attempt, outcome, status, error } = done;
  return {
    teamId,
    webhookId,
    eventId,
    deliveryId,
    type: eventType,
    attempt,
    outcome,
    status,
    ms: Math.round(done.durationMs),
    waitedMs: Math.round(done.waitedMs),
    ...(error === null ? {} : { error }),
    next: done.nextAt === null ? done.next : toIso(done.nextAt),
    ...(done.circuit === null ? {} : { breaker: done.circuit }),
    ...(done.restsUntil === null ? {} : { restsUntil: toIso(done.restsUntil) }),
    ...traceField(done),
  };
}

function traceField({ trace }: Traced): { traceId?: string; spanId?: string } {
  return trace === null ? {} : { traceId: trace.traceId, spanId: trace.spanId };
}

function tenths(ms: number): number {
  return Math.round(ms * 10) / 10;
}
