/** What a webhook was sent, live, and sending some or much of it once more. */
import { Stack, Text } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import type { Delivery, DeliveryState, WebhookDetail } from 'flowhook-client';
import { useMemo, useState } from 'react';
import { flowhook } from '../../client.ts';
import { ActionButton, useAction } from '../../parts/action.tsx';
import { CopyAsCurl } from '../../parts/copy.tsx';
import { DataTable } from '../../parts/data-table.tsx';
import { FilterBar } from '../../parts/filter-bar.tsx';
import { choices, PERIODS, stringifySearch, useFilters, useSince } from '../../parts/filters.ts';
import { count, many } from '../../parts/format.ts';
import { EmptyState, PageLink } from '../../parts/page.tsx';
import type { Column } from '../../parts/rows.tsx';
import { StateBadge } from '../../parts/state-badge.tsx';
import { Dim, Prose, Time, UrlText, useNow } from '../../parts/values.tsx';
import { useList } from '../../queries/list.ts';
import { deliveryList, webhookQuery } from '../../queries/webhooks.ts';
import { isAfter, waitOf } from './health.ts';
import { ReplayDialog, ReplayProgress } from './replay.tsx';

const STATES = [
  { value: 'waiting', label: 'waiting' },
  { value: 'delivered', label: 'delivered' },
  { value: 'dead', label: 'given up' },
  { value: 'canceled', label: 'canceled' },
];
/** Of one call. */
const MOST = 100;
const COLUMNS = deliveryColumns({ withWebhook: false });

export function WebhookDeliveries({ webhook }: { webhook: WebhookDetail }) {
  const filters = useFilters('state', 'within');
  const replays = useFilters('replay');
  const state = choices<DeliveryState>(filters.values.state);
  const since = useSince(filters.values.within);
  const filter = useMemo(() => ({ state, since }), [state, since]);
  const list = useList(deliveryList(webhook.id, filter));
  const [ids, setIds] = useState<ReadonlySet<string>>(new Set());
  const [isAsking, asking] = useDisclosure(false);
  const chosen = list.rows.filter(({ id }) => ids.has(id));
  const { replay } = replays.values;
  return (
    <>
      {replay !== undefined && (
        <ReplayProgress
          webhookId={webhook.id}
          replayId={replay}
          onClose={() => replays.set({ replay: undefined })}
        />
      )}
      <FilterBar
        filters={filters}
        fields={[
          { kind: 'many', name: 'state', label: 'State', options: STATES },
          { kind: 'one', name: 'within', label: 'Time', options: PERIODS },
        ]}
      >
        <ReplayChosen webhookId={webhook.id} chosen={chosen} onDone={() => setIds(new Set())} />
        <CopyAsCurl
          path={`/v1/integrations/webhooks/${webhook.id}/deliveries${stringifySearch({ state: filters.values.state, since })}`}
        />
        <ActionButton icon="refresh" action={asking.open}>
          Replay…
        </ActionButton>
      </FilterBar>
      <DataTable
        label="Deliveries"
        noun="delivery"
        list={list}
        columns={COLUMNS}
        selection={{ ids, onChange: setIds }}
        filters={filters}
        empty={
          <EmptyState title="No deliveries yet">
            “Send test event” above sends one now. Others follow with the events that it is subscribed to.
          </EmptyState>
        }
      />
      <ReplayDialog
        webhook={webhook}
        isOpen={isAsking}
        onClose={asking.close}
        onBegun={(made) => replays.set({ replay: made.id })}
      />
    </>
  );
}

function ReplayChosen({
  webhookId,
  chosen,
  onDone,
}: {
  webhookId: string;
  chosen: readonly Delivery[];
  onDone: () => void;
}) {
  const replay = useAction({
    run: async () => {
      const sent = new Set<string>();
      for (let start = 0; start < chosen.length; start += MOST) {
        const some = chosen.slice(start, start + MOST).map(({ id }) => id);
        for (const id of await flowhook.webhooks.replay(webhookId, some)) sent.add(id);
      }
      // Several of one event are sent once.
      return sent.size;
    },
    changes: ['deliveries'],
    done: (made) =>
      made === 0 ? { nothing: 'Nothing was sent again' } : `${many(made, 'delivery')} on the way again`,
    onDone,
  });
  if (chosen.length === 0) return null;
  return (
    <ActionButton isMain icon="send" action={replay}>
      Send {many(chosen.length, 'delivery')} again
    </ActionButton>
  );
}

/** @param by.withWebhook shows the webhook, for deliveries of one event; otherwise the event, for those of one webhook */
export function deliveryColumns({ withWebhook }: { withWebhook: boolean }): (Column<Delivery> | false)[] {
  return [
    {
      id: 'state',
      header: 'State',
      width: 'fits',
      cell: ({ id, state }) => (
        <PageLink to="/deliveries/$deliveryId" params={{ deliveryId: id }} c="inherit" underline="hover">
          <StateBadge state={state} />
        </PageLink>
      ),
    },
    withWebhook && {
      id: 'webhook',
      header: 'Webhook',
      width: '320px',
      cell: ({ webhookId }) => (
        <PageLink to="/webhooks/$webhookId" params={{ webhookId }} c="inherit">
          <UrlOf webhookId={webhookId} />
        </PageLink>
      ),
    },
    !withWebhook && {
      id: 'event',
      header: 'Event',
      width: '180px',
      cell: ({ eventType, origin }) => (
        <>
          {eventType}
          {origin === 'replay' && <Dim> · replay</Dim>}
        </>
      ),
    },
    { id: 'created', header: 'Created', width: 'fits', cell: ({ createdAt }) => <Time at={createdAt} /> },
    {
      id: 'attempts',
      header: 'Attempts',
      width: 'fits',
      align: 'end',
      cell: ({ attempt }) => <span className="numbers">{count(attempt)}</span>,
    },
    { id: 'outcome', header: 'Outcome', cell: (delivery) => <Outcome delivery={delivery} /> },
  ];
}

function Outcome({ delivery }: { delivery: Delivery }) {
  const { state, lastAttempt } = delivery;
  return (
    <Stack gap={0} miw={0}>
      {lastAttempt !== null && (
        <Text
          span
          inherit
          truncate
          c={lastAttempt.outcome === 'ok' ? 'dimmed' : 'var(--mantine-color-error)'}
          title={lastAttempt.message}
        >
          <Prose text={lastAttempt.message} />
        </Text>
      )}
      {state === 'waiting' && (
        <Dim style={{ whiteSpace: 'normal' }}>
          <NextTry delivery={delivery} />
        </Dim>
      )}
    </Stack>
  );
}

/** Its id, until it is known where it goes, and when it is gone. */
function UrlOf({ webhookId }: { webhookId: string }) {
  const { data: webhook } = useQuery({ ...webhookQuery(webhookId), retry: false });
  return webhook === undefined ? webhookId : <UrlText url={webhook.url} />;
}

/** When the next attempt is made, and what holds it back. */
function NextTry({ delivery }: { delivery: Delivery }) {
  const { data: webhook } = useQuery({ ...webhookQuery(delivery.webhookId), retry: false });
  const now = useNow();
  const wait = waitOf(delivery, webhook, now);
  if (wait === undefined) return 'is being sent';
  const { why, at } = wait;
  if (webhook?.state === 'paused') return 'until the webhook is resumed';
  if (why !== null) {
    return (
      <span title={why}>
        held back
        {isAfter(at, now) && (
          <>
            , next attempt <Time at={at} as="at" />
          </>
        )}
      </span>
    );
  }
  return (
    <>
      {delivery.lastAttempt === null ? 'first' : 'again'} <Time at={at} />
    </>
  );
}

/** @param props.what that goes out: `The next attempt` unless told */
export function NextAttempt({ at, what = 'The next attempt' }: { at: string | null; what?: string }) {
  const now = useNow();
  if (at === null) return null;
  return (
    <>
      {what} goes out {isAfter(at, now) ? <Time at={at} as="at" /> : 'now'}.
    </>
  );
}
