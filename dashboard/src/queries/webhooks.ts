/** Queries for webhooks, deliveries and inspectors. */
import type { DecisionState, DeliveryState } from '../../../client/src/flowhook-client.ts';
import { flowhook } from '../client.ts';
import { ask, type FilterOf, listQuery } from './list.ts';

export const webhookList = (filter: FilterOf<typeof flowhook.webhooks.listDetails> = {}) =>
  listQuery(['webhooks', 'list', filter], (cursor, signal) =>
    flowhook.webhooks.listDetails({ ...filter, signal }).page(cursor),
  );

/** Fetches at most one webhook, to find out whether there is any. */
export const anyWebhook = () =>
  listQuery(['webhooks', 'list', 'any'], async (_, signal) => {
    const { items } = await flowhook.webhooks.listDetails({ limit: 1, signal }).page();
    return { items, next: null };
  });

export const webhookQuery = (webhookId: string) =>
  ask(['webhooks', 'one', webhookId], (signal) => flowhook.webhooks.get(webhookId, { signal }));

export const deliveryList = (
  webhookId: string,
  filter: { state?: DeliveryState[] | undefined; since?: string | undefined } = {},
) =>
  listQuery(
    ['deliveries', 'list', webhookId, filter],
    (cursor, signal) => flowhook.webhooks.deliveries(webhookId, { ...filter, signal }).page(cursor),
    { newestFirst: ({ id }) => id, one: (deliveryId) => flowhook.deliveries.get(deliveryId) },
  );

export const deliveryQuery = (deliveryId: string) =>
  ask(['deliveries', 'one', deliveryId], (signal) => flowhook.deliveries.get(deliveryId, { signal }));

/** The events that a rule is tried on. */
const TRIED = 20;

/** What a webhook with this rule would have been sent. */
export const triedRuleQuery = (input: Parameters<typeof flowhook.webhooks.try>[0] | undefined) =>
  ask(
    ['webhooks', 'tried', input],
    (signal) => flowhook.webhooks.try({ ...input, last: TRIED }, { signal }),
    { gcTime: 60_000 },
  );

/** What rules decided about the events of a webhook. */
export const decisionList = (webhookId: string, filter: { state?: DecisionState[] | undefined } = {}) =>
  listQuery(
    ['decisions', 'list', webhookId, filter],
    (cursor, signal) => flowhook.webhooks.decisions(webhookId, { ...filter, signal }).page(cursor),
    { newestFirst: ({ eventId }) => eventId },
  );

/** What rules decided about an event. */
export const eventDecisionList = (eventId: string) =>
  listQuery(['decisions', 'list', 'of', eventId], (cursor, signal) =>
    flowhook.events.decisions(eventId, { signal }).page(cursor),
  );

/** What a replay would send. Never cached, because the count changes constantly. */
export const replayPlanQuery = (webhookId: string, selection: { since: string; states: DeliveryState[] }) =>
  ask(
    ['deliveries', 'plan', webhookId, selection],
    (signal) => flowhook.webhooks.planReplay(webhookId, selection, { signal }),
    { gcTime: 0 },
  );

/** In a team with more webhooks, some may be missing. */
const MAX_SEARCHED = 1_000;

/** The webhooks with this URL, with or without a query string. */
export const webhooksOfUrlQuery = (url: string) =>
  ask(['webhooks', 'of url', url], async (signal) => {
    const { items } = await flowhook.webhooks.listDetails({ limit: MAX_SEARCHED, signal }).page();
    return items.filter((webhook) => webhook.url.split('?')[0] === url);
  });

/** Whether a person gets a message when a run of any workflow fails. */
export const isNoticedQuery = () =>
  ask(['webhooks', 'noticed'], async (signal) => {
    const { items } = await flowhook.webhooks.listDetails({ limit: MAX_SEARCHED, signal }).page();
    return items.some(
      ({ workflowId, events, format }) =>
        workflowId === null &&
        ['mail', 'slack', 'discord', 'teams'].includes(format) &&
        ['*', 'workflow_failed'].some((event) => events.includes(event)),
    );
  });

/** Counts the webhooks of a workflow, and those of them that are failing or paused. */
export interface WebhookBadge {
  total: number;
  inTrouble: number;
}

/** Badges by workflow id. */
export const webhookBadgesQuery = () =>
  ask(
    ['webhooks', 'badges'],
    async (signal) => {
      const badges = new Map<string, WebhookBadge>();
      const { items } = await flowhook.webhooks.listDetails({ limit: MAX_SEARCHED, signal }).page();
      for (const { workflowId, state, failingSince } of items) {
        if (workflowId === null) continue;
        const badge = badges.get(workflowId) ?? { total: 0, inTrouble: 0 };
        badge.total += 1;
        if (state === 'paused' || failingSince !== null) badge.inTrouble += 1;
        badges.set(workflowId, badge);
      }
      return badges;
    },
    // Structural sharing cannot compare maps.
    { structuralSharing: false },
  );

export const inspectorsQuery = () =>
  ask(['inspectors', 'all'], async (signal) => (await flowhook.inspectors.list({ signal })).toReversed());

export const inspectorQuery = (inspectorId: string) =>
  ask(['inspectors', 'one', inspectorId], (signal) => flowhook.inspectors.get(inspectorId, { signal }));

/** An inspector keeps at most 100 requests: one page. */
export const requestList = (inspectorId: string) =>
  listQuery(['inspectors', 'list', inspectorId], (cursor, signal) =>
    flowhook.inspectors.requests(inspectorId, { limit: 100, signal }).page(cursor),
  );
