/** A summary of an event. */
import { Text } from '@mantine/core';
import type { FlowhookEvent } from 'flowhook-client';
import { lastLine } from '../../parts/last-line.ts';
import { Prose } from '../../parts/prose.tsx';
import { Counts } from '../runs/run-columns.tsx';

export function Said({ event }: { event: FlowhookEvent }) {
  switch (event.type) {
    case 'workflow_finished':
    case 'workflow_data_change':
      return <Counts records={event.data.records} />;
    case 'workflow_failed':
      return <Sentence text={event.data.error ?? ''} isBad />;
    case 'workflow_canceled':
      return <Sentence text={event.data.error ?? ''} />;
    case 'webhook_test':
      return <Sentence text={event.data.message} />;
    case 'webhook_paused':
      return <Sentence text={`${event.data.reason} (${event.data.url})`} isBad />;
    default:
      return null;
  }
}

function Sentence({ text, isBad = false }: { text: string; isBad?: boolean }) {
  return (
    <Text
      span
      inherit
      truncate
      display="block"
      c={isBad ? 'var(--mantine-color-error)' : 'dimmed'}
      title={text}
    >
      <Prose text={lastLine(text)} />
    </Text>
  );
}
