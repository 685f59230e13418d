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
  const sent = events.filter((event) => event.sent).length;
  const mistake = events.find((event) => event.mistake !== null)?.mistake ?? null;
  // What would be sent comes first, because it may be rare.
  const shown = events.toReversed().toSorted((a, b) => Number(b.sent) - Number(a.sent));
  const newestSent = events.findLast((event) => event.sent)?.eventId;
  return (
    <Stack gap="xs" data-old={isOld || undefined}>
      <Text size="sm" role="status">
        {sent === 0 ? 'None' : count(sent)} of the last {many(events.length, 'event')} would be sent.
      </Text>
      {isGathered && sent > 0 && (
        <Note>The digest gathers what matches into one message, shown here as it would be now.</Note>
      )}
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

function Line({ event }: { event: TriedEvent }) {
  const { type, timestamp, sent, cooldownEnded, matched, examined, reason } = event;
  return (
    <Stack gap={0}>
      <Group gap="sm" style={{ rowGap: 0 }}>
        <StateBadge state={sent ? 'sent' : 'filtered'} label={sent ? 'Would be sent' : 'Not sent'} />
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

function Detail({ event: { eventId, cooldownEnded, body, headers, mistake } }: { event: TriedEvent }) {
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
      {!cooldownEnded && (
        <PageLink to="/events/$eventId" params={{ eventId }} fz="sm">
          View the whole event
        </PageLink>
      )}
    </Stack>
  );
}

function MistakeOnRecord({
  mistake: { recordId, message },
}: {
  mistake: NonNullable<TriedEvent['mistake']>;
}) {
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
