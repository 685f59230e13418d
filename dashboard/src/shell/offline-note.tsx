/** A note beside the page that its data may be old, shown when the service has not answered for a moment. */
import { Button, Group, Paper, Text } from '@mantine/core';
import { useEffect, useRef, useState } from 'react';
import { live, useConnection } from '../live.ts';
import { announce } from '../parts/announce.ts';
import { Icon } from '../parts/icon.tsx';
import { Time } from '../parts/time.tsx';
import styles from './shell.module.css';

/** Shorter outages, such as a restart, are not mentioned, in milliseconds. */
const PATIENCE_MS = 3_000;

export function OfflineNote() {
  const connection = useConnection();
  const [since, setSince] = useState<string>();
  const wasSaid = useRef(false);
  useEffect(() => {
    if (connection !== 'reconnecting') {
      if (wasSaid.current && connection === 'live') announce('The service answers again');
      wasSaid.current = false;
      setSince(undefined);
      return;
    }
    const begin = new Date().toISOString();
    const timer = setTimeout(() => {
      wasSaid.current = true;
      setSince(begin);
    }, PATIENCE_MS);
    return () => clearTimeout(timer);
  }, [connection]);
  return (
    <div role="status" className={styles.offline}>
      {since !== undefined && (
        <Paper p="xs" shadow="md">
          <Group gap="sm" wrap="nowrap">
            <Icon name="warning" />
            <Text size="sm">
              The service does not answer. What you see is what was known <Time at={since} />.
            </Text>
            <Button variant="default" style={{ flex: 'none' }} onClick={live.again}>
              Try now
            </Button>
          </Group>
        </Paper>
      )}
    </div>
  );
}
