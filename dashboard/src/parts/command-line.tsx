/** A command to copy. */
import { Box, Group } from '@mantine/core';
import styles from './command-line.module.css';
import { Copy } from './copy.tsx';

export interface CommandLineProps {
  /** One or more lines. */
  command: string;
  /** What the copy button is called; `Copy the command` unless told. */
  label?: string;
}

/** A command as one would type it, with its copy button. */
export function CommandLine({ command, label = 'Copy the command' }: CommandLineProps) {
  return (
    <Group wrap="nowrap" gap={4} align="flex-start" className={styles.box} maw="100%">
      <Box component="pre" className={styles.text} tabIndex={0}>
        {command}
      </Box>
      <Copy value={command} label={label} />
    </Group>
  );
}
