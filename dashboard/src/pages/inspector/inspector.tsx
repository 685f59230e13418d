/** The page of one inspector: its requests as they arrive. */
import { Alert, Button, Loader, Stack } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useParams } from '@tanstack/react-router';
import type { Inspector } from 'flowhook-client';
import { useEffect, useRef } from 'react';
import { flowhook } from '../../client.ts';
import { confirm, useAction } from '../../parts/action.tsx';
import { announce } from '../../parts/announce.ts';
import { CommandLine } from '../../parts/command-line.tsx';
import { EmptyState } from '../../parts/empty-state.tsx';
import { ErrorBox } from '../../parts/error-box.tsx';
import { Facts } from '../../parts/facts.tsx';
import { useFilters } from '../../parts/filters.ts';
import { Icon } from '../../parts/icon.tsx';
import { IdText } from '../../parts/id-text.tsx';
import { PageLink } from '../../parts/link.tsx';
import { NeedsScope } from '../../parts/needs-scope.tsx';
import { PageHeader } from '../../parts/page-header.tsx';
import { Prose } from '../../parts/prose.tsx';
import { count, many } from '../../parts/quantity.ts';
import { Time } from '../../parts/time.tsx';
import { inspectorQuery, requestList } from '../../queries/inspectors.ts';
import { useList } from '../../queries/list.ts';
import { readAgain } from '../../queries/read-again.ts';
import { webhooksOfUrlQuery } from '../../queries/webhooks.ts';
import { useSession } from '../../session.tsx';
import { useShortcut } from '../../shell/shortcuts.ts';
import { useSubscribeDialog } from '../webhooks/subscribe.tsx';
import { Answer } from './answer.tsx';
import styles from './inspector.module.css';
import { RequestList } from './request-list.tsx';
import { RequestView } from './request-view.tsx';
import { Trial } from './trial.tsx';

export function InspectorPage() {
  const { inspectorId } = useParams({ from: '/inspector/$inspectorId' });
  const { can } = useSession();
  const {
    data: inspector,
    error,
    refetch,
  } = useQuery({
    ...inspectorQuery(inspectorId),
    enabled: can('webhooks'),
  });
  if (inspector !== undefined) return <Shown inspector={inspector} />;
  if (can('webhooks') && error === null) return <Loader aria-label="Loading" size="sm" m="xl" />;
  return (
    <>
      <PageHeader title="Inspector" />
      {error === null ? (
        <NeedsScope scope="webhooks" what="inspectors" />
      ) : (
        <ErrorBox error={error} onRetry={() => void refetch()} />
      )}
    </>
  );
}

function Shown({ inspector }: { inspector: Inspector }) {
  const { id, url, refusal, received, createdAt, expiresAt, status, delayMs } = inspector;
  const { data: webhooks = [] } = useQuery(webhooksOfUrlQuery(url));
  const { open, dialog } = useSubscribeDialog({ url, stays: true });
  return (
    <>
      <PageHeader
        title="Inspector"
        parents={[
          <PageLink key="inspectors" to="/inspector">
            Inspector
          </PageLink>,
          <IdText key="id" id={id} />,
        ]}
        actions={<Actions inspector={inspector} isSubscribed={webhooks.length > 0} onSubscribe={open} />}
      />
      <Stack gap="md">
        <CommandLine command={url} label="Copy the URL" />
        {refusal !== null && (
          <Alert color="orange" icon={<Icon name="warning" />} title="Webhooks will not reach it">
            <Prose text={refusal} />
          </Alert>
        )}
        <Facts
          facts={[
            ['Requests', received > 100 ? `${count(received)}, the newest 100 kept` : count(received)],
            ['Created', <Time key="made" at={createdAt} />],
            ['Expires', <Time key="ends" at={expiresAt} />],
          ]}
        />
        <Answer inspector={inspector} key={`${status} ${delayMs}`} />
        {webhooks.length > 0 && <Trial webhooks={webhooks} />}
        <Requests inspector={inspector} isSubscribed={webhooks.length > 0} />
      </Stack>
      {dialog}
    </>
  );
}

function Requests({ inspector: { id, url }, isSubscribed }: { inspector: Inspector; isSubscribed: boolean }) {
  const list = useList(requestList(id));
  const filters = useFilters('request');
  const chosen = filters.values.request === undefined ? undefined : Number(filters.values.request);
  const shown = list.rows.find(({ number }) => number === chosen) ?? list.rows[0];
  useToldArrival(list.rows[0]?.number);
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
          ? 'Send a test event with the button above, run the workflow, or send something by hand.'
          : 'Subscribe it to a workflow with the button above, or send something by hand.'}{' '}
        What arrives appears here at once.
      </EmptyState>
    );
  }
  return (
    <div className={styles.columns}>
      <RequestList
        requests={list.rows}
        shown={shown.number}
        onShow={(number) => filters.set({ request: String(number) })}
      />
      <RequestView request={shown} />
    </div>
  );
}

function Actions({
  inspector: { id, received },
  isSubscribed,
  onSubscribe,
}: {
  inspector: Inspector;
  isSubscribed: boolean;
  onSubscribe: () => void;
}) {
  const navigate = useNavigate();
  const remove = useAction({
    run: () => flowhook.inspectors.delete(id),
    done: ({ message }) => message,
    // Away from it first: it cannot be read again.
    onDone: () =>
      void navigate({ to: '/inspector' }).then(() => readAgain({ kind: 'inspectors', ids: null })),
  });
  return (
    <>
      <Button
        variant="default"
        leftSection={<Icon name="trash" size={14} />}
        loading={remove.isActing}
        onClick={() =>
          confirm({
            title: 'Delete this inspector?',
            children: `Its URL stops answering, and the ${many(received, 'request')} that it received are deleted.`,
            verb: 'Delete',
            onConfirm: () => remove.act(),
          })
        }
      >
        Delete
      </Button>
      <Button
        variant={isSubscribed ? 'default' : 'filled'}
        leftSection={<Icon name="webhook" size={14} />}
        onClick={onSubscribe}
      >
        {isSubscribed ? 'Subscribe it to more' : 'Subscribe it'}
      </Button>
    </>
  );
}

/** Announces new requests to screen readers. */
function useToldArrival(newest: number | undefined): void {
  const before = useRef(newest);
  useEffect(() => {
    if (before.current !== undefined && newest !== undefined && newest > before.current) {
      announce(`Request ${newest} has arrived`);
    }
    before.current = newest;
  }, [newest]);
}
