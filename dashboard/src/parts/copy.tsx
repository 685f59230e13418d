/** Copy buttons for values, ids, commands and curl requests, and downloads of files. */
import { ActionIcon, Box, Group, Text, Tooltip } from '@mantine/core';
import { useEffect, useState } from 'react';
import { ActionButton, notifyFailure } from './action.tsx';
import styles from './copy.module.css';
import { curl } from './curl.ts';
import { Icon } from './icon.tsx';

interface CopyProps {
  value: string | (() => string);
  /** For screen readers and the tooltip (default: `Copy`). */
  label?: string;
}

export function Copy({ value, label = 'Copy' }: CopyProps) {
  const { copied, copy } = useCopy();
  return (
    <Tooltip label={copied ? 'Copied' : label}>
      <ActionIcon
        size="sm"
        aria-label={copied ? 'Copied' : label}
        color={copied ? 'teal' : 'gray'}
        onClick={(event) => {
          // A click would otherwise open the row around the button.
          event.stopPropagation();
          copy(typeof value === 'string' ? value : value());
        }}
      >
        <Icon name={copied ? 'check' : 'copy'} size={14} />
      </ActionIcon>
    </Tooltip>
  );
}

/** How long a button shows `Copied`. */
const SHOWN_MS = 1_500;

/** Copies a text; shows an error if the browser does not allow it. */
export function useCopy(): { copied: boolean; copy: (text: string) => void } {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => setCopied(false), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [copied]);
  const copy = async (text: string) => {
    if (await isCopied(text)) setCopied(true);
    else notifyFailure(new Error('Your browser blocked copying. Select the text and press Ctrl+C instead.'));
  };
  return { copied, copy: (text) => void copy(text) };
}

async function isCopied(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return isCopiedFromField(text);
  }
}

/** The field is inserted beside the focused element, so that the focus does not leave a dialog or table row. */
function isCopiedFromField(text: string): boolean {
  const focused = document.activeElement instanceof HTMLElement ? document.activeElement : null;
  const field = document.createElement('textarea');
  field.value = text;
  field.className = 'visually-hidden';
  (focused?.parentElement ?? document.body).append(field);
  field.select();
  const isDone = document.execCommand('copy');
  field.remove();
  focused?.focus({ preventScroll: true });
  return isDone;
}

interface CommandLineProps {
  /** One or more lines. */
  command: string;
  /** The label of the copy button (default: `Copy command`). */
  label?: string;
}

/** A shell command with a copy button. */
export function CommandLine({ command, label = 'Copy command' }: CommandLineProps) {
  return (
    <Group wrap="nowrap" gap={4} align="flex-start" className={styles.box} maw="100%">
      <Box component="pre" className={styles.text} tabIndex={0}>
        {command}
      </Box>
      <Copy value={command} label={label} />
    </Group>
  );
}

/** Copies a request as a curl command, with `$FLOWHOOK_KEY` as the key. */
export function CopyAsCurl({ path }: { path: string }) {
  const { copied, copy } = useCopy();
  return (
    <ActionButton
      icon={copied ? 'check' : 'copy'}
      action={() => copy(curl({ path }))}
      label={copied ? 'Copied' : 'Copy as curl'}
    />
  );
}

/** An id with a copy button. @param props.isShort shows only its prefix and last six characters */
export function IdText({ id, isShort = false }: { id: string; isShort?: boolean }) {
  const text = isShort && id.length > 14 ? `${id.slice(0, id.indexOf('_') + 1)}…${id.slice(-6)}` : id;
  return (
    <Group gap={2} wrap="nowrap" miw={0} component="span" display="inline-flex">
      <Text span inherit ff="monospace" fz="0.92em" title={id} truncate>
        {text}
      </Text>
      <Copy value={id} label={`Copy ${id}`} />
    </Group>
  );
}

/** @param type such as `text/plain` */
export function save(name: string, content: string | Blob, type?: string): void {
  const blob = typeof content === 'string' ? new Blob([content], { type: type ?? 'text/plain' }) : content;
  const address = URL.createObjectURL(blob);
  const link = document.createElement('a');
  link.href = address;
  link.download = name;
  link.click();
  // By then the browser has started to read the blob.
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
