/** What a rule would have done with the last events: the exact body, or why nothing would be sent. */
import { Accordion, Alert, Group, Loader, Stack, Text } from '@mantine/core';
import { bytes, count, many } from '../../../parts/format.ts';
import { Icon } from '../../../parts/icon.tsx';
import { BodyView } from '../../../parts/messages/message-view.tsx';
import { ErrorBox, PageLink } from '../../../parts/page.tsx';
import { StateBadge } from '../../../parts/state-badge.tsx';
import { Note, Prose, Time } from '../../../parts/values.tsx';
import type { TriedEvent, TriedRule } from './tried-rule.ts';

export function TriedEvents({ tried }: { tried: TriedRule }) {
  const { events, isOld, hasMistake, isGathered, error, retry } = tried;
  if (error !== null) return <ErrorBox error={error} onRetry={retry} />;
  if (hasMistake) return <Note>Complete or correct the rule to see what would be sent.</Note>;
  if (events === undefined) return <Loader aria-label="Loading" size="sm" />;
  if (events.length === 0) {
    return (
      <Note>There are no events of these types yet. When there are, this shows what would be sent.</Note>
    );
  }
  // A rule with a digest is tried on the same events; the digests follow as events of their own.
  const past = events.filter(({ type }) => !isGathered || type !== 'webhook_digest');
  const passing = past.filter((event) => stateOf(event) !== 'filtered').length;
  const mistake = events.find((event) => event.mistake !== null)?.mistake ?? null;
  // What would be sent comes first, because it may be rare.
  const shown = events.toReversed().toSorted((a, b) => Number(hasMessage(b)) - Number(hasMessage(a)));
  const newestSent = events.findLast(hasMessage)?.eventId;
  return (
    <Stack gap="xs" data-old={isOld || undefined}>
      <Text size="sm" role="status">
        {passing === 0 ? 'None' : count(passing)} of the last {many(past.length, 'event')} would be{' '}
        {isGathered ? 'gathered' : 'sent'}.
      </Text>
      {mistake !== null && (
        <Alert color="orange" p="xs" icon={<Icon name="warning" size={14} />}>
          <MistakeOnRecord mistake={mistake} />
        </Alert>
      )}
      <Accordion
        multiple
        key={newestSent}
        defaultValue={newestSent === undefined ? [] : [newestSent]}
        variant="contained"
        chevronPosition="left"
        order={3}
      >
        {shown.map((event) => (
          <Accordion.Item key={event.eventId} value={event.eventId}>
            <Accordion.Control>
              <Line event={event} />
            </Accordion.Control>
            <Accordion.Panel>
              <Detail event={event} />
            </Accordion.Panel>
          </Accordion.Item>
        ))}
      </Accordion>
    </Stack>
  );
}

/** Whether there is a message to show: one that would be sent, or a digest that is still open. */
function hasMessage({ body }: TriedEvent): boolean {
  return body !== null;
}

function stateOf(event: TriedEvent): 'sent' | 'gathered' | 'filtered' {
  if (event.sent) return 'sent';
  // The service says so in this reason only.
  const isGathered = hasMessage(event) || event.reason?.startsWith('Gathered') === true;
  return isGathered ? 'gathered' : 'filtered';
}

function Line({ event }: { event: TriedEvent }) {
  const { type, timestamp, sent, cooldownEnded, matched, examined, reason } = event;
  return (
    <Stack gap={0}>
      <Group gap="sm" style={{ rowGap: 0 }}>
        <StateBadge state={stateOf(event)} label={labelOf(event)} />
        <Text span size="sm">
          {type}
        </Text>
        <Text span size="sm" c="dimmed" ms="auto">
          <Time at={timestamp} />
        </Text>
      </Group>
      <Text span size="xs" c="dimmed">
        {cooldownEnded && 'Sent when the cooldown ends. '}
        {sent ? (
          matched !== null && `${count(matched)} of ${many(examined ?? matched, 'difference')} match`
        ) : (
          <Prose text={reason ?? ''} />
        )}
      </Text>
    </Stack>
  );
}

function labelOf(event: TriedEvent): string {
  const labels = { sent: 'Would be sent', gathered: 'Gathered', filtered: 'Not sent' };
  return !event.sent && hasMessage(event) ? 'Open digest' : labels[stateOf(event)];
}

function Detail(props: { event: TriedEvent }) {
  const { eventId, type: name, cooldownEnded, body, headers, mistake } = props.event;
  const type = headers?.['content-type'];
  return (
    <Stack gap="xs">
      {mistake !== null && (
        <Note>
          <MistakeOnRecord mistake={mistake} />
        </Note>
      )}
      {body !== null && (
        <BodyView
          body={body}
          label="Body that would be sent"
          note={
            <Text size="xs" c="dimmed">
              The body has {bytes(new TextEncoder().encode(body).length)}
              {type !== undefined && ` of ${type}`}. Here it is indented.
            </Text>
          }
        />
      )}
      {!cooldownEnded && name !== 'webhook_digest' && (
        <PageLink to="/events/$eventId" params={{ eventId }} fz="sm">
          View the whole event
        </PageLink>
      )}
    </Stack>
  );
}

function MistakeOnRecord(props: { mistake: NonNullable<TriedEvent['mistake']> }) {
  const { recordId, message } = props.mistake;
  return (
    <>
      {recordId !== null && (
        <>
          Record <code>{recordId}</code>:{' '}
        </>
      )}
      <Prose text={message} />
    </>
  );
}
