/** Deliveries, their attempts and replays, as the API returns them. */

import { ATTEMPT_OUTCOMES, type Attempt, DELIVERY_ORIGINS, DELIVERY_STATES } from '../model/delivery.ts';
import { EVENT_TYPES } from '../model/event.ts';
import { parseExactly } from '../std/exact-json.ts';
import {
  as,
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
import type { DeliverySummary } from '../store/operations/deliveries/deliveries.ts';
import type { Replay } from '../store/operations/deliveries/replays.ts';
import type { ReplayOutcome } from '../webhooks/replay.ts';
import { eventResource } from './event.ts';
import { ENDED, IDS, QUEUED, RECEIVER } from './examples.ts';

const headers = map(text());
const outcome = {
  outcome: choice(ATTEMPT_OUTCOMES),
  status: nullable(integer('HTTP status of the response. `null` if there was no response')),
  message: text('Human-readable outcome'),
};

const summary = object({
  id: text(),
  webhookId: text(),
  webhookName: nullable(text('Name of the webhook. `null` if it has none')),
  webhookUrl: nullable(text('URL of the webhook. `null` if it was removed long ago')),
  workflowId: nullable(text('Workflow of the event. `null` if the event is about the team')),
  eventId: text(),
  eventType: choice(EVENT_TYPES),
  origin: choice(DELIVERY_ORIGINS),
  state: choice(DELIVERY_STATES),
  attempt: integer('Number of attempts made so far'),
  createdAt: time(),
  nextAttemptAt: nullable(time('Time of the next attempt (ISO 8601). `null` unless `state` is `waiting`')),
  lastAttempt: nullable(
    object(
      { at: time(), ...outcome },
      'Most recent attempt. `null` if there is none, or it is no longer stored',
    ),
  ),
});
const delivered: Json<typeof summary> = {
  id: IDS.delivery,
  webhookId: IDS.webhook,
  webhookName: null,
  webhookUrl: RECEIVER,
  workflowId: IDS.workflow,
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
    messageId: text(
      'Value of the header `webhook-id`: ID of the event, or of a message about ended cooldowns',
    ),
    event: as('Event that the delivery is about', eventResource),
    body: text('Body that is sent, to the byte. A rule of the webhook may select and shape it'),
    attempts: list(
      object({
        number: integer('Attempt number, counting from 1'),
        startedAt: time(),
        durationMs: number(),
        ...outcome,
        request: nullable(
          object(
            { url: text(), headers },
            'Request as sent; `***` replaces credentials and the values of custom headers',
          ),
        ),
        response: nullable(
          object(
            { headers, body: nullable(text('First 2 KiB of the response body. `null` if there is none')) },
            'Response of the endpoint. `null` if there was none',
          ),
        ),
        remoteAddress: nullable(text('IP address of the endpoint. `null` if no connection was made')),
        timing: nullable(
          object(
            {
              queuedMs: number(),
              dnsMs: nullable(number()),
              connectMs: nullable(number()),
              tlsMs: nullable(number()),
              firstByteMs: nullable(number()),
            },
            'Timings in milliseconds. `queuedMs`: wait before the attempt; all others: from the start of the attempt ' +
              'to the end of the step, `null` if the step was not reached or not needed',
          ),
        ),
      }),
      'Stored attempts, oldest first. Attempts are deleted after 14 days (`FLOWHOOK_KEEP_ATTEMPTS_DAYS`)',
    ),
  }),
  {
    ...delivered,
    messageId: IDS.event,
    event: eventResource.example,
    body: JSON.stringify(eventResource.example),
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

/** A shell command that sends the event again. */
export const deliveryCommandResource = withExample(
  object({
    command: text('`curl` command for a POSIX shell'),
    hidden: list(text(), 'Names of headers whose values must be filled in where the command has `***`'),
    validUntil: raw<string>(
      time('Time until which receivers accept the signature (5 minutes from now)').schema,
    ),
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
const period = { since: time('Start of the period, inclusive'), until: time('End of the period, inclusive') };
const states = list(choice(DELIVERY_STATES), 'States of the selected deliveries');

export const replayResource = named(
  'Replay',
  object({
    id: text(),
    webhookId: text(),
    state: choice(
      ['running', 'done'],
      '`running`: deliveries are still being queued; `done`: all are queued, and `outcome` says how many arrived',
    ),
    states,
    ...period,
    made: count('Number of deliveries queued so far: new ones, and waiting ones that became due immediately'),
    outcome: object(
      {
        arrived: count('Successful deliveries'),
        underWay: count('Deliveries not attempted yet: queued, or held back with their webhook'),
        failed: count('Deliveries whose last attempt failed, whether or not they will be retried'),
        canceled: count('Deliveries canceled because the webhook was unsubscribed'),
        superseded: count(
          'Deliveries that a later replay has sent again; only the later replay counts their results',
        ),
        failures: list(
          object({
            status: outcome.status,
            message: outcome.message,
            count: count('Number of failed deliveries with this outcome'),
            retried: count('Number of these deliveries that will be retried automatically'),
          }),
          'Failed deliveries grouped by outcome, most frequent first (at most 20 groups)',
        ),
        isComplete: boolean(
          '`false` if the replay has 100,000 deliveries or more: only the first 100,000 are counted',
        ),
      },
      'Results of the deliveries queued so far',
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
      failures: [{ status: null, message: 'No response within 15 s', count: 2, retried: 2 }],
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
    count: count('Number of events that the replay would send'),
    byState: object(
      { waiting: count(), delivered: count(), dead: count(), canceled: count() },
      'Number of events in each delivery state, including states that `states` does not select',
    ),
    isComplete: boolean('`false` if 50,000 deliveries or more match: the counts are then lower bounds'),
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
  return deliveryResource.of(deliveryFields(of));
}

export function shownDeliveryDetail(
  of: DeliverySummary & { body: string; eventBody: string; attempts: Attempt[] },
) {
  // Older attempts may have been deleted, so attempt numbers are counted back from the last attempt.
  const before = Math.max(0, of.attempt - of.attempts.length);
  return deliveryDetailResource.of({
    ...deliveryFields(of),
    messageId: of.messageId ?? of.eventId,
    event: parseExactly(of.eventBody),
    body: of.body,
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

function deliveryFields({ last, nextAt, ...of }: DeliverySummary) {
  return {
    ...of,
    nextAttemptAt: of.state === 'waiting' ? nextAt : null,
    lastAttempt: last === null ? null : { ...last, message: outcomeWords(last) },
  };
}

export function shownReplay(of: Replay, outcome: ReplayOutcome) {
  return replayResource.of(replayFields(of, outcome));
}

/** The values of a replay for `replayResource`. */
export function replayFields(of: Replay, { failures, isComplete, ...counts }: ReplayOutcome) {
  const counted = Object.values(counts).reduce((sum, one) => sum + one, 0);
  return {
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
  };
}

/** `Delivered: the receiver returned 204`, or why the attempt failed. */
function outcomeWords(attempt: Pick<Attempt, 'outcome' | 'status' | 'error'>): string {
  if (attempt.outcome === 'ok') return `Delivered: the receiver returned ${attempt.status ?? '2xx'}`;
  if (attempt.error !== null) return attempt.error;
  return attempt.status === null ? `Failed (${attempt.outcome})` : `The receiver returned ${attempt.status}`;
}
