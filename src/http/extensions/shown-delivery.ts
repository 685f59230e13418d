/** Deliveries, their attempts and replays as callers see them, over HTTP and at the shell. */
import type { Attempt } from '../../model/delivery.ts';
import { parseExactly } from '../../model/record.ts';
import { toIso } from '../../std/clock.ts';
import type { DeliverySummary, Replay } from '../../store/webhook-operations.ts';
import { isoOrNull } from './shown-webhook.ts';

export type ShownReplay = ReturnType<typeof shownReplay>;
export type ShownDelivery = ReturnType<typeof shownDelivery>;
export type ShownDeliveryDetail = ReturnType<typeof shownDeliveryDetail>;

export function shownDelivery(delivery: DeliverySummary) {
  const { id, webhookId, eventId, eventType, origin, state, attempt, last } = delivery;
  return {
    id,
    webhookId,
    eventId,
    eventType,
    origin,
    state,
    attempt,
    createdAt: toIso(delivery.createdAt),
    nextAttemptAt: state === 'waiting' ? isoOrNull(delivery.nextAt) : null,
    lastAttempt:
      last === null
        ? null
        : { at: toIso(last.at), outcome: last.outcome, status: last.status, message: outcomeWords(last) },
  };
}

export function shownDeliveryDetail(delivery: DeliverySummary & { body: string; attempts: Attempt[] }) {
  // Older attempts may have been deleted: the last one is that which the delivery counts.
  const before = Math.max(0, delivery.attempt - delivery.attempts.length);
  return {
    ...shownDelivery(delivery),
    event: parseExactly(delivery.body),
    attempts: delivery.attempts.map((attempt, at) => shownAttempt(attempt, before + at + 1)),
  };
}

export function shownReplay(replay: Replay) {
  return {
    id: replay.id,
    webhookId: replay.webhookId,
    state: replay.state,
    states: replay.states,
    since: toIso(replay.since),
    until: toIso(replay.until),
    made: replay.made,
    createdAt: toIso(replay.createdAt),
  };
}

/** What one request came to: `Delivered: the receiver answered 204`, or why not. */
function outcomeWords(attempt: Pick<Attempt, 'outcome' | 'status' | 'error'>): string {
  if (attempt.outcome === 'ok') return `Delivered: the receiver answered ${attempt.status ?? '2xx'}`;
  if (attempt.error !== null) return attempt.error;
  return attempt.status === null
    ? `It failed (${attempt.outcome})`
    : `The receiver answered ${attempt.status}`;
}

function shownAttempt(attempt: Attempt, number: number) {
  const { details } = attempt;
  return {
    number,
    startedAt: toIso(attempt.startedAt),
    durationMs: attempt.durationMs,
    outcome: attempt.outcome,
    status: attempt.status,
    message: outcomeWords(attempt),
    request: details === null ? null : { url: details.url, headers: details.requestHeaders },
    response:
      attempt.status === null ? null : { headers: details?.responseHeaders ?? {}, body: attempt.response },
    remoteAddress: details?.remoteAddress ?? null,
    timing: details?.timing ?? null,
  };
}
