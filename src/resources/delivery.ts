/** Deliveries, their attempts and replays as callers see them. */

import { ATTEMPT_OUTCOMES, type Attempt, DELIVERY_ORIGINS, DELIVERY_STATES } from '../model/delivery.ts';
import { EVENT_TYPES } from '../model/event.ts';
import { parseExactly } from '../model/record.ts';
import {
  boolean,
  choice,
  integer,
  type Json,
  list,
  map,
  named,
  nullable,
  number,
  object,
  raw,
  text,
  time,
  withExample,
} from '../std/shape.ts';
import type { DeliverySummary } from '../store/operations/deliveries.ts';
import type { Replay } from '../store/operations/replays.ts';
import type { ReplayOutcome } from '../webhooks/replay.ts';
import { eventResource } from './event.ts';
import { ENDED, IDS, QUEUED, RECEIVER } from './examples.ts';

const headers = map(text());
/** The outcome of an attempt. */
const outcome = {
  outcome: choice(ATTEMPT_OUTCOMES),
  status: nullable(integer('Of the answer')),
  message: text('The outcome in plain words'),
};

const summary = object({
  id: text(),
  webhookId: text(),
  eventId: text(),
  eventType: choice(EVENT_TYPES),
  origin: choice(DELIVERY_ORIGINS),
  state: choice(DELIVERY_STATES),
  attempt: integer('Attempts made so far'),
  createdAt: time(),
  nextAttemptAt: nullable(time('Of a delivery that is `waiting`')),
  lastAttempt: nullable(object({ at: time(), ...outcome })),
});
const delivered: Json<typeof summary> = {
  id: IDS.delivery,
  webhookId: IDS.webhook,
  eventId: IDS.event,
  eventType: 'workflow_finished',
  origin: 'event',
  state: 'delivered',
  attempt: 1,
  createdAt: ENDED,
  nextAttemptAt: null,
  lastAttempt: { at: ENDED, outcome: 'ok', status: 200, message: 'Received' },
};
export const deliveryResource = named('Delivery', summary, delivered);

export const deliveryDetailResource = named(
  'DeliveryDetail',
  object({
    ...summary.fields,
    event: eventResource,
    attempts: list(
      object({
        number: integer(),
        startedAt: time(),
        durationMs: number(),
        ...outcome,
        request: nullable(object({ url: text(), headers }, 'Without the values of headers that are secret')),
        response: nullable(object({ headers, body: nullable(text('Its first 2 KiB')) })),
        remoteAddress: nullable(text()),
        timing: nullable(
          object(
            {
              queuedMs: number(),
              dnsMs: nullable(number()),
              connectMs: nullable(number()),
              tlsMs: nullable(number()),
              firstByteMs: nullable(number()),
            },
            'Milliseconds: waiting in line, then from the start of the attempt until each was done',
          ),
        ),
      }),
      'Oldest first',
    ),
  }),
  {
    ...delivered,
    event: eventResource.example,
    attempts: [
      {
        number: 1,
        startedAt: ENDED,
        durationMs: 38,
        outcome: 'ok',
        status: 200,
        message: 'Received',
        request: { url: RECEIVER, headers: { 'webhook-id': IDS.event } },
        response: { headers: { 'content-type': 'text/plain' }, body: 'thanks' },
        remoteAddress: '192.0.2.1',
        timing: { queuedMs: 1, dnsMs: 4, connectMs: 9, tlsMs: 21, firstByteMs: 37 },
      },
    ],
  },
);

/** A command that sends the event once more, from wherever it is run. */
export const deliveryCommandResource = withExample(
  object({
    command: text('For a POSIX shell'),
    hidden: list(text(), 'Headers whose values have to be put in the place of `***`'),
    validUntil: raw<string>(time('Until then receivers believe the signature').schema),
  }),
  {
    command:
      "curl -sS -i --globoff -X POST 'https://example.com/hook' \\\n  -H 'content-type: application/json' \\\n" +
      `  -H 'webhook-id: ${IDS.event}' \\\n  --data-binary '{}'`,
    hidden: [],
    validUntil: '2026-11-21T02:05:00.000Z',
  },
);

const count = (description?: string) => integer(description, { minimum: 0 });
const period = { since: time(), until: time() };
const states = list(choice(DELIVERY_STATES));

export const replayResource = named(
  'Replay',
  object({
    id: text(),
    webhookId: text(),
    state: choice(
      ['running', 'done'],
      '`done`: everything selected has been sent on its way. Whether it arrived: see `outcome`',
    ),
    states,
    ...period,
    made: count('Deliveries sent so far: new ones, and those still waiting that became due at once'),
    outcome: object(
      {
        arrived: count(),
        underWay: count('Not tried yet: in line, or held back with their webhook'),
        failed: count('Given up, or to be tried again'),
        canceled: count('The webhook was unsubscribed'),
        superseded: count('Sent again by a later replay, which counts them'),
        failures: list(
          object({
            status: outcome.status,
            message: outcome.message,
            count: count(),
            retried: count('How many of them are tried again by themselves'),
          }),
          'What the failed ones came to, the most frequent first; 20 kinds at most',
        ),
        isComplete: boolean('False: only the first 100,000 are counted'),
      },
      'What has become of those',
    ),
    createdAt: time(),
  }),
  {
    id: IDS.replay,
    webhookId: IDS.webhook,
    state: 'running',
    states: ['waiting', 'dead'],
    since: QUEUED,
    until: ENDED,
    made: 12,
    outcome: {
      arrived: 9,
      underWay: 1,
      failed: 2,
      canceled: 0,
      superseded: 0,
      failures: [{ status: null, message: 'No answer within 15 s', count: 2, retried: 2 }],
      isComplete: true,
    },
    createdAt: ENDED,
  },
);

export const replayPlanResource = named(
  'ReplayPlan',
  object({
    ...period,
    states,
    count: count('Events that it would send'),
    byState: object(
      { waiting: count(), delivered: count(), dead: count(), canceled: count() },
      'Where each of them stands; of states that are not chosen, how many events choosing only that one would send',
    ),
    isComplete: boolean('False: there are more than the 50,000 that are looked at'),
  }),
  {
    since: QUEUED,
    until: ENDED,
    states: ['waiting', 'dead'],
    count: 12,
    byState: { waiting: 10, delivered: 31, dead: 2, canceled: 0 },
    isComplete: true,
  },
);

export function shownDelivery(of: DeliverySummary) {
  return deliveryResource.of(madeOf(of));
}

export function shownDeliveryDetail(of: DeliverySummary & { body: string; attempts: Attempt[] }) {
  // Older attempts may have been deleted, so they are numbered back from the last.
  const before = Math.max(0, of.attempt - of.attempts.length);
  return deliveryDetailResource.of({
    ...madeOf(of),
    event: parseExactly(of.body),
    attempts: of.attempts.map(({ details, ...attempt }, at) => ({
      ...attempt,
      number: before + at + 1,
      message: outcomeWords(attempt),
      request: details === null ? null : { url: details.url, headers: details.requestHeaders },
      response:
        attempt.status === null ? null : { headers: details?.responseHeaders ?? {}, body: attempt.response },
      remoteAddress: details?.remoteAddress ?? null,
      timing: details?.timing ?? null,
    })),
  });
}

function madeOf({ last, nextAt, ...of }: DeliverySummary) {
  return {
    ...of,
    nextAttemptAt: of.state === 'waiting' ? nextAt : null,
    lastAttempt: last === null ? null : { ...last, message: outcomeWords(last) },
  };
}

export function shownReplay(of: Replay, { failures, isComplete, ...counts }: ReplayOutcome) {
  const counted = Object.values(counts).reduce((sum, one) => sum + one, 0);
  return replayResource.of({
    ...of,
    outcome: {
      ...counts,
      superseded: isComplete ? Math.max(0, of.made - counted) : 0,
      failures: failures.map(({ outcome: kind, ...failure }) => ({
        ...failure,
        message: kind === null ? 'Given up' : outcomeWords({ ...failure, outcome: kind }),
      })),
      isComplete,
    },
  });
}

/** The outcome of one attempt: `Delivered: the receiver answered 204`, or why not. */
function outcomeWords(attempt: Pick<Attempt, 'outcome' | 'status' | 'error'>): string {
  if (attempt.outcome === 'ok') return `Delivered: the receiver answered ${attempt.status ?? '2xx'}`;
  if (attempt.error !== null) return attempt.error;
  return attempt.status === null
    ? `It failed (${attempt.outcome})`
    : `The receiver answered ${attempt.status}`;
}
