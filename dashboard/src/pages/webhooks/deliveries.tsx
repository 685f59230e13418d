/** The deliveries of a webhook, and actions that resend some or many of them. */
import { Stack } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import type { Delivery, DeliveryState, WebhookDetail } from '../../../../client/src/flowhook-client.ts';
import { flowhook } from '../../client.ts';
import { ActionButton, useAction } from '../../parts/action.tsx';
import { column, countColumn, timeColumn } from '../../parts/columns.tsx';
import { CopyAsCurl } from '../../parts/copy.tsx';
import { DataTable } from '../../parts/data-table.tsx';
import { FilterBar } from '../../parts/filter-bar.tsx';
import { choices, PERIODS, stringifySearch, useFilters, useSince } from '../../parts/filters.ts';
import { many } from '../../parts/format.ts';
import { EmptyState, PageLink } from '../../parts/page.tsx';
import type { Column } from '../../parts/rows.tsx';
import { StateBadge, stateOptions } from '../../parts/state-badge.tsx';
import { Dim, Message, Time, UrlText, useNow } from '../../parts/values.tsx';
import { useList } from '../../queries/list.ts';
import { deliveryList, webhookQuery } from '../../queries/webhooks.ts';
import { isAfter, waitOf } from './health.ts';
import { ReplayDialog, ReplayProgress } from './replay.tsx';

const STATES = stateOptions(['waiting', 'delivered', 'dead', 'canceled']);
/** The maximum number of deliveries per call. */
const MAX_PER_CALL = 100;
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
        <ResendSelected webhookId={webhook.id} chosen={chosen} onDone={() => setIds(new Set())} />
        <CopyAsCurl
          path={`/v1/integrations/webhooks/${webhook.id}/deliveries${stringifySearch({ state: filters.values.state, since })}`}
        />
        <ActionButton icon="refresh" action={asking.open} label="Replay…" />
      </FilterBar>
      <DataTable
        label="Deliveries"
        noun="delivery"
        list={list}
        columns={COLUMNS}
        selection={{ ids, onChange: setIds }}
        filters={filters}
        empty={
          <EmptyState title="No deliveries yet">Click “Send test event” above to send one now.</EmptyState>
        }
      />
      <ReplayDialog
        webhook={webhook}
        isOpen={isAsking}
        onClose={asking.close}
        onStarted={(made) => replays.set({ replay: made.id })}
      />
    </>
  );
}

function ResendSelected(props: { webhookId: string; chosen: readonly Delivery[]; onDone: () => void }) {
  const { webhookId, chosen, onDone } = props;
  const resend = useAction({
    run: async () => {
      const sent = new Set<string>();
      for (let start = 0; start < chosen.length; start += MAX_PER_CALL) {
        const some = chosen.slice(start, start + MAX_PER_CALL).map(({ id }) => id);
        for (const id of await flowhook.webhooks.replay(webhookId, some)) sent.add(id);
      }
      // If several deliveries have the same event, the event is sent once.
      return sent.size;
    },
    changes: ['deliveries'],
    done: (made) => (made === 0 ? { nothing: 'Nothing was resent' } : `Resending ${many(made, 'delivery')}`),
    onDone,
  });
  if (chosen.length === 0) return null;
  return (
    <ActionButton isMain icon="send" action={resend} label={`Resend ${many(chosen.length, 'delivery')}`} />
  );
}

/**
 * @param by.withWebhook true: a column shows the webhook, for the deliveries of one event; false: a column shows the
 *   event, for the deliveries of one webhook
 */
export function deliveryColumns({ withWebhook }: { withWebhook: boolean }): (Column<Delivery> | false)[] {
  return [
    column('State', 'fits', ({ id, state }) => (
      <PageLink to="/deliveries/$deliveryId" params={{ deliveryId: id }} c="inherit" underline="hover">
        <StateBadge state={state} />
      </PageLink>
    )),
    withWebhook &&
      column('Webhook', '320px', ({ webhookId }) => (
        <PageLink to="/webhooks/$webhookId" params={{ webhookId }} c="inherit">
          <UrlOf webhookId={webhookId} />
        </PageLink>
      )),
    !withWebhook &&
      column('Event', '180px', ({ eventType, origin }) => (
        <>
          {eventType}
          {origin === 'replay' && <Dim> · replay</Dim>}
        </>
      )),
    timeColumn('Created', ({ createdAt }) => createdAt),
    countColumn('Attempts', ({ attempt }) => attempt),
    column('Result', 'rest', (delivery) => <Result delivery={delivery} />),
  ];
}

function Result({ delivery }: { delivery: Delivery }) {
  const { state, lastAttempt } = delivery;
  return (
    <Stack gap={0} miw={0}>
      {lastAttempt !== null && <Message text={lastAttempt.message} isBad={lastAttempt.outcome !== 'ok'} />}
      {state === 'waiting' && (
        <Dim style={{ whiteSpace: 'normal' }}>
          <NextTry delivery={delivery} />
        </Dim>
      )}
    </Stack>
  );
}

/** The name or URL of a webhook; its id while loading, and if the webhook was deleted. */
export function UrlOf({ webhookId }: { webhookId: string }) {
  const { data: webhook } = useQuery({ ...webhookQuery(webhookId), retry: false });
  if (webhook === undefined) return webhookId;
  return webhook.name ?? <UrlText url={webhook.url} />;
}

/** When the next attempt is due, and what delays it. */
function NextTry({ delivery }: { delivery: Delivery }) {
  const { data: webhook } = useQuery({ ...webhookQuery(delivery.webhookId), retry: false });
  const now = useNow();
  const wait = waitOf(delivery, webhook, now);
  if (wait === undefined) return 'Sending';
  const { why, at } = wait;
  if (webhook?.state === 'paused') return 'The webhook is paused';
  if (why !== null) {
    return (
      <span title={why}>
        On hold
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
      {delivery.lastAttempt === null ? 'First' : 'Next'} attempt <Time at={at} as="at" />
    </>
  );
}

/** `Next attempt in 3 min.` */
export function NextAttempt({ at }: { at: string | null }) {
  const now = useNow();
  if (at === null) return null;
  return <>Next attempt {isAfter(at, now) ? <Time at={at} as="at" /> : 'now'}.</>;
}
