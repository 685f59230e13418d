/** What the rule of a webhook decided about an event, as the API returns it. */
import { EVENT_TYPES } from '../model/event.ts';
import { choice, integer, named, nullable, object, text, time } from '../std/shape.ts';
import { DECISION_STATES, type Decision } from '../store/operations/rules/decisions.ts';
import { ENDED, IDS } from './examples.ts';

const counted = (what: string) =>
  nullable(integer(`${what}. \`null\` while the decision is pending, and if the rule reads no records`));

export const decisionResource = named(
  'Decision',
  object({
    webhookId: text(),
    eventId: text(),
    eventType: choice(EVENT_TYPES),
    sequence: integer('`sequence` of the event'),
    workflowId: nullable(text('ID of the workflow. `null` if the event is about no workflow')),
    state: choice(
      DECISION_STATES,
      '`pending`: not decided yet; `sent`: there is a delivery; `gathered`: what matches is in ' +
        'a digest, which is sent later; `filtered`: nothing is sent, and `reason` says why',
    ),
    matched: counted('Number of differences that match'),
    examined: counted('Number of differences of the event'),
    reason: nullable(
      text('Human-readable reason. `null` unless nothing is sent immediately, or not all was examined'),
    ),
    deliveryId: nullable(text('ID of the delivery. `null` unless the event is sent')),
    filter: nullable(text('The filter that was in force when the event happened. `null` if there was none')),
    createdAt: time(),
  }),
  {
    webhookId: IDS.webhook,
    eventId: IDS.event,
    eventType: 'workflow_data_change',
    sequence: 41,
    workflowId: IDS.workflow,
    state: 'filtered',
    matched: 0,
    examined: 12,
    reason: '0 of 12 differences match',
    deliveryId: null,
    filter: 'fallsBy(previous.price, record.price, "5%")',
    createdAt: ENDED,
  },
);

export function shownDecision({ type, ...decision }: Decision) {
  return decisionResource.of({ ...decision, eventType: type });
}
