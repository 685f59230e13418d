/** The keys of the frame: going places, searching, help. */
import { useDisclosure } from '@mantine/hooks';
import { useNavigate } from '@tanstack/react-router';
import { type Destination, useDestinations } from './navigation.tsx';
import { ShortcutHelp } from './shortcut-help.tsx';
import { useShortcut, useShortcutKeys } from './shortcuts.ts';

export function FrameShortcuts() {
  const [isOpen, help] = useDisclosure(false);
  useShortcutKeys();
  useShortcut('?', 'Show these shortcuts', help.open);
  useShortcut('/', 'Search on the page', () => {
    const [field] = document.querySelectorAll<HTMLInputElement>(
      '#page [data-search], #page input[type="search"]',
    );
    field?.focus();
    field?.select();
  });
  return (
    <>
      {useDestinations().map((destination) => (
        <Going key={destination.to} {...destination} />
      ))}
      <ShortcutHelp isOpen={isOpen} onClose={help.close} />
    </>
  );
}

function Going({ to, label, letter }: Destination) {
  const navigate = useNavigate();
  useShortcut(`g ${letter}`, `Go to ${label}`, () => void navigate({ to }));
  return null;
}
