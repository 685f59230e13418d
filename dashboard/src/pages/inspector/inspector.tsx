/** The page of one inspector, with its requests as they arrive. */
import { Alert, Button, Group, Loader, NumberInput, Paper, Select, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useParams } from '@tanstack/react-router';
import { type SubmitEvent, useState } from 'react';
import type { Inspector, WebhookDetail, Workflow } from '../../../../client/src/flowhook-client.ts';
import { flowhook } from '../../client.ts';
import { ActionButton, useAction } from '../../parts/action.tsx';
import { useAnnouncedChange } from '../../parts/announce.ts';
import { CommandLine } from '../../parts/copy.tsx';
import { useFilters } from '../../parts/filters.ts';
import { count } from '../../parts/format.ts';
import { Icon } from '../../parts/icon.tsx';
import { useShortcut } from '../../parts/keyboard.ts';
import { Loaded } from '../../parts/loaded.tsx';
import { EmptyState, ErrorBox, Facts, PageHeader, PageLink } from '../../parts/page.tsx';
import { SideList } from '../../parts/side-list.tsx';
import { StateBadge } from '../../parts/state-badge.tsx';
import { Prose, Time } from '../../parts/values.tsx';
import { useList } from '../../queries/list.ts';
import { readAgain } from '../../queries/read-again.ts';
import { inspectorQuery, requestList, webhooksOfUrlQuery } from '../../queries/webhooks.ts';
import { workflowQuery } from '../../queries/workflows.ts';
import { useSession } from '../../session.tsx';
import { standing } from '../webhooks/health.ts';
import { SubscribeButton } from '../webhooks/subscribe.tsx';
import { runnableOf } from '../welcome/steps.ts';
import { useRunNow } from '../workflows/use-run-now.ts';
import { RequestLine, RequestView } from './requests.tsx';

export function InspectorPage() {
  const { inspectorId } = useParams({ from: '/inspector/$inspectorId' });
  return (
    <Loaded query={inspectorQuery(inspectorId)} title="Inspector" scope="webhooks" what="inspectors">
      {(inspector) => <Shown inspector={inspector} />}
    </Loaded>
  );
}

function Shown({ inspector }: { inspector: Inspector }) {
  const { id, url, refusal, received, createdAt, expiresAt, status, delayMs } = inspector;
  const { data: webhooks = [] } = useQuery(webhooksOfUrlQuery(url));
  return (
    <>
      <PageHeader
        title="Inspector"
        up={<PageLink to="/inspector">Inspector</PageLink>}
        id={id}
        actions={<Actions inspector={inspector} isSubscribed={webhooks.length > 0} />}
      />
      <Stack gap="md">
        <CommandLine command={url} label="Copy the URL" />
        {refusal !== null && (
          <Alert color="orange" icon={<Icon name="warning" />} title="Webhooks cannot reach this URL">
            <Prose text={refusal} />
          </Alert>
        )}
        <Facts
          facts={[
            ['Requests', received > 100 ? `${count(received)} (newest 100 kept)` : count(received)],
            ['Created', <Time key="made" at={createdAt} />],
            ['Expires', <Time key="ends" at={expiresAt} />],
          ]}
        />
        <Response inspector={inspector} key={`${status} ${delayMs}`} />
        {webhooks.length > 0 && <Subscriptions webhooks={webhooks} />}
        <Requests inspector={inspector} isSubscribed={webhooks.length > 0} />
      </Stack>
    </>
  );
}

function Requests({ inspector: { id, url }, isSubscribed }: { inspector: Inspector; isSubscribed: boolean }) {
  const list = useList(requestList(id));
  const filters = useFilters('request');
  const chosen = filters.values.request === undefined ? undefined : Number(filters.values.request);
  const shown = list.rows.find(({ number }) => number === chosen) ?? list.rows[0];
  useAnnouncedChange(list.rows[0]?.number, (now, before) => now > before && `Request ${now} arrived`);
  const move = (step: number) => {
    const at = shown === undefined ? -1 : list.rows.indexOf(shown);
    const next = list.rows[at + step];
    if (next !== undefined) filters.set({ request: String(next.number) });
  };
  useShortcut('j', 'Next request', () => move(1));
  useShortcut('k', 'Previous request', () => move(-1));
  if (list.error !== null && shown === undefined) return <ErrorBox error={list.error} onRetry={list.retry} />;
  if (list.isLoading) return <Loader aria-label="Loading" size="sm" m="xl" />;
  if (shown === undefined) {
    return (
      <EmptyState
        title="Waiting for the first request"
        command={`curl -sS -H 'content-type: application/json' -d '{"hello":"inspector"}' '${url}'`}
      >
        {isSubscribed
          ? 'Send a test event or run the workflow with the buttons above, or send a request yourself.'
          : 'Subscribe this URL with the button above, or send a request yourself.'}{' '}
        Requests appear here as they arrive.
      </EmptyState>
    );
  }
  return (
    <SideList
      label="Requests"
      items={list.rows}
      chosen={shown.number}
      onChoose={(number) => filters.set({ request: String(number) })}
      line={(request) => <RequestLine request={request} />}
    >
      <RequestView request={shown} />
    </SideList>
  );
}

function Actions({ inspector: { id, url }, isSubscribed }: { inspector: Inspector; isSubscribed: boolean }) {
  const navigate = useNavigate();
  const remove = useAction({
    run: () => flowhook.inspectors.delete(id),
    done: ({ message }) => message,
    // Leaves the page first, because the inspector can no longer be fetched.
    onDone: () =>
      void navigate({ to: '/inspector' }).then(() => readAgain({ kind: 'inspectors', ids: null })),
  });
  return (
    <>
      <ActionButton
        icon="trash"
        action={remove}
        asks={{
          title: 'Delete this inspector?',
          children: 'Its URL stops working, and its requests are deleted.',
          verb: 'Delete',
        }}
        label="Delete"
      />
      <SubscribeButton
        defaults={{ url, stays: true }}
        isMain={!isSubscribed}
        icon="webhook"
        label="Subscribe to events"
      />
    </>
  );
}

const STATUSES = [
  { value: '200', label: '200 OK' },
  { value: '204', label: '204 No Content' },
  { value: '301', label: '301 Moved (not followed)' },
  { value: '400', label: '400 Bad Request' },
  { value: '401', label: '401 Unauthorized' },
  { value: '404', label: '404 Not Found' },
  { value: '410', label: '410 Gone (unsubscribes)' },
  { value: '429', label: '429 Too Many Requests' },
  { value: '500', label: '500 Internal Server Error' },
  { value: '503', label: '503 Service Unavailable' },
];
const MAX_DELAY_S = 20;

/** The response that the inspector sends. Keyed by the saved values, so that changes by others show up. */
function Response({ inspector }: { inspector: Inspector }) {
  const { id, status, delayMs } = inspector;
  const [chosen, setChosen] = useState(String(status));
  const [delayS, setDelayS] = useState<number | string>(delayMs / 1_000);
  const known = STATUSES.some(({ value }) => value === String(status));
  const response = { status: Number(chosen), delayMs: Math.round(Number(delayS) * 1_000) };
  const save = useAction({
    run: () => flowhook.inspectors.update(id, response),
    changes: ['inspectors'],
    done: () => 'Saved. The next request gets this response.',
  });
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    save.act();
  };
  return (
    <form onSubmit={submit}>
      <Group align="flex-end" gap="sm">
        <Select
          label="Response"
          data={known ? STATUSES : [{ value: String(status), label: String(status) }, ...STATUSES]}
          value={chosen}
          onChange={(value) => setChosen(value ?? String(status))}
          allowDeselect={false}
          w={220}
        />
        <NumberInput
          label="Delay"
          suffix=" s"
          value={delayS}
          onChange={setDelayS}
          min={0}
          max={MAX_DELAY_S}
          decimalScale={3}
          w={90}
        />
        <Button
          type="submit"
          variant="default"
          loading={save.isActing}
          disabled={delayS === '' || (response.status === status && response.delayMs === delayMs)}
        >
          Save
        </Button>
      </Group>
    </form>
  );
}

const SHOWN = 5;

/** The webhooks with this URL, each with buttons that send something to it. */
function Subscriptions({ webhooks }: { webhooks: readonly WebhookDetail[] }) {
  return (
    <Paper p="sm" component="section" aria-label="Subscriptions">
      <Stack gap="xs">
        {webhooks.slice(0, SHOWN).map((webhook) => (
          <Subscription key={webhook.id} webhook={webhook} />
        ))}
      </Stack>
    </Paper>
  );
}

function Subscription({ webhook }: { webhook: WebhookDetail }) {
  const { id, workflowId, events } = webhook;
  const { state } = standing(webhook);
  const test = useAction({
    run: () => flowhook.webhooks.test(id),
    changes: ['deliveries', 'webhooks', 'inspectors'],
    done: ({ message }) => message,
  });
  return (
    <Group gap="sm" justify="space-between">
      <Text size="sm">
        Subscribed to {events.includes('*') ? 'all events' : events.join(', ')} of{' '}
        {workflowId === null ? (
          'all workflows'
        ) : (
          <PageLink to="/workflows/$workflowId" params={{ workflowId }} underline="always">
            {workflowId}
          </PageLink>
        )}
        {' · '}
        <PageLink to="/webhooks/$webhookId" params={{ webhookId: id }} underline="always">
          View webhook
        </PageLink>{' '}
        {state !== 'active' && <StateBadge state={state} />}
      </Text>
      <Group gap="xs">
        {workflowId !== null && <RunIt workflowId={workflowId} />}
        <ActionButton isMain icon="send" action={test} label="Send test event" />
      </Group>
    </Group>
  );
}

/** A button that runs the workflow. Nothing if the workflow cannot be run on request. */
function RunIt({ workflowId }: { workflowId: string }) {
  const { can } = useSession();
  const { data: workflow } = useQuery(workflowQuery(workflowId));
  if (workflow === undefined || !can('queue') || runnableOf([workflow]).length === 0) return null;
  return <RunButton workflow={workflow} />;
}

function RunButton({ workflow: { id, name } }: { workflow: Workflow }) {
  const run = useRunNow(id, name);
  return <ActionButton isMain icon="play" action={run} label={`Run ${name}`} />;
}
