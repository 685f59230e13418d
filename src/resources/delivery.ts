/** Deliveries, their attempts and replays as callers see them, over HTTP and at the shell. */
import { ATTEMPT_OUTCOMES, type Attempt, DELIVERY_ORIGINS, DELIVERY_STATES } from '../model/delivery.ts';
import { EVENT_TYPES } from '../model/event.ts';
import { parseExactly } from '../model/record.ts';
import { toIso, toIsoOrNull } from '../std/clock.ts';
import { isoTime, isoTimeOrNull } from '../std/shape.ts';
import type { DeliverySummary, Replay } from '../store/webhook-operations.ts';
import type { ReplayOutcome } from '../webhooks/replay-outcome.ts';
import type { ReplayPlan } from '../webhooks/replay-plan.ts';

export type ShownPlan = ReturnType<typeof shownPlan>;
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

export function shownReplay(replay: Replay, outcome: ReplayOutcome) {
  const { failures, isComplete, ...counts } = outcome;
  const counted = Object.values(counts).reduce((sum, count) => sum + count, 0);
  return {
    id: replay.id,
    webhookId: replay.webhookId,
    state: replay.state,
    states: replay.states,
    since: toIso(replay.since),
    until: toIso(replay.until),
    made: replay.made,
    outcome: {
      ...counts,
      superseded: isComplete ? Math.max(0, replay.made - counted) : 0,
      failures: failures.map(({ outcome: kind, status, error, count, retried }) => ({
        status,
        message: kind === null ? 'Given up' : outcomeWords({ outcome: kind, status, error }),
        count,
        retried,
      })),
      isComplete,
    },
    createdAt: toIso(replay.createdAt),
  };
}

export function shownPlan({ since, until, ...plan }: ReplayPlan) {
  return { since: toIso(since), until: toIso(until), ...plan };
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

const count = { type: 'integer', minimum: 0 };
const period = { since: isoTime, until: isoTime };
const chosen = { type: 'array', items: { enum: DELIVERY_STATES } };

export const replaySchema = {
  type: 'object',
  required: ['id', 'webhookId', 'state', 'states', 'since', 'until', 'made', 'outcome', 'createdAt'],
  properties: {
    id: { type: 'string' },
    webhookId: { type: 'string' },
    state: {
      enum: ['running', 'done'],
      description: '`done`: everything selected has been sent on its way. Whether it arrived: see `outcome`',
    },
    states: chosen,
    ...period,
    made: {
      ...count,
      description: 'Deliveries sent so far: new ones, and those still waiting that became due at once',
    },
    outcome: {
      type: 'object',
      required: ['arrived', 'underWay', 'failed', 'canceled', 'superseded', 'failures', 'isComplete'],
      description: 'What has become of those',
      properties: {
        arrived: count,
        underWay: { ...count, description: 'Not tried yet: in line, or held back with their webhook' },
        failed: { ...count, description: 'Given up, or to be tried again' },
        canceled: { ...count, description: 'The webhook was unsubscribed' },
        superseded: { ...count, description: 'Sent again by a later replay, which counts them' },
        failures: {
          type: 'array',
          description: 'What the failed ones came to, the most frequent first; 20 kinds at most',
          items: {
            type: 'object',
            required: ['status', 'message', 'count', 'retried'],
            properties: {
              status: outcome.status,
              message: outcome.message,
              count,
              retried: { ...count, description: 'How many of them are tried again by themselves' },
            },
          },
        },
        isComplete: { type: 'boolean', description: 'False: only the first 100,000 are counted' },
      },
    },
    createdAt: isoTime,
  },
};

export const replayPlanSchema = {
  type: 'object',
  required: ['since', 'until', 'states', 'count', 'byState', 'isComplete'],
  properties: {
    ...period,
    states: chosen,
    count: { ...count, description: 'Events that it would send' },
    byState: {
      type: 'object',
      required: DELIVERY_STATES,
      description:
        'Where each of them stands; of states that are not chosen, how many events choosing only that one would send',
      properties: Object.fromEntries(DELIVERY_STATES.map((state) => [state, count])),
    },
    isComplete: { type: 'boolean', description: 'False: there are more than the 50,000 that are looked at' },
  },
};
