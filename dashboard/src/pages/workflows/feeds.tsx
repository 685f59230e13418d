/** The feeds of a workflow: secret addresses for feed readers, which are created, changed and revoked here. */
import {
  Group,
  Modal,
  NumberInput,
  Paper,
  Select,
  SimpleGrid,
  Stack,
  Text,
  TextInput,
  Title,
} from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { useState } from 'react';
import type { Feed } from '../../../../client/src/flowhook-client.ts';
import { flowhook } from '../../client.ts';
import { ActionButton, ActionForm, useAction } from '../../parts/action.tsx';
import { Copy } from '../../parts/copy.tsx';
import { curl } from '../../parts/curl.ts';
import { count } from '../../parts/format.ts';
import { Loaded } from '../../parts/loaded.tsx';
import { EmptyState } from '../../parts/page.tsx';
import { Note, Time, UrlText } from '../../parts/values.tsx';
import { feedsQuery } from '../../queries/feeds.ts';
import { workflowQuery } from '../../queries/workflows.ts';
import { useSession } from '../../session.tsx';
import { CHANGE_EVENT, FilterFields } from '../webhooks/rule/rule-fields.tsx';
import { NO_RULE } from '../webhooks/rule/rule-form.ts';
import { TriedEvents } from '../webhooks/rule/tried-events.tsx';
import { useTriedRule } from '../webhooks/rule/tried-rule.ts';
import styles from './feeds.module.css';

export function FeedsTab() {
  const { workflowId } = useParams({ from: '/workflows/$workflowId' });
  return (
    <Loaded query={feedsQuery(workflowId)} scope="webhooks" what="feeds">
      {(feeds) => <Feeds workflowId={workflowId} feeds={feeds} />}
    </Loaded>
  );
}

function Feeds({ workflowId, feeds }: { workflowId: string; feeds: Feed[] }) {
  const [isCreating, creating] = useDisclosure(false);
  const create = <ActionButton isMain icon="plus" action={creating.open} label="New feed" />;
  return (
    <Stack gap="md">
      {feeds.length === 0 ? (
        <EmptyState
          title="No feeds yet"
          action={create}
          command={curl({ method: 'POST', path: `/v1/workflows/${workflowId}/feeds` })}
        >
          A feed shows the changes of this workflow in any feed reader, at a secret address that needs no key.
          Create one here or with this command:
        </EmptyState>
      ) : (
        <>
          <Group justify="space-between" gap="sm">
            <Note>Anyone who has an address can read the feed, without a key. Rotate it if it leaked.</Note>
            {create}
          </Group>
          {feeds.map((feed) => (
            <OneFeed key={feed.id} feed={feed} />
          ))}
        </>
      )}
      <Modal opened={isCreating} onClose={creating.close} title="New feed" size="xl">
        <FeedForm workflowId={workflowId} onClose={creating.close} />
      </Modal>
    </Stack>
  );
}

const FORMS = [
  { name: 'atom', label: 'Atom' },
  { name: 'json', label: 'JSON Feed' },
  { name: 'html', label: 'Page' },
] as const;

function OneFeed({ feed }: { feed: Feed }) {
  const { id, workflowId, filter, urls, createdAt } = feed;
  const { data: workflow } = useQuery(workflowQuery(workflowId));
  const title = feed.title ?? workflow?.name ?? workflowId;
  const [isEditing, editing] = useDisclosure(false);
  return (
    <Paper component="section" aria-label={title} p="md">
      <Stack gap="sm">
        <Group justify="space-between" gap="sm">
          <Title order={2} size="h4" style={{ overflowWrap: 'anywhere' }}>
            {title}
          </Title>
          <Group gap="xs">
            <ActionButton action={editing.open} aria-label={`Edit ${title}`} label="Edit" />
            <FeedActions feed={feed} title={title} />
          </Group>
        </Group>
        <Text size="sm" c="dimmed" component="div">
          {settingsWords(feed)}. Created <Time at={createdAt} />.
        </Text>
        {filter !== null && <code className={styles.filter}>{filter}</code>}
        {urls === null ? (
          <Note>
            The current encryption key cannot decrypt the addresses. Rotate the feed to get new ones.
          </Note>
        ) : (
          <dl className={styles.addresses}>
            {FORMS.map(({ name, label }) => (
              <div key={name}>
                <dt>{label}</dt>
                <dd>
                  <UrlText url={urls[name]} />
                  <Copy value={urls[name]} label={`Copy the address of ${label} of ${title}`} />
                </dd>
              </div>
            ))}
          </dl>
        )}
        {urls !== null && (
          <ActionButton
            icon="eye"
            action={() => void open(urls.html, '_blank', 'noopener')}
            style={{ alignSelf: 'flex-start' }}
            label="Open the page"
          />
        )}
      </Stack>
      <Modal opened={isEditing} onClose={editing.close} title={`Edit ${title}`} size="xl">
        <FeedForm
          workflowId={workflowId}
          feed={feed}
          onClose={editing.close}
          key={`${id} ${feed.changedAt}`}
        />
      </Modal>
    </Paper>
  );
}

function settingsWords({ entries, window, limit }: Pick<Feed, 'entries' | 'window' | 'limit'>): string {
  const of = entries === 'record' ? 'changed record' : 'version';
  return `One entry per ${of}, of the last ${window}, at most ${count(limit)} entries`;
}

function FeedActions({ feed: { workflowId, id }, title }: { feed: Feed; title: string }) {
  const rotate = useAction({
    run: () => flowhook.feeds.rotate(workflowId, id),
    changes: ['feeds'],
    done: () => 'The feed has new addresses. The old ones no longer work.',
  });
  const revoke = useAction({
    run: () => flowhook.feeds.revoke(workflowId, id),
    changes: ['feeds'],
    done: () => 'Revoked. Its addresses return 410 (Gone).',
  });
  return (
    <>
      <ActionButton
        action={rotate}
        aria-label={`Rotate ${title}`}
        asks={{
          title: 'Give this feed new addresses?',
          children:
            'The old addresses stop working immediately. Everybody who reads the feed needs a new one.',
          verb: 'Rotate',
        }}
        label="Rotate"
      />
      <ActionButton
        action={revoke}
        aria-label={`Revoke ${title}`}
        asks={{
          title: `Revoke ${title}?`,
          children: 'Its addresses return 410 (Gone). This cannot be undone.',
          verb: 'Revoke',
        }}
        label="Revoke"
      />
    </>
  );
}

const USUAL = { window: '30d', limit: 50 };
const MAX_LIMIT = 200;
const MAX_TITLE = 200;

/** @param props.feed to change it; undefined for a new one */
function FeedForm({ workflowId, feed, onClose }: { workflowId: string; feed?: Feed; onClose: () => void }) {
  const { can } = useSession();
  const [title, setTitle] = useState(feed?.title ?? '');
  const [filter, setFilter] = useState(feed?.filter ?? '');
  const [entries, setEntries] = useState<Feed['entries']>(feed?.entries ?? 'record');
  const [window, setWindow] = useState(feed?.window ?? USUAL.window);
  const [limit, setLimit] = useState<number | string>(feed?.limit ?? USUAL.limit);
  const form = { ...NO_RULE, filter };
  const of = { workflowId, events: [CHANGE_EVENT] };
  const isFiltered = filter.trim() !== '';
  const tried = useTriedRule(form, { ...of, isOn: isFiltered });
  const save = useAction({
    run: () => {
      const settings = {
        title: title.trim() === '' ? null : title.trim(),
        filter: isFiltered ? filter.trim() : null,
        entries,
        window: window.trim(),
        limit: Number(limit),
      };
      return feed === undefined
        ? flowhook.feeds.create(workflowId, settings)
        : flowhook.feeds.update(workflowId, feed.id, settings);
    },
    changes: ['feeds'],
    done: () =>
      feed === undefined ? 'The feed is ready. Copy one of its addresses.' : 'Saved. The addresses stay.',
    onDone: onClose,
  });
  return (
    <ActionForm
      action={save}
      verb={feed === undefined ? 'Create feed' : 'Save'}
      isReady={can('webhooks') && window.trim() !== '' && limit !== '' && !tried.hasMistake}
      onBack={onClose}
    >
      <TextInput
        label="Title"
        description="Shown by feed readers. By default the name of the workflow"
        value={title}
        onChange={({ currentTarget }) => setTitle(currentTarget.value)}
        maxLength={MAX_TITLE}
        data-autofocus
      />
      <FilterFields
        form={form}
        onChange={(change) => change.filter !== undefined && setFilter(change.filter)}
        tried={tried}
        words={{
          question: 'List a change when',
          anything: 'a record changes',
          empty: 'every change is listed',
        }}
        {...of}
      />
      <SimpleGrid cols={{ base: 1, sm: 3 }} spacing="md">
        <Select
          label="One entry per"
          description="What a reader shows as one item"
          data={[
            { value: 'record', label: 'Changed record' },
            { value: 'version', label: 'Version' },
          ]}
          value={entries}
          onChange={(value) => setEntries(value === 'version' ? 'version' : 'record')}
          allowDeselect={false}
        />
        <TextInput
          label="Window"
          description="1d to 365d"
          value={window}
          onChange={({ currentTarget }) => setWindow(currentTarget.value)}
        />
        <NumberInput
          label="Most entries"
          description="1 to 200"
          value={limit}
          onChange={setLimit}
          min={1}
          max={MAX_LIMIT}
          allowDecimal={false}
        />
      </SimpleGrid>
      {isFiltered && <TriedEvents tried={tried} />}
    </ActionForm>
  );
}
