/** What can be done with a webhook. */
import { Button, Group, Modal, Stack, Text, TextInput } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useNavigate } from '@tanstack/react-router';
import type { WebhookDetail } from 'flowhook-client';
import { type SubmitEvent, useState } from 'react';
import { flowhook } from '../../client.ts';
import { confirm, useAction } from '../../parts/action.tsx';
import { Icon } from '../../parts/icon.tsx';
import { readAgain } from '../../queries/read-again.ts';
import { useShortcut } from '../../shell/shortcuts.ts';

export function WebhookActions({ webhook }: { webhook: WebhookDetail }) {
  const { id, url, state } = webhook;
  const navigate = useNavigate();
  const [isPausing, pausing] = useDisclosure(false);
  const changes = ['webhooks', 'deliveries'];
  const test = useAction({
    run: () => flowhook.webhooks.test(id),
    changes,
    done: ({ message }) => message,
    onDone: ({ deliveryId }) => void navigate({ to: '/deliveries/$deliveryId', params: { deliveryId } }),
  });
  const resume = useAction({
    run: () => flowhook.webhooks.resume(id),
    changes,
    done: () => 'Resumed: what was waiting is sent now',
  });
  const unsubscribe = useAction({
    run: () => flowhook.webhooks.unsubscribe(id),
    done: ({ message }) => message,
    // Away from it first: it cannot be read again.
    onDone: () =>
      void navigate({ to: '/webhooks' }).then(() => {
        for (const kind of changes) readAgain({ kind, ids: null });
      }),
  });
  useShortcut('t', 'Send a test event', () => test.act());
  return (
    <>
      {state === 'paused' ? (
        <Button
          variant="default"
          leftSection={<Icon name="play" size={14} />}
          onClick={() => resume.act()}
          loading={resume.isActing}
        >
          Resume
        </Button>
      ) : (
        <Button variant="default" leftSection={<Icon name="pause" size={14} />} onClick={pausing.open}>
          Pause
        </Button>
      )}
      <Button
        variant="default"
        leftSection={<Icon name="trash" size={14} />}
        loading={unsubscribe.isActing}
        onClick={() =>
          confirm({
            title: 'Unsubscribe this webhook?',
            children: (
              <>
                <Text inherit ff="monospace" style={{ overflowWrap: 'anywhere' }}>
                  {url}
                </Text>
                is no longer called, and its waiting deliveries are canceled. If it is subscribed again, it
                gets a new secret.
              </>
            ),
            verb: 'Unsubscribe',
            onConfirm: () => unsubscribe.act(),
          })
        }
      >
        Unsubscribe
      </Button>
      <Button leftSection={<Icon name="send" size={14} />} onClick={() => test.act()} loading={test.isActing}>
        Send test event
      </Button>
      <Modal opened={isPausing} onClose={pausing.close} title="Pause this webhook">
        {isPausing && <PauseForm webhookId={id} onClose={pausing.close} />}
      </Modal>
    </>
  );
}

function PauseForm({ webhookId, onClose }: { webhookId: string; onClose: () => void }) {
  const [reason, setReason] = useState('');
  const pause = useAction({
    run: () =>
      flowhook.webhooks.pause(webhookId, reason.trim() === '' ? {} : { reason: reason.trim().slice(0, 200) }),
    changes: ['webhooks', 'deliveries'],
    done: () => 'Paused: deliveries wait until it is resumed',
    onDone: onClose,
  });
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    pause.act();
  };
  return (
    <form onSubmit={submit}>
      <Stack gap="md">
        <Text size="sm">Nothing is lost: deliveries wait, and are sent when it is resumed.</Text>
        <TextInput
          label="Reason"
          description="Shown to those who find it paused"
          placeholder="The CRM is being moved"
          value={reason}
          onChange={({ currentTarget }) => setReason(currentTarget.value)}
          maxLength={200}
          data-autofocus
        />
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Back
          </Button>
          <Button type="submit" loading={pause.isActing}>
            Pause
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
