/** The buttons that rotate and revoke a key. */
import { Button, Group } from '@mantine/core';
import type { Key, MadeKey } from 'flowhook-client';
import { flowhook } from '../../client.ts';
import { confirm, useAction } from '../../parts/action.tsx';

/** How long a rotated key keeps working, so that its users can switch to the new one. */
const OVERLAP_SECONDS = 24 * 3_600;

/** @param props.isMine it is the key of the session, which ends with it */
export function KeyActions({
  apiKey,
  isMine,
  onMade,
}: {
  apiKey: Key;
  isMine: boolean;
  onMade: (made: MadeKey) => void;
}) {
  const { id, name, scopes } = apiKey;
  const rotate = useAction({
    run: () => flowhook.keys.rotate(id, { overlapSeconds: OVERLAP_SECONDS }),
    changes: ['keys'],
    onDone: onMade,
  });
  const revoke = useAction({
    run: () => flowhook.keys.revoke(id, { self: isMine }),
    changes: ['keys', 'session'],
    done: () => `The key ${name} is revoked`,
  });
  // These are renewed and ended where they are made.
  if (scopes.includes('operator')) return <span>at the shell</span>;
  return (
    <Group gap="xs" wrap="nowrap">
      <Button
        variant="default"
        aria-label={`Rotate ${name}`}
        loading={rotate.isActing}
        onClick={() =>
          confirm({
            title: `Rotate ${name}?`,
            children:
              'A new key with the same scopes is made, and shown once. The old one works for another 24 hours.',
            verb: 'Rotate',
            onConfirm: () => rotate.act(),
          })
        }
      >
        Rotate
      </Button>
      <Button
        variant="default"
        aria-label={`Revoke ${name}`}
        loading={revoke.isActing}
        onClick={() =>
          confirm({
            title: `Revoke ${name}?`,
            children: isMine
              ? 'You are signed in with this key: the session ends at once, and you need another key to come back.'
              : 'It is refused from this moment on. This cannot be undone.',
            verb: 'Revoke',
            onConfirm: () => revoke.act(),
          })
        }
      >
        Revoke
      </Button>
    </Group>
  );
}
