/** What a webhook was sent, live, and sending some or much of it once more. */
import { Button } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useNavigate } from '@tanstack/react-router';
import type { Delivery, DeliveryState, WebhookDetail } from 'flowhook-client';
import { useMemo, useState } from 'react';
import { flowhook } from '../../client.ts';
import { useAction } from '../../parts/action.tsx';
import { CopyAsCurl } from '../../parts/copy-as-curl.tsx';
import { DataTable } from '../../parts/data-table.tsx';
import { EmptyState } from '../../parts/empty-state.tsx';
import { FilterBar } from '../../parts/filter-bar.tsx';
import { choices, stringifySearch, useFilters } from '../../parts/filters.ts';
import { Icon } from '../../parts/icon.tsx';
import { many } from '../../parts/quantity.ts';
import { useList } from '../../queries/list.ts';
import { deliveryList } from '../../queries/webhooks.ts';
import { PERIODS, useSince } from '../runs/periods.ts';
import { deliveryColumns } from './delivery-columns.tsx';
import { ReplayDialog } from './replay-dialog.tsx';
import { ReplayProgress } from './replay-progress.tsx';

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
  const navigate = useNavigate();
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
        <Button variant="default" leftSection={<Icon name="refresh" size={14} />} onClick={asking.open}>
          Replay…
        </Button>
      </FilterBar>
      <DataTable
        label="Deliveries"
        noun="delivery"
        list={list}
        columns={COLUMNS}
        idOf={({ id }) => id}
        onOpen={({ id }) => void navigate({ to: '/deliveries/$deliveryId', params: { deliveryId: id } })}
        selection={{ ids, onChange: setIds }}
        empty={
          filters.isFiltered ? (
            <EmptyState title="No delivery matches these filters" onClear={filters.clear} />
          ) : (
            <EmptyState title="No deliveries yet">
              “Send test event” above sends one now. Others follow with the events that it is subscribed to.
            </EmptyState>
          )
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
    <Button
      leftSection={<Icon name="send" size={14} />}
      onClick={() => replay.act()}
      loading={replay.isActing}
    >
      Send {many(chosen.length, 'delivery')} again
    </Button>
  );
}
