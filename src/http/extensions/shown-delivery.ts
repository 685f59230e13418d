/** Deliveries, their attempts and replays as callers see them, over HTTP and at the shell. */
import { ATTEMPT_OUTCOMES, type Attempt, DELIVERY_ORIGINS, DELIVERY_STATES } from '../../model/delivery.ts';
import { EVENT_TYPES } from '../../model/event.ts';
import { parseExactly } from '../../model/record.ts';
import { toIso, toIsoOrNull } from '../../std/clock.ts';
import type { DeliverySummary, Replay } from '../../store/webhook-operations.ts';
import { isoTime, isoTimeOrNull } from '../openapi/content.ts';

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
    nextAttemptAt: state === 'waiting' ? toIsoOrNull(delivery.nextAt) : null,
    lastAttempt:
      last === null
        ? null
        : { at: toIso(last.at), outcome: last.outcome, status: last.status, message: outcomeWords(last) },
  };
}

export function shownDeliveryDetail(delivery: DeliverySummary & { body: string; attempts: Attempt[] }) {
  // Older attempts may have been deleted, so they are numbered back from the last.
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

/** The outcome of one attempt: `Delivered: the receiver answered 204`, or why not. */
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

const headers = { type: 'object', additionalProperties: { type: 'string' } };
/** The outcome of an attempt. */
const outcome = {
  outcome: { enum: ATTEMPT_OUTCOMES },
  status: { type: ['integer', 'null'], description: 'Of the answer' },
  message: { type: 'string', description: 'The outcome in plain words' },
};
const delivery = {
  id: { type: 'string' },
  webhookId: { type: 'string' },
  eventId: { type: 'string' },
  eventType: { enum: EVENT_TYPES },
  origin: { enum: DELIVERY_ORIGINS },
  state: { enum: DELIVERY_STATES },
  attempt: { type: 'integer', description: 'Attempts made so far' },
  createdAt: isoTime,
  nextAttemptAt: { ...isoTimeOrNull, description: 'Of a delivery that is `waiting`' },
  lastAttempt: { type: ['object', 'null'], properties: { at: isoTime, ...outcome } },
};

/** The same as JSON Schema. */
export const deliverySchema = { type: 'object', required: Object.keys(delivery), properties: delivery };

export const deliveryDetailSchema = {
  type: 'object',
  required: [...Object.keys(delivery), 'event', 'attempts'],
  properties: {
    ...delivery,
    event: { $ref: '#/components/schemas/Event' },
    attempts: {
      type: 'array',
      description: 'Oldest first',
      items: {
        type: 'object',
        properties: {
          number: { type: 'integer' },
          startedAt: isoTime,
          durationMs: { type: 'number' },
          ...outcome,
          request: {
            type: ['object', 'null'],
            description: 'Without the values of headers that are secret',
            properties: { url: { type: 'string' }, headers },
          },
          response: {
            type: ['object', 'null'],
            properties: {
              headers,
              body: { type: ['string', 'null'], description: 'Its first 2 KiB' },
            },
          },
          remoteAddress: { type: ['string', 'null'] },
          timing: {
            type: ['object', 'null'],
            description:
              'Milliseconds: waiting in line, then from the start of the attempt until each was done',
            properties: {
              queuedMs: { type: 'number' },
              dnsMs: { type: ['number', 'null'] },
              connectMs: { type: ['number', 'null'] },
              tlsMs: { type: ['number', 'null'] },
              firstByteMs: { type: ['number', 'null'] },
            },
          },
        },
      },
    },
  },
};

export const replaySchema = {
  type: 'object',
  required: ['id', 'webhookId', 'state', 'states', 'since', 'until', 'made', 'createdAt'],
  properties: {
    id: { type: 'string' },
    webhookId: { type: 'string' },
    state: { enum: ['running', 'done'] },
    states: { type: 'array', items: { enum: DELIVERY_STATES } },
    since: isoTime,
    until: isoTime,
    made: { type: 'integer', description: 'Deliveries made so far' },
    createdAt: isoTime,
  },
};
