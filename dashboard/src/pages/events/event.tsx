/** The page of one event, with its deliveries, and the webhooks that were not sent it. */
import { Stack } from '@mantine/core';
import { useParams } from '@tanstack/react-router';
import type { Delivery, FlowhookEvent } from '../../../../client/src/flowhook-client.ts';
import { JsonView } from '../../parts/code.tsx';
import { CopyAsCurl } from '../../parts/copy.tsx';
import { DataTable } from '../../parts/data-table.tsx';
import { count } from '../../parts/format.ts';
import { Loaded } from '../../parts/loaded.tsx';
import {
  ButtonLink,
  EmptyState,
  type Fact,
  Facts,
  PageHeader,
  PageLink,
  Section,
} from '../../parts/page.tsx';
import { Time } from '../../parts/values.tsx';
import { eventDeliveryList, eventQuery } from '../../queries/events.ts';
import { type List, useList } from '../../queries/list.ts';
import { NeedsScope, useSession } from '../../session.tsx';
import { UnsentTable, useUnsent } from '../webhooks/decisions.tsx';
import { deliveryColumns } from '../webhooks/deliveries.tsx';

const COLUMNS = deliveryColumns({ withWebhook: true });

export function EventPage() {
  const { eventId } = useParams({ from: '/events/$eventId' });
  return (
    <Loaded query={eventQuery(eventId)} title="Event">
      {(event) => <Shown event={event} />}
    </Loaded>
  );
}

function Shown({ event }: { event: FlowhookEvent }) {
  const { can } = useSession();
  return (
    <>
      <PageHeader
        title={event.type}
        up={<PageLink to="/events">Events</PageLink>}
        id={event.id}
        actions={
          <>
            <ButtonLink to="/events/catalog" search={{ type: event.type }}>
              View event type
            </ButtonLink>
            <CopyAsCurl path={`/v1/events/${event.id}`} />
          </>
        }
      />
      <Stack gap="lg">
        <Facts facts={factsOf(event)} />
        <Section title="Deliveries" isBare>
          {can('webhooks') ? <Deliveries event={event} /> : <NeedsScope scope="webhooks" what="deliveries" />}
        </Section>
        <Section title="Body" isBare>
          <JsonView value={event} label="Event body" maxHeight="none" />
        </Section>
      </Stack>
    </>
  );
}

function Deliveries({ event }: { event: FlowhookEvent }) {
  const list = useList(eventDeliveryList(event.id));
  const unsent = useUnsent(event.id);
  const hasUnsent = unsent.rows.length > 0;
  return (
    <Stack gap="md">
      {(!hasUnsent || list.rows.length > 0) && <DeliveryTable event={event} list={list} />}
      {hasUnsent && <UnsentTable list={unsent} />}
    </Stack>
  );
}

function DeliveryTable({ event, list }: { event: FlowhookEvent; list: List<Delivery> }) {
  return (
    <DataTable
      label="Deliveries of this event"
      noun="delivery"
      list={list}
      columns={COLUMNS}
      maxHeight="400px"
      empty={
        <EmptyState title="No deliveries" action={<ButtonLink to="/webhooks">Go to webhooks</ButtonLink>}>
          No webhook was subscribed to {event.type} when this event happened.
        </EmptyState>
      }
    />
  );
}

function factsOf(event: FlowhookEvent): Fact[] {
  const { workflowId, jobId, timestamp, sequence } = event;
  const facts: Fact[] = [['Time', <Time key="time" at={timestamp} />]];
  if (workflowId !== undefined) {
    facts.push([
      'Workflow',
      <PageLink key="workflow" to="/workflows/$workflowId" params={{ workflowId }}>
        {workflowId}
      </PageLink>,
    ]);
  }
  if (jobId !== undefined) {
    facts.push([
      'Run',
      <PageLink key="run" to="/runs/$jobId" params={{ jobId }}>
        …{jobId.slice(-8)}
      </PageLink>,
    ]);
    facts.push([
      'Related events',
      <PageLink key="others" to="/events" search={{ jobId }}>
        All events of this run
      </PageLink>,
    ]);
  }
  facts.push(['Sequence', count(sequence)]);
  return facts;
}
