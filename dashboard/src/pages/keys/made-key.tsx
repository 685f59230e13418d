/** A key that was made: the only time that it is seen. */
import { Alert, Button, Group, Modal, Stack } from '@mantine/core';
import type { MadeKey } from 'flowhook-client';
import { serviceUrl } from '../../client.ts';
import { CommandLine } from '../../parts/command-line.tsx';
import { Icon } from '../../parts/icon.tsx';

export function MadeKeyDialog({ made, onClose }: { made: MadeKey | undefined; onClose: () => void }) {
  return (
    <Modal
      opened={made !== undefined}
      onClose={onClose}
      title={`The key ${made?.key.name ?? ''}`}
      size="lg"
      closeOnClickOutside={false}
    >
      {made !== undefined && (
        <Stack gap="md">
          <Alert icon={<Icon name="warning" />} color="orange">
            Copy it now: it is stored only as a fingerprint, and never shown again.
          </Alert>
          <CommandLine command={made.apiKey} label="Copy the key" />
          <CommandLine
            command={`FLOWHOOK_URL=${serviceUrl}\nFLOWHOOK_KEY=${made.apiKey}`}
            label="Copy the lines for .env"
          />
          <Group justify="flex-end">
            <Button onClick={onClose}>I have copied it</Button>
          </Group>
        </Stack>
      )}
    </Modal>
  );
}
