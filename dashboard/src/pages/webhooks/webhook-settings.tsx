/** How a webhook is called, changed in its place. */
import { Button, Group, NumberInput, SimpleGrid, Stack, Switch, Text, Textarea } from '@mantine/core';
import type { WebhookDetail } from 'flowhook-client';
import { type SubmitEvent, useState } from 'react';
import { flowhook } from '../../client.ts';
import { useAction } from '../../parts/action.tsx';
import { Section } from '../../parts/section.tsx';
import { headersFrom } from './own-headers.ts';

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
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    save.act();
  };
  return (
    <>
      <Section title="How it is called">
        <form onSubmit={submit}>
          <Stack gap="md">
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
            <Group>
              <Button
                type="submit"
                loading={save.isActing}
                disabled={timeoutS === '' || JSON.stringify(before) === JSON.stringify(now)}
              >
                Save
              </Button>
            </Group>
          </Stack>
        </form>
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
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    change.act(text);
  };
  return (
    <Section title="Custom headers">
      <form onSubmit={submit}>
        <Stack gap="sm">
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
          <Group>
            <Button type="submit" disabled={text.trim() === ''} loading={change.isActing}>
              Save the headers
            </Button>
            {names?.length !== 0 && (
              <Button variant="default" onClick={() => change.act(null)} disabled={change.isActing}>
                Remove them
              </Button>
            )}
          </Group>
        </Stack>
      </form>
    </Section>
  );
}
