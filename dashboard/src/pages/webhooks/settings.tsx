/** The settings of a webhook: timeout, rate limit, order, custom headers and secret. */
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
import { useState } from 'react';
import type { WebhookDetail } from '../../../../client/src/flowhook-client.ts';
import { flowhook } from '../../client.ts';
import { ActionButton, ActionForm, useAction } from '../../parts/action.tsx';
import { CommandLine } from '../../parts/copy.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Section } from '../../parts/page.tsx';
import { Note, Time } from '../../parts/values.tsx';
import { isMail } from './destination.ts';
import { headersFrom } from './typed.ts';

/** Keyed by the settings, so that changes by others show up. */
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
    done: () => 'Saved. The next attempt uses these settings.',
  });
  return (
    <>
      <Section title="Delivery">
        <ActionForm
          action={save}
          verb="Save"
          isReady={timeoutS !== '' && JSON.stringify(before) !== JSON.stringify(now)}
        >
          <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="md" maw={560}>
            <NumberInput
              label="Request timeout"
              description="1 to 30 s"
              suffix=" s"
              value={timeoutS}
              onChange={setTimeoutS}
              min={1}
              max={30}
              decimalScale={3}
            />
            <NumberInput
              label="Rate limit"
              description="Requests per second, 0.01 to 1,000"
              placeholder="No limit"
              value={rate}
              onChange={setRate}
              min={0.01}
              max={1_000}
              decimalScale={2}
            />
          </SimpleGrid>
          <Switch
            label="Deliver events in order"
            description="One delivery at a time. A failing delivery blocks the ones behind it."
            checked={ordered}
            onChange={({ currentTarget }) => setOrdered(currentTarget.checked)}
          />
        </ActionForm>
      </Section>
      {!isMail(webhook.url) && <CustomHeaders webhook={webhook} />}
    </>
  );
}

function CustomHeaders({ webhook: { id, settings } }: { webhook: WebhookDetail }) {
  const [text, setText] = useState('');
  const names = settings.headers;
  const change = useAction({
    run: (lines: string | null) =>
      Promise.try(() =>
        flowhook.webhooks.update(id, { headers: lines === null ? null : headersFrom(lines) }),
      ),
    changes: ['webhooks'],
    done: (_, lines) => (lines === null ? 'Headers removed' : 'Saved. The next attempt sends these headers.'),
  });
  return (
    <Section title="Custom headers">
      <ActionForm
        action={{ act: () => change.act(text), isActing: change.isActing }}
        verb="Save headers"
        isReady={text.trim() !== ''}
        beside={
          names?.length !== 0 && (
            <ActionButton action={() => change.act(null)} disabled={change.isActing} label="Remove all" />
          )
        }
      >
        <Note>
          {names === null
            ? 'The current encryption key cannot decrypt the headers. Set them again.'
            : names.length === 0
              ? 'None. Add headers that every delivery should have, such as credentials.'
              : 'Sent with every delivery: '}
          {names?.map((name, index) => (
            <span key={name}>
              {index > 0 && ', '}
              <code>{name}</code>
            </span>
          ))}
          {names !== null && names.length > 0 && '. Their values are never shown.'}
        </Note>
        <Textarea
          label={names?.length === 0 ? 'Headers' : 'Replace all headers with'}
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

/** The secret that signs deliveries: shown on request, and rotated with an overlap. */
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
          <ActionButton icon="refresh" action={rotating.open} label="Rotate" />
        </>
      }
    >
      <Stack gap="sm">
        {secret === undefined ? (
          <Note>
            This secret signs every delivery (Standard Webhooks, HMAC-SHA256). Your receiver needs it to{' '}
            <Anchor inherit href="/docs/guide/guides/verify-webhooks.html" underline="always">
              verify the sender
            </Anchor>
            . Treat it like a password.
          </Note>
        ) : (
          <CommandLine command={secret} label="Copy secret" />
        )}
        {overlapUntil !== undefined && (
          <Alert color="gray" icon={<Icon name="clock" />} p="xs">
            This is the new secret. Deliveries are also signed with the old one, which expires{' '}
            <Time at={overlapUntil} as="at" />. Configure the new secret in your receiver before then.
          </Alert>
        )}
      </Stack>
      <Modal opened={isRotating} onClose={rotating.close} title="Rotate secret">
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

function RotateForm(props: {
  webhookId: string;
  onClose: () => void;
  /** `overlapUntil` is undefined without an overlap. */
  onDone: (made: { secret: string; overlapUntil: string | undefined }) => void;
}) {
  const { webhookId, onClose, onDone } = props;
  const [hours, setHours] = useState<number | string>(OVERLAP_H);
  const rotate = useAction({
    run: () => flowhook.webhooks.rotate(webhookId, { overlapHours: Number(hours) }),
    done: ({ message }) => message,
    onDone: ({ secret, overlapUntil }) => {
      onDone({ secret, overlapUntil: Number(hours) > 0 ? overlapUntil : undefined });
      onClose();
    },
  });
  return (
    <ActionForm action={rotate} verb="Rotate" isReady={hours !== ''} onBack={onClose}>
      <Text size="sm">
        This creates a new secret. During the overlap, deliveries are signed with both secrets, so you can
        update your receiver at any time.
      </Text>
      <NumberInput
        label="Overlap"
        description="0 to 168 h. Use 0 if the old secret leaked: it then expires immediately."
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
