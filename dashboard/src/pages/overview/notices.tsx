/** "Tell me when something breaks": a webhook of all workflows that sends failures to a person. */
import { CloseButton, Group, Modal, Paper, Text } from '@mantine/core';
import { useDisclosure, useLocalStorage } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { flowhook } from '../../client.ts';
import { ActionButton, ActionForm, useAction } from '../../parts/action.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Note } from '../../parts/values.tsx';
import { isNoticedQuery } from '../../queries/webhooks.ts';
import { useSession } from '../../session.tsx';
import { addressRemark, DESTINATION_KINDS, type PeopleKind, urlFrom } from '../webhooks/destination.ts';
import { DestinationFields } from '../webhooks/destination-fields.tsx';
import { MY_ZONE } from '../webhooks/rule/rule-form.ts';

const KINDS = DESTINATION_KINDS.filter((kind) => kind !== 'http');
const EVENTS = [
  'workflow_failed',
  'workflow_stale',
  'workflow_recovered',
  'webhook_failing',
  'webhook_paused',
];
const NAME = 'When something breaks';

/** Offers such a webhook until such a webhook exists or the user hides the offer in this browser. */
export function NoticesOffer() {
  const { team, can } = useSession();
  const [isHidden, setHidden] = useLocalStorage({
    key: `flowhook-notices-${team.id}`,
    defaultValue: false,
    getInitialValueInEffect: false,
  });
  const [isOpen, { open, close }] = useDisclosure(false);
  const { data: isNoticed = true } = useQuery({ ...isNoticedQuery(), enabled: can('webhooks') && !isHidden });
  // The dialog also stays for its last animation.
  if ((isNoticed || isHidden) && !isOpen) return null;
  return (
    <Paper px="md" py="xs" component="section" aria-label="Notices">
      <Group gap="sm" wrap="nowrap">
        <Icon name="bell" />
        <Group gap="sm" style={{ flex: 1, rowGap: 4 }}>
          <Text size="sm" style={{ flex: '1 1 240px' }}>
            Nobody gets a message when a run or a webhook fails.
          </Text>
          <ActionButton action={open} label="Tell me when something breaks" />
        </Group>
        <CloseButton size="sm" aria-label="Hide this offer" onClick={() => setHidden(true)} />
      </Group>
      <Modal opened={isOpen} onClose={close} title="Tell me when something breaks" size="lg">
        <NoticesForm onClose={close} />
      </Modal>
    </Paper>
  );
}

function NoticesForm({ onClose }: { onClose: () => void }) {
  const navigate = useNavigate();
  const [{ kind, address }, setTo] = useState<{ kind: PeopleKind; address: string }>({
    kind: 'mail',
    address: '',
  });
  const { mistake } = addressRemark(kind, address);
  const create = useAction({
    run: () =>
      flowhook.webhooks.create({
        url: urlFrom(kind, address),
        events: EVENTS,
        format: kind,
        timeZone: MY_ZONE,
        name: NAME,
      }),
    changes: ['webhooks'],
    done: ({ message }) => message,
    onDone: ({ id }) => {
      onClose();
      void navigate({ to: '/webhooks/$webhookId', params: { webhookId: id } });
    },
  });
  return (
    <ActionForm
      action={create}
      verb="Subscribe"
      isReady={address.trim() !== '' && mistake === undefined}
      onBack={onClose}
    >
      <Note>
        Sends a message when a run of any workflow fails, when a workflow is stale and when it is fresh again,
        when a webhook starts to fail, and when a webhook is paused because it kept failing. You can change
        the events later, on the page of the webhook.
      </Note>
      <DestinationFields kinds={KINDS} kind={kind} address={address} onChange={setTo} />
    </ActionForm>
  );
}
