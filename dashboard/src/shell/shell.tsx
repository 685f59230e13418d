/** The layout around every page: header, navigation, and the page itself. */
import { ActionIcon, AppShell, Burger, Group, Text, Tooltip } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useLive } from '../live.ts';
import { useAnnounced } from '../parts/announce.ts';
import { Icon } from '../parts/icon.tsx';
import { PageLink } from '../parts/link.tsx';
import { AccountMenu } from './account-menu.tsx';
import { ConnectionDot } from './connection.tsx';
import { FrameShortcuts } from './frame-shortcuts.tsx';
import { Navigation } from './navigation.tsx';
import { OfflineNote } from './offline-note.tsx';
import { usePagesInAdvance } from './pages-in-advance.ts';
import { openPalette, Palette } from './palette.tsx';
import { ReadablePage } from './readable-page.tsx';
import styles from './shell.module.css';
import { ThemeSwitch, TimeSwitch } from './switches.tsx';

export function Shell() {
  const [isOpen, { toggle, close }] = useDisclosure(false);
  useLive();
  usePagesInAdvance();
  return (
    <AppShell
      header={{ height: 48 }}
      navbar={{ width: 200, breakpoint: 'sm', collapsed: { mobile: !isOpen } }}
      padding="md"
    >
      <a href="#page" className={styles.skip}>
        Skip to the page
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
            <Tooltip label="Search everything (Ctrl+K)">
              <ActionIcon aria-label="Search everything" onClick={openPalette}>
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
      <FrameShortcuts />
      <OfflineNote />
      <Announced />
    </AppShell>
  );
}

function Announced() {
  return (
    <div aria-live="polite" className="visually-hidden">
      {useAnnounced()}
    </div>
  );
}
