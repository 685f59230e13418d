/** How a webhook is called, with which headers and which secret, changed in its place. */
import {
  Alert,
  Anchor,
  Button,
  Modal,
  NumberInput,
  SimpleGrid,
  Stack,
  Switch,
  Text,
  Textarea,
} from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import type { WebhookDetail } from 'flowhook-client';
import { useState } from 'react';
import { flowhook } from '../../client.ts';
import { ActionButton, ActionForm, useAction } from '../../parts/action.tsx';
import { CommandLine } from '../../parts/copy.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Section } from '../../parts/page.tsx';
import { Time } from '../../parts/values.tsx';
import { headersFrom } from './typed.ts';

/** Keyed by the settings: what others change is taken over. */
export function WebhookSettings({ webhook }: { webhook: WebhookDetail }) {
  const { id, settings } = webhook;
  const [ordered, setOrdered] = useState(settings.ordered);
  const [rate, setRate] = useState<number | string>(settings.ratePerSecond ?? '');
  const [timeoutS, setTimeoutS] = useState<number | string>(settings.timeoutMs / 1_000);
  const before = {
    ordered: settings.ordered,
    ratePerSecond: settings.ratePerSecond,
    timeoutMs: settings.timeoutMs,
  };
  const now = {
    ordered,
    ratePerSecond: rate === '' ? null : Number(rate),
    timeoutMs: Math.round(Number(timeoutS) * 1_000),
  };
  const save = useAction({
    run: () => flowhook.webhooks.update(id, now),
    changes: ['webhooks'],
    done: () => 'Saved: it applies from the next attempt',
  });
  return (
    <>
      <Section title="How it is called">
        <ActionForm
          action={save}
          verb="Save"
          isReady={timeoutS !== '' && JSON.stringify(before) !== JSON.stringify(now)}
        >
          {' '}
          <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="md" maw={560}>
            <NumberInput
              label="Timeout of a request"
              description="1 to 30 s; then it counts as failed"
              suffix=" s"
              value={timeoutS}
              onChange={setTimeoutS}
              min={1}
              max={30}
              decimalScale={3}
            />
            <NumberInput
              label="Maximum requests per second"
              description="Empty: no limit"
              placeholder="no limit"
              value={rate}
              onChange={setRate}
              min={0.01}
              max={1_000}
              decimalScale={2}
            />
          </SimpleGrid>
          <Switch
            label="Deliver in the order of the events"
            description="One delivery at a time; one that fails holds up the rest"
            checked={ordered}
            onChange={({ currentTarget }) => setOrdered(currentTarget.checked)}
          />
        </ActionForm>
      </Section>
      <OwnHeaders webhook={webhook} />
    </>
  );
}

function OwnHeaders({ webhook: { id, settings } }: { webhook: WebhookDetail }) {
  const [text, setText] = useState('');
  const names = settings.headers;
  const change = useAction({
    run: (lines: string | null) =>
      Promise.try(() =>
        flowhook.webhooks.update(id, { headers: lines === null ? null : headersFrom(lines) }),
      ),
    changes: ['webhooks'],
    done: (_, lines) => (lines === null ? 'The headers are removed' : 'Saved: they are sent from now on'),
  });
  return (
    <Section title="Custom headers">
      <ActionForm
        action={{ act: () => change.act(text), isActing: change.isActing }}
        verb="Save the headers"
        isReady={text.trim() !== ''}
        beside={
          names?.length !== 0 && (
            <ActionButton action={() => change.act(null)} disabled={change.isActing}>
              Remove them
            </ActionButton>
          )
        }
      >
        <Text size="sm" c="dimmed">
          {names === null
            ? 'They cannot be read with the current encryption key: set them again.'
            : names.length === 0
              ? 'It has none.'
              : 'Sent with every delivery: '}
          {names?.map((name, index) => (
            <span key={name}>
              {index > 0 && ', '}
              <code>{name}</code>
            </span>
          ))}
          {names !== null && names.length > 0 && '. Their values are never shown again.'}
        </Text>
        <Textarea
          label={names?.length === 0 ? 'Send with every delivery' : 'Replace them all with'}
          placeholder={'authorization: Bearer …\nx-receiver: alarms'}
          value={text}
          onChange={({ currentTarget }) => setText(currentTarget.value)}
          autosize
          minRows={2}
          maw={560}
          styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)' } }}
        />
      </ActionForm>
    </Section>
  );
}

const OVERLAP_H = 24;
const MAX_OVERLAP_H = 168;

/** The secret that the receiver verifies with: shown when asked for, and replaced without a gap. */
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
          <ActionButton icon="refresh" action={rotating.open}>
            Rotate
          </ActionButton>
        </>
      }
    >
      <Stack gap="sm">
        {secret === undefined ? (
          <Text size="sm" c="dimmed">
            Every delivery is signed with it (Standard Webhooks, HMAC-SHA256). The receiver needs it to{' '}
            <Anchor inherit href="/docs/guide/guides/verify-webhooks.html" underline="always">
              verify the sender
            </Anchor>
            : treat it like a password.
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
  return (
    <ActionForm action={rotate} verb="Rotate" isReady={hours !== ''} onBack={onClose}>
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
    </ActionForm>
  );
}
