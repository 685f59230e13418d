/** The list of webhooks with details: filtered by state, label and text, and sorted. */

import { maskedUrl } from '../../model/messages/destination.ts';
import { MAX_LABEL, type Webhook } from '../../model/webhook.ts';
import { webhookDetailResource } from '../../resources/webhook.ts';
import { everyRowInTurn, listOperation, WORKFLOW_FILTER, workflowFilter } from '../input/list-page.ts';
import { choicesParameter, MAX_SEARCHED, textParameter } from '../input/query.ts';
import { Sorting } from '../input/sorted-list.ts';
import type { KeyedCall } from '../route.ts';
import { MASKED, mayManage, shownTo } from './webhooks.ts';

/** The states that the list filters by: a `failing` webhook is active, but its last attempts have failed. */
const STANDINGS = ['active', 'failing', 'paused'] as const;

function standingOf({ state, failingSince }: Webhook): (typeof STANDINGS)[number] {
  if (state === 'paused') return 'paused';
  return failingSince === null ? 'active' : 'failing';
}

const sorting = new Sorting('wh', {
  name: ({ name }: Webhook) => name?.toLowerCase() ?? null,
  createdAt: ({ createdAt }) => createdAt,
  lastSuccessAt: ({ lastSuccessAt }) => lastSuccessAt,
  failingSince: ({ failingSince }) => failingSince,
});

/** GET /v1/integrations/webhooks */
export const listWebhookDetails = listOperation({
  id: 'listWebhookDetails',
  group: 'Integrations',
  summary: 'List webhooks with details',
  description:
    'Returns the webhooks of the team with their settings and state, oldest first unless `sort` is set. In the filter ' +
    '`state`, `failing` selects the active webhooks whose last attempt failed, and `active` selects the others. ' +
    MASKED,
  name: 'webhooks',
  resource: webhookDetailResource,
  // The webhook that the cursor names may have been deleted. The cursor still marks the position in the list.
  order: sorting.order,
  parameters: [WORKFLOW_FILTER],
  filters: {
    standings: choicesParameter('state', STANDINGS, 'Filter by state'),
    label: textParameter('label', 'Filter by label', MAX_LABEL),
    q: textParameter(
      'q',
      'Text in the name, the description, the URL or a label, ignoring case; or the exact ID of the webhook. In a masked ' +
        'URL, only what is shown is searched',
      MAX_SEARCHED,
    ),
    sort: sorting.parameter,
  },
  errors: { workflow_not_found: 'No workflow found' },
  async rows(call, { standings, label, q, sort, limit, after }) {
    const { services, caller } = call;
    const whose = { teamId: caller.teamId, ...(await workflowFilter(call)) };
    const text = q?.toLowerCase();
    const isWanted = (webhook: Webhook) =>
      (standings?.includes(standingOf(webhook)) ?? true) &&
      (label === undefined || webhook.labels.includes(label)) &&
      (text === undefined || webhook.id === q || contains(webhook, text, { isMasked: !mayManage(call) }));
    const { list } = services.store.webhooks;
    if (sort !== undefined) {
      return sorting.first(filtered(everyRowInTurn(list, whose), isWanted), { sort, after, limit });
    }
    const isWhole = standings === undefined && label === undefined && q === undefined;
    const from = { ...whose, after: after?.id, ...(isWhole ? { limit } : {}) };
    const found: Webhook[] = [];
    for await (const webhook of filtered(everyRowInTurn(list, from), isWanted)) {
      found.push(webhook);
      if (found.length === limit) break;
    }
    return found;
  },
  show: (webhook, call: KeyedCall<'webhooks'>) => shownTo(call, webhook),
});

async function* filtered<Row>(
  rows: AsyncIterable<Row>,
  isWanted: (row: Row) => boolean,
): AsyncGenerator<Row, void> {
  for await (const row of rows) if (isWanted(row)) yield row;
}

/** Whether a text for people, or the URL as the caller sees it, contains this text in lower case. */
function contains(
  { name, description, labels, url, rule }: Webhook,
  text: string,
  { isMasked }: { isMasked: boolean },
): boolean {
  const texts = [name, description, isMasked ? maskedUrl(url, rule) : url, ...labels];
  return texts.some((one) => one?.toLowerCase().includes(text));
}
