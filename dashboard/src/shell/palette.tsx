/** Quick search for pages, workflows, ids, shortcuts and settings: Ctrl+K or ⌘K. */
import { Modal, useMantineColorScheme } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { Spotlight, spotlight } from '@mantine/spotlight';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { flowhook } from '../client.ts';
import { live } from '../live.ts';
import { useAction } from '../parts/action.tsx';
import { timeStyle } from '../parts/format.ts';
import { Icon, type IconName } from '../parts/icon.tsx';
import { shortcuts } from '../parts/keyboard.ts';
import { useList } from '../queries/list.ts';
import { workflowList } from '../queries/workflows.ts';
import { signOut, useSession } from '../session.tsx';
import { type Destination, useDestinations } from './navigation.tsx';
import styles from './shell.module.css';

interface Entry {
  id: string;
  label: string;
  description: string;
  icon: IconName;
  run: () => void;
}

type Page = Pick<Destination, 'label' | 'icon'> & {
  to: Destination['to'] | '/welcome' | '/events/catalog' | '/keys/audit';
};

/** Pages that are not in the navigation. */
const MORE: Page[] = [
  { to: '/welcome', label: 'First steps', icon: 'help' },
  { to: '/events/catalog', label: 'Event catalog', icon: 'bell' },
];

const MOST_SHOWN = 12;
/** The pause in typing after which workflows are fetched. */
const TYPING_MS = 200;

export function Palette() {
  const [isOpen, setIsOpen] = useState(false);
  const [text, setText] = useState('');
  return (
    <Spotlight.Root
      query={text}
      onQueryChange={setText}
      shortcut="mod + K"
      onSpotlightOpen={() => setIsOpen(true)}
      onSpotlightClose={() => setIsOpen(false)}
      scrollable
      maxHeight={420}
      overlayProps={{ blur: 0 }}
    >
      <Modal.Title className="visually-hidden">Quick search</Modal.Title>
      <Spotlight.Search
        placeholder="Search pages, workflows, ids and actions"
        aria-label="Quick search"
        leftSection={<Icon name="search" />}
      />
      {isOpen && <Entries text={text.trim()} />}
    </Spotlight.Root>
  );
}

/** Mounted only while the palette is open, so that a closed one fetches nothing. */
function Entries({ text }: { text: string }) {
  const words = text.toLowerCase().split(/\s+/);
  const all = [...useIds(text), ...usePages(), ...useWorkflows(text), ...useKeys(), ...useSettings()];
  const entries = all.filter(({ id, label, description }) => {
    const texts = `${id} ${label} ${description}`.toLowerCase();
    return words.every((word) => texts.includes(word));
  });
  return (
    <Spotlight.ActionsList aria-label="Results">
      {entries.slice(0, MOST_SHOWN).map(({ id, label, description, icon, run }) => (
        <Spotlight.Action
          key={id}
          label={label}
          description={description}
          leftSection={<Icon name={icon} />}
          className={styles.found}
          onClick={run}
        />
      ))}
      {entries.length === 0 && <Spotlight.Empty>No results</Spotlight.Empty>}
    </Spotlight.ActionsList>
  );
}

function usePages(): Entry[] {
  const navigate = useNavigate();
  const pages: Page[] = [...useDestinations(), ...MORE];
  return pages.map(({ to, label, icon }) => ({
    id: `page ${to}`,
    label,
    description: '',
    icon,
    run: () => void navigate({ to }),
  }));
}

/** Two entries per workflow: open it, and run it. */
function useWorkflows(text: string): Entry[] {
  const { can } = useSession();
  const navigate = useNavigate();
  const [wanted] = useDebouncedValue(text.replace(/^run\s+/i, ''), TYPING_MS);
  const { rows } = useList(workflowList(wanted === '' ? undefined : wanted));
  const { act } = useAction({
    run: (workflowId: string) => flowhook.workflows.queue(workflowId),
    changes: ['jobs', 'workflows'],
    onDone: ({ jobId }) => void navigate({ to: '/runs/$jobId', params: { jobId } }),
  });
  const opened = rows.map(({ id, name }) => ({
    id: `workflow ${id}`,
    label: name,
    description: id,
    icon: 'workflow' as const,
    run: () => void navigate({ to: '/workflows/$workflowId/data', params: { workflowId: id } }),
  }));
  const runnable = can('queue') ? rows.filter(({ source, paused }) => source.type !== 'push' && !paused) : [];
  const run = runnable.map(({ id, name }) => ({
    id: `run ${id}`,
    label: `Run ${name}`,
    description: id,
    icon: 'play' as const,
    run: () => act(id),
  }));
  return [...opened, ...run];
}

/** The shortcuts of the current page. Those for navigation and search have other entries. */
function useKeys(): Entry[] {
  const keys = shortcuts.use().filter(({ keys }) => !keys.startsWith('g ') && keys !== '/');
  return keys.map(({ keys, label, run }) => ({
    id: `key ${keys} ${label}`,
    label,
    description: keys,
    icon: 'chevronRight',
    run,
  }));
}

/** An entry for a pasted id. */
function useIds(text: string): Entry[] {
  const navigate = useNavigate();
  const pages: Record<string, () => void> = {
    job: () => void navigate({ to: '/runs/$jobId', params: { jobId: text } }),
    wh: () => void navigate({ to: '/webhooks/$webhookId', params: { webhookId: text } }),
    dlv: () => void navigate({ to: '/deliveries/$deliveryId', params: { deliveryId: text } }),
    evt: () => void navigate({ to: '/events/$eventId', params: { eventId: text } }),
    insp: () => void navigate({ to: '/inspector/$inspectorId', params: { inspectorId: text } }),
  };
  const [, kind = ''] = /^([a-z]+)_[0-9a-z]+$/.exec(text) ?? [];
  const run = pages[kind];
  return run === undefined
    ? []
    : [{ id: text, label: `Open ${text}`, description: '', icon: 'chevronRight', run }];
}

function useSettings(): Entry[] {
  const { setColorScheme } = useMantineColorScheme();
  const connection = live.connection.use();
  const settings: [label: string, icon: IconName, run: () => void][] = [
    ['Theme: dark', 'moon', () => setColorScheme('dark')],
    ['Theme: light', 'sun', () => setColorScheme('light')],
    ['Theme: system', 'sun', () => setColorScheme('auto')],
    ['Times: UTC', 'clock', () => timeStyle.set('utc')],
    ['Times: local', 'clock', () => timeStyle.set('local')],
    ['Times: relative', 'clock', () => timeStyle.set('relative')],
    connection === 'paused'
      ? ['Resume live updates', 'play', live.toggle]
      : ['Pause live updates', 'pause', live.toggle],
    ['API reference', 'api', () => location.assign('/docs')],
    ['Sign out', 'signOut', () => void signOut()],
  ];
  return settings.map(([label, icon, run]) => ({ id: label, label, description: '', icon, run }));
}

export const openPalette = spotlight.open;
