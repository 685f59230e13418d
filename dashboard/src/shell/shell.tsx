/** The layout around every page: header, menus, navigation and the offline note. */
import {
  ActionIcon,
  AppShell,
  Box,
  Burger,
  Group,
  Menu,
  Paper,
  Text,
  Tooltip,
  UnstyledButton,
  useMantineColorScheme,
} from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useRouter } from '@tanstack/react-router';
import { useEffect, useRef, useState } from 'react';
import { type Connection, live, useLive } from '../live.ts';
import { ActionButton } from '../parts/action.tsx';
import { announced } from '../parts/announce.ts';
import { type TimeStyle, timeStyle } from '../parts/format.ts';
import { Icon } from '../parts/icon.tsx';
import { PageLink } from '../parts/page.tsx';
import { Time } from '../parts/values.tsx';
import { signOut, useSession } from '../session.tsx';
import { Navigation, ReadablePage } from './navigation.tsx';
import { openPalette, Palette } from './palette.tsx';
import styles from './shell.module.css';
import { ShellShortcuts } from './shortcuts.tsx';

export function Shell() {
  const [isOpen, { toggle, close }] = useDisclosure(false);
  useLive();
  usePreloadedPages();
  return (
    <AppShell
      header={{ height: 48 }}
      navbar={{ width: 200, breakpoint: 'sm', collapsed: { mobile: !isOpen } }}
      padding="md"
    >
      <a href="#page" className={styles.skip}>
        Skip to content
      </a>
      <AppShell.Header>
        <Group h="100%" px="md" gap="sm" wrap="nowrap">
          <Burger
            opened={isOpen}
            onClick={toggle}
            hiddenFrom="sm"
            size="sm"
            aria-label="Pages"
            aria-expanded={isOpen}
          />
          <PageLink to="/" underline="never" c="inherit">
            <Text fw={700}>Flowhook</Text>
          </PageLink>
          <Group ms="auto" gap={4} wrap="nowrap">
            <ConnectionDot />
            <Tooltip label="Quick search (Ctrl+K)">
              <ActionIcon aria-label="Quick search" onClick={openPalette}>
                <Icon name="search" />
              </ActionIcon>
            </Tooltip>
            <TimeSwitch />
            <ThemeSwitch />
            <AccountMenu />
          </Group>
        </Group>
      </AppShell.Header>
      <AppShell.Navbar p="xs" component="div" className={isOpen ? undefined : styles.closed}>
        <Navigation onGo={close} />
      </AppShell.Navbar>
      <AppShell.Main id="page" tabIndex={-1}>
        <ReadablePage />
      </AppShell.Main>
      <Palette />
      <ShellShortcuts />
      <OfflineNote />
      <Announced />
    </AppShell>
  );
}

function Announced() {
  return (
    <div aria-live="polite" className="visually-hidden">
      {announced.use()}
    </div>
  );
}

const WORDS: Record<Connection, { word: string; color: string; title: string }> = {
  live: { word: 'Live', color: 'green', title: 'Live updates are on. Click to pause.' },
  reconnecting: {
    word: 'Reconnecting',
    color: 'orange',
    title: 'The service is not responding. Reconnecting…',
  },
  paused: { word: 'Paused', color: 'gray', title: 'Live updates are paused. Click to resume.' },
};

/** The state of live updates, as a button that pauses and resumes them. */
function ConnectionDot() {
  const connection = live.connection.use();
  const { word, color, title } = WORDS[connection];
  return (
    <Tooltip label={title}>
      <UnstyledButton className={styles.connection} onClick={live.toggle} data-connection={connection}>
        <Box className={styles.dot} bg={`var(--mantine-color-${color}-6)`} />
        <Box component="span" visibleFrom="xs">
          {word}
        </Box>
        <Box component="span" hiddenFrom="xs" className="visually-hidden">
          {word}
        </Box>
      </UnstyledButton>
    </Tooltip>
  );
}

const SCHEMES = { auto: 'System', light: 'Light', dark: 'Dark' } as const;
const TIMES: Record<TimeStyle, string> = {
  relative: 'Relative (3 min ago)',
  local: 'Local time',
  utc: 'UTC',
};

function ThemeSwitch() {
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  return (
    <Choice
      label="Theme"
      icon={colorScheme === 'light' ? 'sun' : 'moon'}
      options={SCHEMES}
      chosen={colorScheme}
      onChoose={setColorScheme}
    />
  );
}

function TimeSwitch() {
  return (
    <Choice
      label="Times"
      icon="clock"
      options={TIMES}
      chosen={timeStyle.use()}
      onChoose={(style) => timeStyle.set(style)}
    />
  );
}

function Choice<Name extends string>(props: {
  label: string;
  icon: 'sun' | 'moon' | 'clock';
  options: Readonly<Record<Name, string>>;
  chosen: Name;
  onChoose: (name: Name) => void;
}) {
  const { label, icon, options, chosen, onChoose } = props;
  return (
    <Menu position="bottom-end" withinPortal={false}>
      <Menu.Target>
        <Tooltip label={`${label}: ${options[chosen]}`}>
          <ActionIcon aria-label={`${label}: ${options[chosen]}`}>
            <Icon name={icon} />
          </ActionIcon>
        </Tooltip>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>{label}</Menu.Label>
        <Menu.RadioGroup value={chosen} onChange={(name) => onChoose(name as Name)}>
          {(Object.keys(options) as Name[]).map((name) => (
            <Menu.RadioItem key={name} value={name}>
              {options[name]}
            </Menu.RadioItem>
          ))}
        </Menu.RadioGroup>
      </Menu.Dropdown>
    </Menu>
  );
}

function AccountMenu() {
  const { team, key } = useSession();
  return (
    <Menu position="bottom-end" withinPortal={false}>
      <Menu.Target>
        <ActionIcon aria-label={`Signed in to ${team.name}`}>
          <Icon name="key" />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>
          Team: {team.name}
          <br />
          Key: {key.name === '' ? key.id : key.name}
          <br />
          Scopes: {key.scopes.join(', ')}
        </Menu.Label>
        <Menu.Item leftSection={<Icon name="signOut" />} onClick={() => void signOut()}>
          Sign out
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}

/** Shorter outages, such as a restart, are not reported. */
const PATIENCE_MS = 3_000;

/** Warns that the page may be outdated while the service does not respond. */
function OfflineNote() {
  const connection = live.connection.use();
  const [since, setSince] = useState<string>();
  const wasShown = useRef(false);
  useEffect(() => {
    if (connection !== 'reconnecting') {
      if (wasShown.current && connection === 'live') announced.set('The service is responding again');
      wasShown.current = false;
      setSince(undefined);
      return;
    }
    const start = new Date().toISOString();
    const timer = setTimeout(() => {
      wasShown.current = true;
      setSince(start);
    }, PATIENCE_MS);
    return () => clearTimeout(timer);
  }, [connection]);
  return (
    <div role="status" className={styles.offline}>
      {since !== undefined && (
        <Paper p="xs" shadow="md">
          <Group gap="sm" wrap="nowrap">
            <Icon name="warning" />
            <Text size="sm">
              The service is not responding. This page shows data from <Time at={since} />.
            </Text>
            <ActionButton action={live.reconnect} style={{ flex: 'none' }} label="Retry now" />
          </Group>
        </Paper>
      )}
    </div>
  );
}

/** By then the first page has loaded its data. */
const PRELOAD_AFTER_MS = 1_500;

/** Preloads the code of all pages, so that navigation is immediate even while the service is unreachable. */
function usePreloadedPages(): void {
  const router = useRouter();
  useEffect(() => {
    const load = async () => {
      for (const route of Object.values(router.routesById)) await router.loadRouteChunk(route);
    };
    // A page that cannot be preloaded reports the error when it is opened.
    const timer = setTimeout(() => void load().catch(() => {}), PRELOAD_AFTER_MS);
    return () => clearTimeout(timer);
  }, [router]);
}
