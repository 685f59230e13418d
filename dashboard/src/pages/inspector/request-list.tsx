/** The requests of an inspector, newest first; the selected one is kept in the URL. */
import { Stack, Text, UnstyledButton } from '@mantine/core';
import type { InspectedRequest } from 'flowhook-client';
import { StateBadge } from '../../parts/state-badge.tsx';
import { Time } from '../../parts/time.tsx';
import styles from './inspector.module.css';
import { VERDICTS } from './request-view.tsx';

export function RequestList({
  requests,
  shown,
  onShow,
}: {
  requests: readonly InspectedRequest[];
  /** The number of the request that is looked at. */
  shown: number | undefined;
  onShow: (number: number) => void;
}) {
  return (
    <ul className={styles.requests} aria-label="Requests">
      {requests.map((request) => (
        <li key={request.number}>
          <UnstyledButton
            className={styles.request}
            aria-current={request.number === shown}
            onClick={() => onShow(request.number)}
          >
            <Stack gap={0}>
              <span className={styles.line}>
                <Text span size="sm" fw={500} style={{ overflowWrap: 'anywhere' }}>
                  {request.method} {eventOf(request)}
                </Text>
                <Text span size="xs" c="dimmed" style={{ whiteSpace: 'nowrap' }}>
                  <Time at={request.receivedAt} />
                </Text>
              </span>
              <Text span size="xs" component="div">
                <StateBadge
                  state={request.signature.verdict}
                  label={VERDICTS[request.signature.verdict].words}
                />
              </Text>
            </Stack>
          </UnstyledButton>
        </li>
      ))}
    </ul>
  );
}

/** What it tells of, where it is one of ours; else its query. */
function eventOf({ headers, path }: InspectedRequest): string {
  return headers['webhook-event'] ?? path.replace(/^\/inspect\/[^/?]+/, '');
}
