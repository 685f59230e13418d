/** What the rules of webhooks decided about events: why an event was not sent. */
import { useEffect } from 'react';
import type { Decision, DecisionState, WebhookDetail } from '../../../../client/src/flowhook-client.ts';
import { column, timeColumn } from '../../parts/columns.tsx';
import { DataTable } from '../../parts/data-table.tsx';
import { FilterBar } from '../../parts/filter-bar.tsx';
import { choices, useFilters } from '../../parts/filters.ts';
import { count } from '../../parts/format.ts';
import { EmptyState, PageLink } from '../../parts/page.tsx';
import type { Column } from '../../parts/rows.tsx';
import { StateBadge, stateOptions } from '../../parts/state-badge.tsx';
import { Message } from '../../parts/values.tsx';
import { type List, useList } from '../../queries/list.ts';
import { readAgain } from '../../queries/read-again.ts';
import { decisionList, eventDecisionList } from '../../queries/webhooks.ts';
import { UrlOf } from './deliveries.tsx';

const STATES = stateOptions(['sent', 'gathered', 'filtered', 'pending']);

/** The decisions about the events of a webhook. */
export function WebhookDecisions({ webhook }: { webhook: WebhookDetail }) {
  const filters = useFilters('state');
  const list = useDecisions(
    decisionList(webhook.id, { state: choices<DecisionState>(filters.values.state) }),
  );
  return (
    <>
      <FilterBar
        filters={filters}
        fields={[{ kind: 'many', name: 'state', label: 'State', options: STATES }]}
      />
      <DataTable
        label="Decisions"
        noun="decision"
        list={list}
        columns={COLUMNS_OF_WEBHOOK}
        idOf={({ eventId }) => eventId}
        filters={filters}
        empty={
          <EmptyState title="No decisions yet">
            This list shows, for each event, whether the rule of this webhook sent it, and why not.
          </EmptyState>
        }
      />
    </>
  );
}

/** The decisions about an event that have no delivery. */
export function useUnsent(eventId: string): List<Decision> {
  const list = useDecisions(eventDecisionList(eventId));
  const rows = list.rows.filter(({ state }) => state !== 'sent');
  return { ...list, rows, total: null };
}

/** No event says that a decision was made, so pending ones are fetched again. */
const PENDING_MS = 1_000;

function useDecisions(query: ReturnType<typeof decisionList>): List<Decision> {
  const list = useList(query);
  const hasPending = list.rows.some(({ state }) => state === 'pending');
  useEffect(() => {
    if (!hasPending) return;
    const timer = setInterval(() => readAgain({ kind: 'decisions', ids: null }), PENDING_MS);
    return () => clearInterval(timer);
  }, [hasPending]);
  return list;
}

export function UnsentTable({ list }: { list: List<Decision> }) {
  return (
    <DataTable
      label="Webhooks that were not sent this event"
      noun="webhook"
      list={list}
      columns={COLUMNS_OF_EVENT}
      idOf={({ webhookId }) => webhookId}
      maxHeight="400px"
      empty={null}
    />
  );
}

const RESULT: Column<Decision> = column('Result', 'wraps', ({ state, reason, matched, examined }) =>
  state === 'pending' ? (
    'Not decided yet'
  ) : reason !== null ? (
    <Message text={reason} isBad={false} />
  ) : (
    matched !== null && examined !== null && `${count(matched)} of ${count(examined)} differences match`
  ),
);

const COLUMNS_OF_WEBHOOK: Column<Decision>[] = [
  column('State', 'fits', ({ state, eventId, deliveryId }) =>
    deliveryId === null ? (
      <PageLink to="/events/$eventId" params={{ eventId }} c="inherit" underline="hover">
        <StateBadge state={state} />
      </PageLink>
    ) : (
      <PageLink to="/deliveries/$deliveryId" params={{ deliveryId }} c="inherit" underline="hover">
        <StateBadge state={state} />
      </PageLink>
    ),
  ),
  column('Event', '190px', ({ eventId, eventType }) => (
    <PageLink to="/events/$eventId" params={{ eventId }} c="inherit">
      {eventType}
    </PageLink>
  )),
  timeColumn('Created', ({ createdAt }) => createdAt),
  RESULT,
];

const COLUMNS_OF_EVENT: Column<Decision>[] = [
  column('Webhook', '320px', ({ webhookId }) => (
    <PageLink to="/webhooks/$webhookId" params={{ webhookId }} search={{ tab: 'decisions' }} c="inherit">
      <UrlOf webhookId={webhookId} />
    </PageLink>
  )),
  column('State', 'fits', ({ state }) => <StateBadge state={state} />),
  RESULT,
];
