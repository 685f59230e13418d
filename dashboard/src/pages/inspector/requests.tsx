/** The requests of an inspector, as a line in the list and in full. */
import { Alert, Group, Stack, Text, Title } from '@mantine/core';
import type { InspectedRequest } from '../../../../client/src/flowhook-client.ts';
import { HeaderTable, JsonView } from '../../parts/code.tsx';
import { Copy } from '../../parts/copy.tsx';
import { bytes } from '../../parts/format.ts';
import { Icon, type IconName } from '../../parts/icon.tsx';
import { PageLink } from '../../parts/page.tsx';
import { StateBadge } from '../../parts/state-badge.tsx';
import { Note, Prose, Time } from '../../parts/values.tsx';

export function RequestLine({ request }: { request: InspectedRequest }) {
  const { verdict } = request.signature;
  return (
    <>
      <Group component="span" justify="space-between" gap={8} style={{ rowGap: 0 }}>
        <Text span inherit fw={500} style={{ overflowWrap: 'anywhere' }}>
          {request.method} {eventOf(request)}
        </Text>
        <Text span size="xs" c="dimmed" style={{ whiteSpace: 'nowrap' }}>
          <Time at={request.receivedAt} />
        </Text>
      </Group>
      <Text span size="xs" component="div">
        <StateBadge state={verdict} label={VERDICTS[verdict].words} />
      </Text>
    </>
  );
}

/** The event type of a webhook request; the query of any other request. */
function eventOf({ headers, path }: InspectedRequest): string {
  return headers['webhook-event'] ?? path.replace(/^\/inspect\/[^/?]+/, '');
}

type Verdict = InspectedRequest['signature']['verdict'];

const VERDICTS: Record<Verdict, { words: string; color: string; icon: IconName }> = {
  valid: { words: 'Valid signature', color: 'green', icon: 'check' },
  expired: { words: 'Valid signature, but expired', color: 'orange', icon: 'clock' },
  invalid: { words: 'Invalid signature', color: 'red', icon: 'cross' },
  absent: { words: 'Not signed', color: 'gray', icon: 'help' },
};

export function RequestView({ request }: { request: InspectedRequest }) {
  const { number, method, path, receivedAt, headers, body, bodyBytes, truncated, signature } = request;
  const { words, color, icon } = VERDICTS[signature.verdict];
  return (
    <Stack gap="md" component="section" aria-label={`Request ${number}`} miw={0}>
      <Group justify="space-between" gap="xs">
        <Title order={2} size="h4">
          Request {number}
        </Title>
        <Note>
          <Time at={receivedAt} />
        </Note>
      </Group>
      <Alert color={color} icon={<Icon name={icon} />} title={words}>
        <span style={{ overflowWrap: 'anywhere' }}>
          <Prose text={signature.message} />.
        </span>
        {signature.webhookId !== null && (
          <>
            {' '}
            <PageLink
              to="/webhooks/$webhookId"
              params={{ webhookId: signature.webhookId }}
              underline="always"
              c="inherit"
            >
              View webhook
            </PageLink>
          </>
        )}
      </Alert>
      <Group gap={4} wrap="nowrap" miw={0}>
        <Text ff="monospace" size="sm" style={{ overflowWrap: 'anywhere' }}>
          <b>{method}</b> {path}
        </Text>
        <Copy value={path} label="Copy the path" />
      </Group>
      <Stack gap={4}>
        <Title order={3} size="h5">
          Headers
        </Title>
        <HeaderTable label="Headers" headers={headers} />
      </Stack>
      <Stack gap={4}>
        <Group gap="xs" align="baseline">
          <Title order={3} size="h5">
            Body
          </Title>
          <Text size="xs" c="dimmed">
            {bytes(bodyBytes)}
            {truncated && ' (only the first 64 KiB are kept)'}
          </Text>
        </Group>
        {body === '' ? <Note>Empty</Note> : <JsonView value={body} label="Body" />}
      </Stack>
    </Stack>
  );
}
