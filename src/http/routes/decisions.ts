/** Decisions: what the rules of webhooks decided about events, by webhook and by event. */
import { found } from '../../model/error.ts';
import { decisionResource, shownDecision } from '../../resources/decision.ts';
import {
  DECISION_STATES,
  type Decision,
  type DecisionPlace,
} from '../../store/operations/rules/decisions.ts';
import {
  cursorFrom,
  idCursorFrom,
  listOperation,
  makeCursor,
  makeIdCursor,
  type Order,
} from '../input/list-page.ts';
import { choicesParameter, textParameter } from '../input/query.ts';
import { idFrom, isGeneratedId } from '../input/values.ts';
import { pathParameter } from '../route.ts';
import { eventOf } from './events.ts';
import { webhookOf } from './webhooks.ts';

const EVENT = textParameter('eventId', 'Only the decision about this event');
const filters = { states: choicesParameter('state', DECISION_STATES, 'Filter by state') };

/** Newest event first. */
const byEvent: Order<Decision, 'before', DecisionPlace> = {
  as: 'before',
  of: ({ sequence }) => makeCursor([sequence]),
  from(query) {
    const sequence = cursorFrom(query, [1])?.[0];
    return sequence === undefined ? undefined : { sequence, webhookId: '' };
  },
};

/** By webhook, for a single event. */
const byWebhook: Order<Decision, 'after', string> = {
  as: 'after',
  of: ({ webhookId }) => makeIdCursor(webhookId),
  from: (query) => idCursorFrom(query, (text) => isGeneratedId('wh', text)),
};

/** GET /v1/integrations/webhooks/{webhookId}/decisions */
export const listWebhookDecisions = listOperation({
  id: 'listWebhookDecisions',
  group: 'Integrations',
  summary: 'List decisions of a webhook',
  description:
    'Returns what the rule of the webhook decided about each event that the webhook subscribes to, newest event first. A ' +
    'webhook without a rule has no decisions: every event is sent. Decisions are deleted together with their events.',
  name: 'decisions',
  resource: decisionResource,
  order: byEvent,
  parameters: [pathParameter('webhookId', 'Webhook ID'), EVENT],
  filters,
  errors: { webhook_not_found: 'No webhook found', event_not_found: 'No event found' },
  async rows(call, range) {
    const { store } = call.services;
    const { teamId, id: webhookId } = await webhookOf(call);
    const eventId = EVENT.read(call.query);
    if (eventId === undefined) return store.decisions.list({ teamId, webhookId, ...range });
    const id = idFrom('evt', eventId);
    found(await store.events.get({ teamId, id }), 'event_not_found');
    return store.decisions.list({ teamId, webhookId, eventId: id, ...range });
  },
  show: shownDecision,
});

/** GET /v1/events/{eventId}/decisions */
export const listEventDecisions = listOperation({
  id: 'listEventDecisions',
  group: 'Events',
  summary: 'List decisions about an event',
  description:
    'Returns what the rules of webhooks decided about the event, by webhook ID. Webhooks without a rule have no decisions.',
  name: 'decisions',
  resource: decisionResource,
  order: byWebhook,
  parameters: [pathParameter('eventId', 'Event ID')],
  filters,
  errors: { event_not_found: 'No event found' },
  async rows(call, { after, ...range }) {
    const { teamId, id: eventId, sequence } = await eventOf(call);
    const before = after === undefined ? {} : { before: { sequence, webhookId: after } };
    return call.services.store.decisions.list({ teamId, eventId, ...before, ...range });
  },
  show: shownDecision,
});
