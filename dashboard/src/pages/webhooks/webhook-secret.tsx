/** The secret that the receiver verifies with: shown when asked for, and replaced without a gap. */
import { Alert, Button, Group, Modal, NumberInput, Stack, Text } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { type SubmitEvent, useState } from 'react';
import { flowhook } from '../../client.ts';
import { useAction } from '../../parts/action.tsx';
import { CommandLine } from '../../parts/command-line.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Section } from '../../parts/section.tsx';
import { Time } from '../../parts/time.tsx';

const OVERLAP_H = 24;
const MAX_OVERLAP_H = 168;

export function WebhookSecret({ webhookId }: { webhookId: string }) {
  const [secret, setSecret] = useState<string>();
  const [overlapUntil, setOverlapUntil] = useState<string>();
  const [isRotating, rotating] = useDisclosure(false);
  const show = useAction({ run: () => flowhook.webhooks.secret(webhookId), onDone: setSecret });
  return (
    <Section
      title="Secret"
      actions={
        <>
          <Button
            variant="default"
            leftSection={<Icon name="eye" size={14} />}
            onClick={() => (secret === undefined ? show.act() : setSecret(undefined))}
            loading={show.isActing}
          >
            {secret === undefined ? 'Show' : 'Hide'}
          </Button>
          <Button variant="default" leftSection={<Icon name="refresh" size={14} />} onClick={rotating.open}>
            Rotate
          </Button>
        </>
      }
    >
      <Stack gap="sm">
        {secret === undefined ? (
          <Text size="sm" c="dimmed">
            Every delivery is signed with it (Standard Webhooks, HMAC-SHA256). The receiver needs it to verify
            the sender: treat it like a password.
          </Text>
        ) : (
          <CommandLine command={secret} label="Copy the secret" />
        )}
        {overlapUntil !== undefined && (
          <Alert color="gray" icon={<Icon name="clock" />} p="xs">
            This is the new secret. Deliveries are also signed with the old one, which expires{' '}
            <Time at={overlapUntil} />: configure the new one in the receiver before then.
          </Alert>
        )}
      </Stack>
      <Modal opened={isRotating} onClose={rotating.close} title="Rotate the secret">
        {isRotating && (
          <RotateForm
            webhookId={webhookId}
            onClose={rotating.close}
            onDone={(made) => {
              setSecret(made.secret);
              setOverlapUntil(made.overlapUntil);
            }}
          />
        )}
      </Modal>
    </Section>
  );
}

function RotateForm({
  webhookId,
  onClose,
  onDone,
}: {
  webhookId: string;
  onClose: () => void;
  onDone: (made: { secret: string; overlapUntil: string }) => void;
}) {
  const [hours, setHours] = useState<number | string>(OVERLAP_H);
  const rotate = useAction({
    run: () => flowhook.webhooks.rotate(webhookId, { overlapHours: Number(hours) }),
    done: ({ message }) => message,
    onDone: (made) => {
      onDone(made);
      onClose();
    },
  });
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    rotate.act();
  };
  return (
    <form onSubmit={submit}>
      <Stack gap="md">
        <Text size="sm">
          The webhook gets a new secret. Meanwhile every delivery carries a signature of each, so that the
          receiver can be changed at any time in between.
        </Text>
        <NumberInput
          label="Also sign with the old one for"
          description="0 hours if it has leaked: it ends at once"
          suffix=" h"
          value={hours}
          onChange={setHours}
          min={0}
          max={MAX_OVERLAP_H}
          clampBehavior="strict"
          allowDecimal={false}
          data-autofocus
        />
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Back
          </Button>
          <Button type="submit" loading={rotate.isActing} disabled={hours === ''}>
            Rotate
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
