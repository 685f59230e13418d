/** An id, which can be copied. */
import { Group, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { Copy } from './copy.tsx';

export interface IdTextProps {
  id: string;
  /** Shortened to its prefix and last letters; the title and the copy button have all of it. */
  isShort?: boolean;
  /** Wraps the text, for a link: `(text) => <PageLink …>{text}</PageLink>`. */
  link?: (text: string) => ReactNode;
}

/** An id with its copy button. */
export function IdText({ id, isShort = false, link = (text) => text }: IdTextProps) {
  const text = isShort && id.length > 14 ? `${id.slice(0, id.indexOf('_') + 1)}…${id.slice(-6)}` : id;
  return (
    <Group gap={2} wrap="nowrap" miw={0} component="span" display="inline-flex">
      <Text span inherit ff="monospace" fz="0.92em" title={id} truncate>
        {link(text)}
      </Text>
      <Copy value={id} label={`Copy ${id}`} />
    </Group>
  );
}
