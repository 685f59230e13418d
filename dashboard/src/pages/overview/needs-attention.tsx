/** What needs attention: what fails, since when and why. */
import { Group, Paper, Text, Title } from '@mantine/core';
import { queryOptions, useQuery } from '@tanstack/react-query';
import { NotFound } from 'flowhook-client';
import { flowhook } from '../../client.ts';
import { ErrorBox } from '../../parts/error-box.tsx';
import { Icon } from '../../parts/icon.tsx';
import { PageLink } from '../../parts/link.tsx';
import { Prose } from '../../parts/prose.tsx';
import { StateBadge, stateColor } from '../../parts/state-badge.tsx';
import { Time } from '../../parts/time.tsx';
import { UrlText } from '../../parts/url-text.tsx';
import { jobCountsQuery } from '../../queries/jobs.ts';
import { useSession } from '../../session.tsx';
import { suspects, type Trouble, troubles } from './attention.ts';
import styles from './overview.module.css';

/** Beyond these the lists say more. */
const SHOWN = 10;

/** `counts` changes with jobs at most once a second, which is often enough here. */
const attentionQuery = (withWebhooks: boolean) =>
  queryOptions({
    queryKey: ['counts', 'attention', withWebhooks],
    queryFn: async ({ signal }) => {
      const [failed, webhooks] = await Promise.all([
        flowhook.jobs.list({ state: ['failed'], limit: 100, signal }).page(),
        withWebhooks
          ? flowhook.webhooks.listDetails({ state: ['failing', 'paused'], limit: 50, signal }).page()
          : { items: [] },
      ]);
      const workflows = await Promise.all(
        suspects(failed.items).map((id) =>
          flowhook.workflows.get(id, { signal }).catch((error: Error) => {
            // Archived since.
            if (error instanceof NotFound) return undefined;
            throw error;
          }),
        ),
      );
      return troubles(
        workflows.filter((workflow) => workflow !== undefined),
        webhooks.items,
      );
    },
    refetchInterval: 60_000,
  });

export function NeedsAttention() {
  const { can } = useSession();
  const { data, error, refetch } = useQuery(attentionQuery(can('webhooks')));
  return (
    <Paper withBorder p="md" component="section" aria-label="Needs attention">
      <Title order={2} size="h4" mb="sm">
        Needs attention
      </Title>
      {error !== null && data === undefined && <ErrorBox error={error} onRetry={() => void refetch()} />}
      {data?.length === 0 && <Nothing withWebhooks={can('webhooks')} />}
      <ul className={styles.troubles}>
        {data?.slice(0, SHOWN).map((trouble) => (
          <li key={trouble.id} className={styles.trouble}>
            <One trouble={trouble} />
          </li>
        ))}
      </ul>
      {data !== undefined && data.length > SHOWN && (
        <Text size="xs" c="dimmed" mt="xs">
          and {data.length - SHOWN} more: <PageLink to="/workflows">Workflows</PageLink>,{' '}
          <PageLink to="/webhooks">Webhooks</PageLink>
        </Text>
      )}
    </Paper>
  );
}

/** No praise where nothing has run yet. */
function Nothing({ withWebhooks }: { withWebhooks: boolean }) {
  const { data: counts } = useQuery(jobCountsQuery());
  if (counts === undefined) return null;
  if (counts.finished + counts.failed + counts.canceled === 0) {
    return (
      <Text size="sm" c="dimmed">
        Nothing has run yet: <PageLink to="/workflows">run a workflow</PageLink>, and what fails is named
        here.
      </Text>
    );
  }
  return (
    <Group gap="xs" c="dimmed">
      <Icon name="check" color={stateColor('finished')} />
      <Text size="sm">
        Nothing: the last run of every workflow succeeded
        {withWebhooks && ', and no webhook is failing'}.
      </Text>
    </Group>
  );
}

function One({ trouble }: { trouble: Trouble }) {
  return (
    <>
      <Group gap="sm" wrap="nowrap" justify="space-between">
        <Group gap="sm" wrap="nowrap" miw={0}>
          <StateBadge state={trouble.kind === 'workflow' ? 'failed' : trouble.state} />
          <Text span size="sm" truncate>
            {trouble.kind === 'workflow' ? (
              <PageLink to="/runs/$jobId" params={{ jobId: trouble.jobId }} fw={500}>
                {trouble.id}
              </PageLink>
            ) : (
              <PageLink to="/webhooks/$webhookId" params={{ webhookId: trouble.id }} fw={500}>
                <UrlText url={trouble.url} />
              </PageLink>
            )}
          </Text>
        </Group>
        <Text span size="xs" c="dimmed" style={{ whiteSpace: 'nowrap' }}>
          <Time at={new Date(trouble.sinceMs).toISOString()} as="since" />
        </Text>
      </Group>
      <Text size="xs" c="dimmed" truncate title={trouble.why}>
        <Prose text={trouble.why} />
      </Text>
    </>
  );
}
