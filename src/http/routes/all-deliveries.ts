/** Deliveries to all webhooks of a team. */

import { DELIVERY_STATES } from '../../model/delivery.ts';
import { EVENT_TYPES } from '../../model/event.ts';
import { deliveryResource, shownDelivery } from '../../resources/delivery.ts';
import {
  byId,
  listOperation,
  makeIdCursor,
  PERIOD,
  WORKFLOW_FILTER,
  workflowFilter,
} from '../input/list-page.ts';
import { choicesParameter, statusParameter, textParameter } from '../input/query.ts';
import { idFrom } from '../input/values.ts';

/** Maximum length of a searched text, in characters. */
const MAX_TEXT = 200;

/** GET /v1/deliveries */
export const listDeliveries = listOperation({
  id: 'listDeliveries',
  group: 'Integrations',
  summary: 'List deliveries',
  description:
    'Returns the deliveries to all webhooks of the team, newest first. A page searches at most 2,000 deliveries. If ' +
    'few of them match `workflowId`, `event`, `status` or `q`, it has fewer items than `limit`, possibly none, and the ' +
    'next page continues there. The last page is the one without a `Link` header.',
  name: 'deliveries',
  resource: deliveryResource,
  order: byId('before', 'dlv'),
  parameters: [WORKFLOW_FILTER],
  filters: {
    states: choicesParameter('state', DELIVERY_STATES, 'Filter by state'),
    webhookId: textParameter('webhookId', 'Filter by webhook ID'),
    eventTypes: choicesParameter('event', EVENT_TYPES, 'Filter by event type'),
    status: statusParameter(
      'status',
      'Filter by the last attempt: its status, such as `503`, a class such as `5xx`, or `none` if there was no response',
    ),
    q: textParameter(
      'q',
      'Text in the last error, or in the name or URL of the webhook, ignoring the case of ASCII letters; or the exact ID ' +
        'of the delivery or its event',
      MAX_TEXT,
    ),
    ...PERIOD,
  },
  errors: {
    workflow_not_found: 'No workflow found',
    webhook_not_found: 'The filter is not the ID of a webhook',
  },
  async rows(call, { limit, ...range }) {
    if (range.webhookId !== undefined) idFrom('wh', range.webhookId);
    const { rows, next } = await call.services.store.deliveries.search({
      teamId: call.caller.teamId,
      ...(await workflowFilter(call)),
      ...range,
      limit: limit - 1,
    });
    return { rows, next: next === null ? null : makeIdCursor(next) };
  },
  show: shownDelivery,
});
