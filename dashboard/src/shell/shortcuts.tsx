/** The shell's shortcuts for navigation, search and help. */
import { Group, Kbd, Modal, Stack, Switch, Table, Title } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useNavigate } from '@tanstack/react-router';
import { type Shortcut, shortcuts, singleKeys, useShortcut, useShortcutKeys } from '../parts/keyboard.ts';
import { type Destination, useDestinations } from './navigation.tsx';

export function ShellShortcuts() {
  const [isOpen, help] = useDisclosure(false);
  useShortcutKeys();
  useShortcut('?', 'Show keyboard shortcuts', help.open);
  useShortcut('g a', 'Go to API reference', () => location.assign('/docs'));
  useShortcut('/', 'Search this page', () => {
    const [field] = document.querySelectorAll<HTMLInputElement>(
      '#page [data-search], #page input[type="search"]',
    );
    field?.focus();
    field?.select();
  });
  return (
    <>
      {useDestinations().map((destination) => (
        <GoTo key={destination.to} {...destination} />
      ))}
      <ShortcutHelp isOpen={isOpen} onClose={help.close} />
    </>
  );
}

function GoTo({ to, label, letter }: Destination) {
  const navigate = useNavigate();
  useShortcut(`g ${letter}`, `Go to ${label}`, () => void navigate({ to }));
  return null;
}

/** `useRowKeys` handles these. */
const IN_TABLES: Keys[] = [
  { keys: 'j', label: 'Next row' },
  { keys: 'k', label: 'Previous row' },
  { keys: 'Enter', label: 'Open the row' },
  { keys: 'x', label: 'Select the row' },
  { keys: 'Escape', label: 'Leave the table' },
];

const ALWAYS: Keys[] = [{ keys: 'Ctrl+K', label: 'Quick search (⌘K on a Mac)' }];

type Keys = Pick<Shortcut, 'keys' | 'label'>;

function ShortcutHelp({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const all = shortcuts.use();
  const isOn = singleKeys.use() === 'on';
  const isNavigation = ({ keys }: Keys) => keys.startsWith('g ');
  const groups: [title: string, keys: Keys[]][] = [
    ['On this page', [...all.filter((shortcut) => !isNavigation(shortcut)), ...ALWAYS]],
    ['In tables', IN_TABLES],
    ['Go to a page', all.filter(isNavigation)],
  ];
  return (
    <Modal opened={isOpen} onClose={onClose} title="Keyboard shortcuts">
      <Stack>
        <Switch
          label="Single-key shortcuts"
          description="Ctrl+K and ⌘K always work."
          checked={isOn}
          onChange={(event) => singleKeys.set(event.currentTarget.checked ? 'on' : 'off')}
        />
        {groups.map(([title, keys]) => (
          <section key={title} aria-label={title}>
            <Title order={3} size="h6" mb={4}>
              {title}
            </Title>
            <Table>
              <Table.Tbody>
                {keys.map((shortcut) => (
                  <Table.Tr key={`${shortcut.keys} ${shortcut.label}`}>
                    <Table.Td>{shortcut.label}</Table.Td>
                    <Table.Td>
                      <Group gap={4} justify="flex-end" wrap="nowrap">
                        {shortcut.keys.split(' ').map((key) => (
                          <Kbd key={key} size="xs">
                            {key}
                          </Kbd>
                        ))}
                      </Group>
                    </Table.Td>
                  </Table.Tr>
                ))}
              </Table.Tbody>
            </Table>
          </section>
        ))}
      </Stack>
    </Modal>
  );
}
