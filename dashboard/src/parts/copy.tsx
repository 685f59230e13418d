/** A small button that copies. */
import { ActionIcon, Tooltip } from '@mantine/core';
import { Icon } from './icon.tsx';
import { useCopy } from './use-copy.ts';

export interface CopyProps {
  /** What is copied; a function is asked when it is. */
  value: string | (() => string);
  /** What the button says to those who do not see it; `Copy` unless told. */
  label?: string;
}

/** Copies a value, and says so. */
export function Copy({ value, label = 'Copy' }: CopyProps) {
  const { copied, copy } = useCopy();
  return (
    <Tooltip label={copied ? 'Copied' : label}>
      <ActionIcon
        size="sm"
        aria-label={copied ? 'Copied' : label}
        color={copied ? 'teal' : 'gray'}
        onClick={(event) => {
          // Not the row that the button stands in.
          event.stopPropagation();
          copy(typeof value === 'string' ? value : value());
        }}
      >
        <Icon name={copied ? 'check' : 'copy'} size={14} />
      </ActionIcon>
    </Tooltip>
  );
}
