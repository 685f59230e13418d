/** The state of live updates, as a button that pauses and resumes them. */
import { Box, Tooltip, UnstyledButton } from '@mantine/core';
import { type Connection, live, useConnection } from '../live.ts';
import styles from './shell.module.css';

const WORDS: Record<Connection, { word: string; color: string; title: string }> = {
  live: { word: 'Live', color: 'green', title: 'Changes appear at once. Press to pause' },
  reconnecting: { word: 'Reconnecting', color: 'orange', title: 'The service does not answer; trying again' },
  paused: { word: 'Paused', color: 'gray', title: 'Updates are paused. Press to resume' },
};

export function ConnectionDot() {
  const connection = useConnection();
  const { word, color, title } = WORDS[connection];
  return (
    <Tooltip label={title}>
      <UnstyledButton className={styles.connection} onClick={live.toggle} data-connection={connection}>
        <Box className={styles.dot} bg={`var(--mantine-color-${color}-6)`} />
        <Box component="span" visibleFrom="xs">
          {word}
        </Box>
        <Box component="span" hiddenFrom="xs" className="visually-hidden">
          {word}
        </Box>
      </UnstyledButton>
    </Tooltip>
  );
}
